import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { type LogFields, silentLogger } from "@coracle/operator/client";
import type {
  CacheEvent,
  EventSource,
  KubernetesObject,
  NamespaceSet,
  ObjectKey,
  PrimaryEvent,
  SourceContext,
} from "@coracle/operator/core";
import { ConfigMap, Namespace, Secret } from "@coracle/operator/kinds";
import { nextTurn } from "../../../../core/clock.ts";
import {
  allWrites,
  SourceGroup,
} from "../../../../core/controller/watch/source_group.ts";

const HANDLER = { onTrigger: () => true, retryFailed() {} };

/** Informers of the operator of all groups. */
const INFORMERS = {};

/** Group of event sources without a controller, with changed dependencies. */
function groupWith(
  changes: object,
  ...sources: readonly Partial<EventSource>[]
): SourceGroup<never> {
  const deps = {
    clock: new VirtualClock(),
    log: silentLogger,
    primaryKind: ConfigMap,
    informers: INFORMERS,
    ...changes,
  };
  const settled = () => Promise.resolve();
  const others = { name: "source", start: settled, stop: settled };
  const complete = sources.map((source) =>
    Object.assign(source, { ...others, ...source })
  );
  return new SourceGroup(complete as never, deps as never);
}

/** Group of event sources without a controller. */
function groupOf(...sources: readonly EventSource[]): SourceGroup<never> {
  return groupWith({}, ...sources);
}

test("SourceGroup starts a source that was added early once, with namespaces", async () => {
  const told: NamespaceSet[] = [];
  const early: EventSource = {
    name: "early",
    start({ namespaces }) {
      told.push(namespaces);
      return Promise.resolve();
    },
    stop: () => Promise.resolve(),
  };
  const group = groupOf();
  const added = group.add(early as never);
  await group.start(["default"], HANDLER);
  assert.equal(await added, early);
  assert.deepEqual(told, [["default"]]);
});

test("SourceGroup starts a later source with the namespaces of the last change", async () => {
  const seen: NamespaceSet[] = [];
  const group = groupOf();
  await group.start(["one"], HANDLER);
  await group.changeNamespaces(["two"]);
  await group.add({
    name: "late",
    start({ namespaces }: SourceContext) {
      seen.push(namespaces);
      return Promise.resolve();
    },
    stop: () => Promise.resolve(),
  });
  assert.deepEqual(seen, [["two"]]);
});

test("SourceGroup ignores what a removed or stopped source triggers", async () => {
  const triggered: string[] = [];
  const contexts: SourceContext[] = [];
  const source = (name: string) => ({
    name,
    start(context: SourceContext) {
      contexts.push(context);
      return Promise.resolve();
    },
    stop: () => Promise.resolve(),
  });
  const group = groupOf(source("a"), source("b"));
  await group.start("all", {
    onTrigger: (key, name) => triggered.push(`${name} ${key}`) > 0,
    retryFailed: (key) => triggered.push(`retry ${key}`),
  });
  const all = () => {
    for (const { trigger, retryFailed } of contexts) {
      trigger("default/x");
      retryFailed("default/x");
    }
  };
  all();
  await group.remove("a");
  all();
  await group.stop();
  all();
  assert.deepEqual(triggered, [
    "a default/x",
    "retry default/x",
    "b default/x",
    "retry default/x",
    "b default/x",
    "retry default/x",
  ]);
});

for (
  const [scope, fits, misfit, form] of [
    ["Namespaced", "default/x", "x", "namespace/name"],
    ["Cluster", "x", "default/x", "name"],
  ] as const
) {
  test(`SourceGroup says once that no primary of scope ${scope} has such a key`, async () => {
    const said: unknown[] = [];
    const log = {
      ...silentLogger,
      warn: (_message: string, fields?: LogFields) => said.push(fields),
    };
    const contexts: SourceContext[] = [];
    const deps = {
      log,
      primaryKind: { ...ConfigMap, kind: "Gadget", scope },
      informers: INFORMERS,
    };
    const group = new SourceGroup([{
      name: "pushes",
      start: (context: SourceContext) => {
        contexts.push(context);
        return Promise.resolve();
      },
      stop: () => Promise.resolve(),
    }], deps as never);
    await group.start("all", HANDLER);
    const keys = [fits, misfit, fits, misfit, "a/b/c", "", "/", "a/", "/a"];
    assert.deepEqual(
      keys.map((key) => contexts[0]?.trigger(key)),
      keys.map((key) => key === fits),
    );
    const error = `the key of a Gadget is "${form}": received "${misfit}"`;
    assert.deepEqual(said, [{ source: "pushes", error }]);
  });
}

test("SourceGroup waits for the stop of a removed source, and passes its error on", async () => {
  const ends = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const group = groupOf(...ends.map(({ promise }, number) => ({
    name: String(number),
    start: () => Promise.resolve(),
    stop: () => promise,
  })));
  await group.start("all", HANDLER);
  let hasEnded = false;
  const removed = group.remove("0").then(() => hasEnded = true);
  await nextTurn();
  assert.equal(hasEnded, false);
  ends[0]?.resolve();
  await removed;
  ends[1]?.reject(new Error("As asked"));
  await assert.rejects(group.remove("1"), /As asked/);
  assert.equal(group.health().size, 0);
});

test("SourceGroup starts no further source after it was stopped", async () => {
  const loaded = Promise.withResolvers<void>();
  const started: string[] = [];
  const group = groupOf(
    {
      name: "loader",
      startPriority: "loader",
      start: () => loaded.promise,
      stop: () => Promise.resolve(),
    },
    {
      name: "other",
      start() {
        started.push("other");
        return Promise.resolve();
      },
      stop: () => Promise.resolve(),
    },
  );
  const starting = group.start("all", HANDLER);
  await group.stop();
  loaded.resolve();
  await assert.rejects(starting, /the controller was stopped/);
  assert.deepEqual(started, []);
});

test("SourceGroup lists the objects of several caches once, in their newest state", async () => {
  const map = (name: string, resourceVersion: string): ConfigMap => ({
    metadata: { namespace: "default", name, uid: name, resourceVersion },
  });
  const asked: (string | undefined)[] = [];
  const source = (name: string, ...held: readonly ConfigMap[]): EventSource =>
    ({
      name,
      kind: ConfigMap,
      start: () => Promise.resolve(),
      stop: () => Promise.resolve(),
      list(namespace?: string) {
        asked.push(namespace);
        return held;
      },
    }) as EventSource;
  const group = groupOf(
    source("one", map("a", "7"), map("b", "9")),
    source("two", map("a", "8"), map("c", "3")),
    { ...source("other", map("d", "1")), kind: Secret } as EventSource,
  );
  const listed = await group.list(ConfigMap, "default");
  assert.deepEqual(
    listed.map(({ metadata: { name, resourceVersion } }) =>
      `${name} ${resourceVersion}`
    ).toSorted(),
    ["a 8", "b 9", "c 3"],
  );
  assert.deepEqual(asked, ["default", "default"]);
});

test("SourceGroup forgets a source that could not be added, so that another can be", async () => {
  const source = (start: () => Promise<void>): EventSource => ({
    name: "late",
    start,
    stop: () => Promise.resolve(),
    onPrimary() {},
  });
  const group = groupOf();
  await group.start("all", HANDLER);
  const broken = source(() => Promise.reject(new Error("broken")));
  await assert.rejects(group.add(broken as never), /broken/);
  assert.equal(group.named("late"), undefined);
  assert.equal(group.health().size, 0);
  assert.equal(group.followsPrimaries, false);
  const good = source(() => Promise.resolve());
  assert.equal(await group.add(good as never), good);
});

test("SourceGroup keeps a source of its own when another of the name is added", async () => {
  const own: EventSource = {
    name: "own",
    start: () => Promise.reject(new Error("broken")),
    stop: () => Promise.resolve(),
  };
  const group = groupOf(own);
  await assert.rejects(group.start("all", HANDLER), /broken/);
  await assert.rejects(group.add({ ...own } as never), /broken/);
  assert.equal(group.named("own"), own);
});

test("SourceGroup follows primaries until the last source that does is removed", async () => {
  const source = (name: string): EventSource => ({
    name,
    start: () => Promise.resolve(),
    stop: () => Promise.resolve(),
    onPrimary() {},
  });
  const group = groupOf(source("a"), source("b"));
  await group.start("all", HANDLER);
  await group.remove("a");
  assert.equal(group.followsPrimaries, true);
  await group.remove("b");
  assert.equal(group.followsPrimaries, false);
});

test("SourceGroup stops its sources one by one, in reverse order", async () => {
  const calls: string[] = [];
  const source = (name: string): EventSource => ({
    name,
    start: () => Promise.resolve(),
    async stop() {
      calls.push(`stop ${name}`);
      await Promise.resolve();
      calls.push(`stopped ${name}`);
    },
  });
  const group = groupOf(...["a", "b", "c"].map(source));
  await group.start("all", HANDLER);
  await group.stop();
  const expected = ["c", "b", "a"].flatMap((name) => [
    `stop ${name}`,
    `stopped ${name}`,
  ]);
  assert.deepEqual(calls, expected);
});

/** Client that records its reads. */
function recordedClient() {
  const reads: unknown[] = [];
  const client = {
    find: (...parts: unknown[]) => Promise.resolve(void reads.push(parts)),
    async *listAll(...parts: unknown[]) {
      reads.push(parts);
      yield await Promise.resolve({ metadata: { name: "listed" } });
    },
  };
  return { reads, client };
}

test("SourceGroup that is stopped before its start refuses a source it was given", async () => {
  const group = groupOf();
  const added = group.add({ name: "early" } as never);
  await group.stop();
  await assert.rejects(added, /^Error: Cannot start event source "early": /);
});

test("SourceGroup logs the failure of a source that follows primaries", async () => {
  const errors: LogFields[] = [];
  const log = {
    ...silentLogger,
    error: (_message: string, fields: LogFields) => errors.push(fields),
  };
  const broken = new Error("broken");
  const group = groupWith(
    { log },
    { name: "late", onPrimary: () => Promise.reject(broken) as never },
    {
      name: "early",
      onPrimary() {
        throw broken;
      },
    },
  );
  await group.start("all", HANDLER);
  const key = { namespace: "default", name: "a" };
  group.primaryEvent({ type: "deleted", key, object: undefined });
  await nextTurn();
  const found = errors.map(({ source, object, error }) => [
    source,
    object,
    error,
  ]);
  assert.deepEqual(found, [
    ["early", "default/a", broken],
    ["late", "default/a", broken],
  ]);
});

test("SourceGroup follows primaries once a source is added that does", async () => {
  const group = groupOf();
  await group.start("all", HANDLER);
  const added = {
    name: "added",
    start: () => Promise.resolve(),
    onPrimary() {},
  };
  await group.add(added as never);
  assert.equal(group.followsPrimaries, true);
});

test("SourceGroup reads from a cache that can be read so, or from the server", async () => {
  const { reads, client } = recordedClient();
  const found = { metadata: { name: "found" } };
  const group = groupWith(
    { client },
    { name: "gets", kind: Secret, get: () => found } as never,
    { name: "lists", kind: Namespace, list: () => [found] } as never,
  );
  await group.start("all", HANDLER);
  const key = { namespace: "default", name: "a" };
  const { signal } = new AbortController();
  assert.equal(await group.read(Secret, key, signal), found);
  assert.deepEqual(await group.readList(Namespace, undefined, signal), [found]);
  assert.deepEqual(reads, []);
  await group.read(Namespace, key, signal);
  const listed = await group.readList(Secret, "default", signal);
  assert.deepEqual(listed.map(({ metadata }) => metadata.name), ["listed"]);
  assert.deepEqual(reads, [
    [Namespace, { name: "a" }, { signal }],
    [Secret, { namespace: "default", signal }],
  ]);
});

test("SourceGroup reads the newest state of an object in several caches", async () => {
  const cache = (name: string, resourceVersion?: string) => ({
    name,
    kind: Secret,
    get: () => resourceVersion && { metadata: { name: "a", resourceVersion } },
  });
  const group = groupWith(
    {},
    ...[cache("none"), cache("old", "1"), cache("new", "2")] as never[],
  );
  await group.start("all", HANDLER);
  const found = await group.get(Secret, { name: "a" });
  assert.equal(found?.metadata.resourceVersion, "2");
});

test("SourceGroup lets a starting source read others of a kind once they have synced", async () => {
  const synced = Promise.withResolvers<void>();
  const found = { metadata: { name: "found" } };
  const seen: unknown[] = [];
  const group = groupWith(
    {},
    {
      name: "cache",
      kind: Secret,
      get: () => found,
      list: () => [found],
      start: () => synced.promise,
    } as never,
    {
      name: "reader",
      kind: Secret,
      async start(context) {
        seen.push(await context.get(Secret, { name: "found" }));
        seen.push(...await context.list(Secret));
      },
    },
    {
      name: "lister",
      async start(context) {
        seen.push(...await context.list(Secret));
      },
    },
  );
  const started = group.start("all", HANDLER);
  await nextTurn();
  assert.deepEqual(seen, []);
  synced.resolve();
  await started;
  assert.deepEqual(seen, [found, found, found]);
});

test("SourceGroup accepts what a source triggers while it starts", async () => {
  const runs: boolean[] = [];
  const group = groupWith({}, {
    start({ trigger }) {
      runs.push(trigger("default/a") as unknown as boolean);
      return Promise.resolve();
    },
  });
  await group.start("all", HANDLER);
  assert.deepEqual(runs, [true]);
});

test("SourceGroup logs an error of a source that cannot stop", async () => {
  const errors: LogFields[] = [];
  const log = {
    ...silentLogger,
    error: (_message: string, fields: LogFields) => errors.push(fields),
  };
  const broken = new Error("broken");
  const group = groupWith({ log }, { stop: () => Promise.reject(broken) });
  await group.start("all", HANDLER);
  await group.stop();
  assert.deepEqual(errors, [{ source: "source", error: broken }]);
});

test("SourceGroup calls a source unhealthy whose health throws", () => {
  const group = groupWith({}, { name: "silent" }, {
    name: "broken",
    health() {
      throw new Error("No");
    },
  });
  assert.deepEqual([...group.health()], [
    ["silent", { status: "unknown" }],
    ["broken", { status: "unhealthy", message: "health() threw Error: No" }],
  ]);
});

test("allWrites passes the result on to each of its writes", () => {
  const calls: unknown[] = [];
  const write = (name: string) => ({
    succeed: (...parts: unknown[]) => void calls.push([name, ...parts]),
    fail: () => void calls.push(name),
  });
  const both = allWrites([write("a"), write("b")]);
  const object = { metadata: { name: "x" } };
  const result = { sent: {} } as never;
  both.succeed(object, result);
  both.fail();
  assert.deepEqual(calls, [
    ["a", object, result],
    ["b", object, result],
    "a",
    "b",
  ]);
});

test("SourceGroup refuses a source that another group has started", async () => {
  const stops: string[] = [];
  const shared: EventSource = {
    name: "shared",
    start: () => Promise.resolve(),
    stop() {
      stops.push("stopped");
      return Promise.resolve();
    },
  };
  const [one, other] = [groupOf(shared), groupOf(shared)];
  await one.start([], HANDLER);
  await assert.rejects(other.start([], HANDLER), {
    message:
      'Cannot start event source "shared": another controller has started it, so create one for each',
  });
  await other.stop();
  assert.deepEqual(stops, []);
  await one.stop();
  const later = groupOf(shared);
  await later.start([], HANDLER);
  await later.remove("shared");
  assert.deepEqual(stops, ["stopped", "stopped"]);
  await groupOf(shared).start([], HANDLER);
  // An operator that was killed, as in a check, has not stopped its sources.
  await groupWith({ informers: {} }, shared).start([], HANDLER);
});

test("SourceGroup passes on why a source cannot start, also if it cannot stop", async () => {
  const group = groupOf();
  await group.start("all", HANDLER);
  const added = group.add({
    name: "late",
    start: () => Promise.reject(new Error("cannot start")),
    stop: () => Promise.reject(new Error("cannot stop")),
  });
  await assert.rejects(added, /cannot start/);
});

test("SourceGroup tells only started sources that the replica takes over", async () => {
  const told: string[] = [];
  const source = (name: string) => ({ name, onLead: () => told.push(name) });
  const group = groupWith({}, source("a"), source("b"));
  group.lead();
  assert.deepEqual(told, []);
  await group.start("all", HANDLER);
  await group.remove("a");
  group.lead();
  assert.deepEqual(told, ["b"]);
});

test("SourceGroup ignores what a source triggers while it is removed", async () => {
  const triggered: string[] = [];
  let context: SourceContext | undefined;
  const group = groupWith({ primaryKind: ConfigMap }, {
    start(given: SourceContext) {
      context = given;
      return Promise.resolve();
    },
    stop() {
      context?.trigger("default/a");
      return Promise.resolve();
    },
  });
  const onTrigger = (key: string) => triggered.push(key) > 0;
  await group.start("all", { ...HANDLER, onTrigger });
  context?.trigger("default/b");
  await group.remove("source");
  assert.deepEqual(triggered, ["default/b"]);
});

test("SourceGroup delivers an event to each source, although the first one throws", async () => {
  const seen: string[] = [];
  const group = groupWith({}, {
    name: "broken",
    onPrimary() {
      throw new Error("broken");
    },
  }, { name: "good", onPrimary: ({ type }) => void seen.push(type) });
  await group.start("all", HANDLER);
  const key = { namespace: "default", name: "a" };
  group.primaryEvent({ type: "added", key, object: undefined });
  assert.deepEqual(seen, ["added"]);
});

test("SourceGroup gives sources a partial primary once it is read, if it exists", async () => {
  const seen: PrimaryEvent<KubernetesObject>[] = [];
  const kept = new Map<string, KubernetesObject>();
  /** Whether a primary is deleted between its read and the answer. */
  let vanishes = false;
  const primaries = {
    read({ name }: ObjectKey) {
      const object = kept.get(name);
      if (vanishes) kept.delete(name);
      return Promise.resolve(object);
    },
    has: ({ name }: ObjectKey) => kept.has(name),
  };
  const onPrimary = (event: PrimaryEvent<KubernetesObject>) =>
    void seen.push(event);
  const group = groupWith({ primaries }, { onPrimary });
  await group.start("all", HANDLER);
  const change = async (type: "added" | "deleted", name: string) => {
    const event = { type, key: `default/${name}`, header: { isPartial: true } };
    group.primaryChanged(event as CacheEvent<never>);
    const now = seen.length;
    await nextTurn();
    return now;
  };
  const object = { metadata: { name: "a" } };
  kept.set("a", object);
  assert.equal(await change("added", "a"), 0);
  assert.equal(seen[0]?.object, object);
  await change("added", "b");
  kept.set("c", object);
  vanishes = true;
  await change("added", "c");
  assert.equal(seen.length, 1);
  assert.equal(await change("deleted", "a"), 2, "at once, without a read");
});

test("SourceGroup needs a source with secondaries, and announces writes to all", async () => {
  const map = (namespace: string, resourceVersion: string) => ({
    metadata: { namespace, name: "a", resourceVersion },
  });
  const begun: string[] = [];
  const beginWrite = (name: string) => () => {
    begun.push(name);
    return { succeed() {}, fail() {} };
  };
  const lists = {
    name: "lists",
    kind: ConfigMap,
    list: () => [],
    beginWrite: beginWrite("lists"),
  };
  const primary = map("default", "1") as never;
  const without = groupWith({}, lists);
  await assert.rejects(
    without.secondaries(ConfigMap, primary),
    /does not watch the kind/,
  );
  const maps = (name: string, ...found: unknown[]) => ({
    name,
    kind: ConfigMap,
    secondaries: () => found,
    beginWrite: beginWrite(name),
  });
  const group = groupWith(
    {},
    lists,
    maps("one", map("default", "9"), map("other", "3")),
    maps("two", map("default", "10")),
  );
  const found = await group.secondaries(ConfigMap, primary);
  assert.deepEqual(
    found.map(({ metadata }) =>
      `${metadata.namespace} ${metadata.resourceVersion}`
    ).toSorted(),
    ["default 10", "other 3"],
  );
  const key = { namespace: "default", name: "a" };
  assert.equal(group.beginWrites(ConfigMap, key).length, 3);
  assert.deepEqual(begun, ["lists", "one", "two"]);
});

test("SourceGroup leaves a source behind that does not stop within ten seconds", async () => {
  const clock = new VirtualClock();
  const errors: string[] = [];
  const log = {
    ...silentLogger,
    error: (text: string) => void errors.push(text),
  };
  let stops = 0;
  const group = groupWith(
    { clock, log },
    { name: "first", stop: () => Promise.resolve(void stops++) },
    { name: "stuck", stop: () => new Promise(() => {}) },
  );
  await group.start("all", HANDLER);
  const stopped = group.stop();
  await clock.advance(10_000);
  await stopped;
  assert.equal(stops, 1);
  assert.deepEqual(errors, ["Cannot stop an event source, it is left behind"]);
});

test("SourceGroup tells a source that has started of changed namespaces", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let isStarted = false;
  const told: NamespaceSet[] = [];
  const group = groupWith({}, {
    async start({ namespaces }: SourceContext) {
      await promise;
      isStarted = true;
      told.push(namespaces);
    },
    changeNamespaces(namespaces: NamespaceSet) {
      if (isStarted) told.push(namespaces);
      return Promise.resolve();
    },
  });
  const started = group.start(["one"], HANDLER);
  await nextTurn();
  await group.changeNamespaces(["two"]);
  resolve();
  await started;
  assert.deepEqual(told, [["one"], ["two"]]);
});

test("SourceGroup runs a source with leaderOnly only while its replica leads", async () => {
  const told: string[] = [];
  const source: Partial<EventSource> = {
    name: "polled",
    leaderOnly: true,
    start: () => Promise.resolve(void told.push("start")),
    stop: () => Promise.resolve(void told.push("stop")),
  };
  const group = groupWith({}, source);
  await group.start("all", HANDLER);
  assert.deepEqual(told, []);
  assert.deepEqual(group.health().get("polled"), {
    status: "unknown",
    message: "it runs on the leader",
  });
  group.lead();
  await group.turning;
  assert.deepEqual(told, ["start"]);
  // A loss and a return in one turn of the event loop change nothing, or in order.
  group.unlead();
  group.lead();
  group.unlead();
  await group.turning;
  assert.equal(group.turning, undefined);
  assert.deepEqual(told, ["start", "stop"]);
  group.lead();
  await group.turning;
  await group.stop();
  assert.deepEqual(told, ["start", "stop", "start", "stop"]);
});

test("SourceGroup starts a source of the leader again after it has failed", async () => {
  const clock = new VirtualClock();
  const logged: unknown[] = [];
  const log = {
    ...silentLogger,
    error: (text: string, fields: LogFields) =>
      void logged.push([text, fields["retryIn"]]),
  };
  let attempts = 0;
  const source: Partial<EventSource> = {
    name: "polled",
    leaderOnly: true,
    start: () =>
      ++attempts < 3
        ? Promise.reject(new Error("no route"))
        : Promise.resolve(),
  };
  const group = groupWith({ clock, log }, source);
  group.lead();
  await group.start("all", HANDLER);
  const text = "Cannot start an event source of the leader";
  assert.deepEqual(logged, [[text, 1_000]]);
  assert.equal(group.health().get("polled")?.status, "unhealthy");
  await clock.advance(1_000);
  assert.deepEqual(logged, [[text, 1_000], [text, 2_000]]);
  await clock.advance(2_000);
  assert.equal(attempts, 3);
  assert.deepEqual(group.health().get("polled"), { status: "unknown" });
  await group.stop();
});
