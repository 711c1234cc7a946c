import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  type CacheEvent,
  type KeepCallbacks,
  type Kind,
  type KubernetesObject,
  untyped,
} from "@coracle/operator/client";
import type { SourceContext } from "@coracle/operator/core";
import {
  byFunction,
  watch,
  type WatchSource,
  type WatchSourceOptions,
} from "@coracle/operator/sources";
import { nextTurn } from "../../../../core/clock.ts";
import { WatchingSource } from "../../../../core/controller/watch/watch_source.ts";
import { gadget, recordedContext } from "../../../support/source_context.ts";

type Secondary = KubernetesObject & { readonly primaries: readonly string[] };
type Event = CacheEvent<Secondary>;

const PART: Kind<Secondary> = untyped({
  group: "example.com",
  version: "v1",
  kind: "Part",
  plural: "parts",
  scope: "Namespaced",
}) as Kind<KubernetesObject> as Kind<Secondary>;

/** Source with an informer whose events and answers the test gives. */
function started(
  options: WatchSourceOptions<KubernetesObject, Secondary> = {},
  kind: Kind<Secondary> = PART,
) {
  const calls: string[] = [];
  const acquired: object[] = [];
  let onEvent: (event: Event) => void = () => {};
  const answers = {
    addIndex: () => {},
    attach: () => Promise.resolve(),
    read: () => Promise.resolve<Secondary | undefined>(undefined),
    synced: Promise.resolve(),
    health: {} as object,
    resolve: () => Promise.resolve({ scope: "Namespaced" }),
    indexed: [] as readonly Secondary[],
  };
  const called = (name: string) => (names: readonly string[]) => {
    calls.push(`${name} ${names}`);
    return name === "attach" ? answers.attach() : Promise.resolve();
  };
  const informer = {
    addIndex: (name: string) => {
      calls.push(`index ${name}`);
      answers.addIndex();
    },
    addHandler(handler: typeof onEvent) {
      onEvent = handler;
      return {
        synced: answers.synced,
        beginWrite: (key: object) => ({ begun: key }),
      };
    },
    namespaces: ["one"],
    health: () => answers.health,
    get: (key: unknown) => `get ${JSON.stringify(key)}`,
    list: (namespace: unknown) => [`list ${namespace}`],
    readList: (namespace: unknown) => [`readList ${namespace}`],
    readByIndex: () => Promise.resolve(answers.indexed),
    open: called("open"),
    attach: called("attach"),
    keep(names: readonly string[], { onLeft }: KeepCallbacks) {
      calls.push(`keep ${names}`);
      onLeft?.("default/part", -1);
      return Promise.resolve();
    },
    read: () => answers.read(),
    byIndex: () => answers.indexed,
  };
  const more = {
    namespaces: ["one"],
    client: { resolve: () => answers.resolve() },
    informers: {
      acquire(_kind: unknown, selection: object) {
        calls.push("acquire");
        acquired.push(selection);
        return { informer, release: () => void calls.push("release") };
      },
    },
  } as never as Partial<SourceContext>;
  const source: WatchSource<KubernetesObject, Secondary> = watch(kind, {
    mapper: byFunction(({ primaries }) => primaries),
    ...options,
  });
  const contextOf = (...primaries: readonly KubernetesObject[]) =>
    recordedContext(new VirtualClock(), primaries, more);
  const send = (event: Partial<Event>, version = "2") =>
    onEvent({
      type: "updated",
      key: "default/part",
      header: headerOf(version),
      object: { ...gadget("part"), primaries: ["default/a"] },
      relist: false,
      ...event,
    } as Event);
  return { source, calls, acquired, answers, contextOf, send };
}

function headerOf(resourceVersion: string, isPartial = false) {
  const { namespace, name } = gadget("part").metadata;
  return { namespace, name, resourceVersion, isPartial } as Event["header"];
}

test("watch() gives a primary the objects that map to it, whatever its index has", async () => {
  const { source, contextOf, answers } = started();
  const part = (name: string, primary: string): Secondary => ({
    ...gadget(name),
    primaries: [`default/${primary}`],
  });
  answers.indexed = [part("one", "a"), part("two", "b")];
  await source.start(contextOf(gadget("a")));
  const found = await source.secondaries?.(gadget("a")) ?? [];
  assert.deepEqual(found.map(({ metadata }) => metadata.name), ["one"]);
  await source.stop();
});

test("watch() acquires an informer of its whole selection", async () => {
  const selection = {
    labelSelector: "app=web",
    fieldSelector: "metadata.name=a",
    metadataOnly: true,
    bounded: true,
    shared: false,
    prune: ["spec"],
  } as const;
  const { source, contextOf, acquired } = started(selection);
  await source.start(contextOf());
  await source.stop();
  assert.deepEqual(acquired, [{ ...selection, namespaces: ["one"] }]);
});

test("watch() forgets the references of primaries when it stops", async () => {
  const { source, contextOf, send } = started({
    mapper: undefined,
    references: () => ["default/part"],
  });
  const first = contextOf(gadget("a"));
  await source.start(first);
  send({});
  assert.deepEqual(first.triggered, ["default/a"]);
  await source.stop();
  const second = contextOf();
  await source.start(second);
  send({});
  assert.deepEqual(second.triggered, []);
});

test("watch() keeps the references that it hears of while it reads the primaries", async () => {
  for (const isStopped of [false, true]) {
    const { source, contextOf, send } = started({
      mapper: undefined,
      references: ({ metadata: { labels = {} } }) => Object.keys(labels),
    });
    const referring = (name: string, label: string) => {
      const { metadata, ...others } = gadget(name);
      const labels = { [`default/${label}`]: "" };
      return { ...others, metadata: { ...metadata, labels } };
    };
    const all = ["same", "changed", "deleted"].map((name) =>
      referring(name, "part")
    );
    const context = contextOf();
    const read = Promise.withResolvers<readonly KubernetesObject[]>();
    const start = source.start({
      ...context,
      primaries: { ...context.primaries, readList: () => read.promise },
    });
    const [, changed, deleted] = all.map(({ metadata }) => metadata);
    for (
      const [type, key, object] of [
        ["modified", changed, referring("changed", "other")],
        ["deleted", deleted, undefined],
      ] as const
    ) source.onPrimary?.({ type, key: key!, object });
    if (isStopped) await source.stop();
    read.resolve(all);
    await start;
    if (isStopped) await source.start(context);
    send({});
    send({ key: "default/other" });
    assert.deepEqual(
      context.triggered,
      isStopped ? [] : ["default/same", "default/changed"],
    );
  }
});

test("watch() tells of secondaries that are gone or reset, and of its stop", async () => {
  const { source, contextOf, send } = started();
  const gone: (string | undefined)[] = [];
  source.onGone((key) => gone.push(key));
  await source.start(contextOf());
  const previousHeader = headerOf("5");
  send({ relist: true, previousHeader }, "6");
  send({ previousHeader }, "4");
  send({ relist: true }, "4");
  assert.deepEqual(gone, []);
  send({ relist: true, previousHeader }, "5");
  send({ relist: true, previousHeader }, "4");
  send({ type: "deleted" });
  assert.deepEqual(gone, Array(3).fill("default/part"));
  await source.stop();
  assert.deepEqual(gone.slice(3), [undefined]);
});

test("watch() opens no informer if it is stopped while its kind is looked up", async () => {
  const kind = { ...PART, scope: undefined } as Kind<Secondary>;
  const { source, answers, calls, contextOf } = started({}, kind);
  const found = Promise.withResolvers<{ scope: string }>();
  answers.resolve = () => found.promise;
  const start = source.start(contextOf());
  await source.stop();
  found.resolve({ scope: "Namespaced" });
  await start;
  assert.deepEqual(calls, []);
});

test("watch() opens all caches of new namespaces before it reads them", async () => {
  const { source, calls, contextOf } = started();
  await source.start(contextOf());
  await source.changeNamespaces?.(["one", "two"]);
  assert.deepEqual(calls, [
    "acquire",
    "index primary 0",
    "open one,two",
    "attach one,two",
    "keep one,two",
  ]);
});

test("watch() ends a change of namespaces when it stops, without an error", async () => {
  for (const fails of [false, true]) {
    const { source, answers, calls, contextOf } = started();
    await source.start(contextOf());
    const attached = Promise.withResolvers<void>();
    answers.attach = () => attached.promise;
    const changed = source.changeNamespaces?.(["two"]);
    await Promise.resolve();
    await Promise.resolve();
    await source.stop();
    if (fails) attached.reject(new Error("it was stopped"));
    else attached.resolve();
    await changed;
    assert.deepEqual(calls.slice(2), ["open two", "attach two", "release"]);
  }
});

test("watch() reads and maps an object of which only the key is cached", async () => {
  const { source, answers, contextOf, send } = started({ bounded: true });
  const context = contextOf();
  await source.start(context);
  const mappedTo = async (...primaries: string[]) => {
    answers.read = () => Promise.resolve({ ...gadget("part"), primaries });
    const before = context.triggered.length;
    send({ header: headerOf("2", true) });
    await nextTurn();
    return context.triggered.slice(before);
  };
  assert.deepEqual(await mappedTo("default/a"), ["default/a"]);
  const both = ["default/a", "default/b"];
  assert.deepEqual(await mappedTo("default/b"), both, "the former one, too");
  send({ type: "deleted", header: headerOf("3", true) });
  assert.deepEqual(context.triggered.slice(3), ["default/b"]);
});

test("watch() reads what its cache holds, or fetches it where that is bounded", async () => {
  const key = { namespace: "default", name: "part" };
  const part = { ...gadget("part"), primaries: [] };
  for (const bounded of [false, true]) {
    const { source, answers, contextOf } = started({ bounded });
    answers.read = () => Promise.resolve(part);
    assert.equal(source.get?.(key), undefined);
    assert.deepEqual(source.list?.("default"), []);
    assert.deepEqual(source.secondaries?.(gadget("a")), []);
    await source.start(contextOf());
    const found: unknown = await source.get?.(key);
    assert.deepEqual(found, bounded ? part : `get ${JSON.stringify(key)}`);
    assert.deepEqual(
      await source.list?.("default"),
      [bounded ? "readList default" : "list default"],
    );
    assert.deepEqual(source.beginWrite?.(key) as object, { begun: key });
    await source.stop();
    assert.deepEqual(source.list?.("default"), []);
  }
});

test("watch() finds the secondaries in a bounded cache by mapper and by reference", async () => {
  const part = { ...gadget("part"), primaries: ["default/a"] };
  for (
    const options of [
      {},
      { mapper: undefined, references: () => ["default/part", "default/none"] },
    ]
  ) {
    const { source, answers, contextOf } = started({
      ...options,
      bounded: true,
    });
    answers.indexed = [part, { ...gadget("other"), primaries: [] }];
    const found = [part, undefined];
    answers.read = () => Promise.resolve(found.shift());
    await source.start(contextOf(gadget("a")));
    assert.deepEqual(await source.secondaries?.(gadget("a")), [part]);
  }
});

test("watch() has started when its informer has synced", async () => {
  const { source, answers, contextOf } = started();
  const synced = Promise.withResolvers<void>();
  answers.synced = synced.promise;
  let isStarted = false;
  const start = source.start(contextOf()).then(() => isStarted = true);
  await nextTurn();
  assert.equal(isStarted, false);
  synced.resolve();
  await start;
});

test("watch() leaves no informer behind whose cache it cannot index", async () => {
  const { source, contextOf, answers, calls } = started();
  answers.addIndex = () => {
    throw new RangeError("Cannot add the index");
  };
  await assert.rejects(() => source.start(contextOf()), RangeError);
  assert.deepEqual(calls, ["acquire", "index primary 0", "release"]);
  await source.stop();
  assert.equal(source.health?.().status, "unknown");
});

test("watch() reports the health of its informer, with its first error", async () => {
  const { source, answers, contextOf } = started();
  assert.deepEqual(source.health?.(), { status: "unknown" });
  await source.start(contextOf());
  answers.health = { healthy: true, watches: [] };
  assert.deepEqual(source.health?.(), { status: "healthy" });
  const status = "unhealthy";
  const watches = [{}, { lastError: new Error("no route") }];
  answers.health = { healthy: false, watches };
  assert.deepEqual(source.health?.(), { status, message: "no route" });
  answers.health = { healthy: false, watches: [{}] };
  assert.deepEqual(source.health?.(), { status, message: "not synced yet" });
});

test("watch() keeps namespaces of its own, and none for a cluster's objects", async () => {
  const own = started({ namespaces: ["own"] });
  await own.source.start(own.contextOf());
  await own.source.changeNamespaces?.(["two"]);
  assert.deepEqual(own.calls, ["acquire", "index primary 0"]);
  const all = started({ namespaces: "all" });
  await all.source.start(all.contextOf());
  const kind = { ...PART, scope: undefined } as Kind<Secondary>;
  const resolved = started({}, kind);
  resolved.answers.resolve = () => Promise.resolve({ scope: "Cluster" });
  await resolved.source.start(resolved.contextOf());
  const client = {
    resolve: () => Promise.resolve({ ...PART, scope: "Cluster" }),
    request() {},
  } as never;
  const remote = started({ client }, kind);
  await remote.source.start(remote.contextOf());
  const namespaces = [own, all, resolved, remote].map(({ acquired: [one] }) =>
    (one as { readonly namespaces?: unknown }).namespaces
  );
  assert.deepEqual(namespaces, [["own"], undefined, undefined, undefined]);
});

test("watch() triggers the primaries before and after a change, and says why", async () => {
  const { source, contextOf, send } = started();
  const context = contextOf();
  await source.start(context);
  const moved = {
    previous: { ...gadget("part"), primaries: ["default/b"] },
    previousHeader: headerOf("1"),
  };
  send({ ...moved, initial: true });
  assert.deepEqual(context.triggered, ["default/a", "default/b"]);
  const object = { namespace: "default", name: "part" };
  const cause = { kind: "Part", object, initial: true };
  assert.deepEqual(context.events.map((event) => ({ ...event })), [
    cause,
    cause,
  ]);
  // Its mapper reads more than the metadata.
  send({ ...moved, hasSameMetadata: true, initial: false });
  assert.equal(context.triggered.length, 4);
  assert.equal(context.events.at(-1)?.initial, false);
});

test("watch() triggers for what its filters accept, and where they throw", async () => {
  for (
    const [add, triggers] of [
      [() => false, 0],
      [() => true, 1],
      [() => {
        throw new Error("broken");
      }, 1],
    ] as const
  ) {
    const { source, contextOf, send } = started({ filters: { add } });
    const context = contextOf();
    await source.start(context);
    send({ type: "added" });
    assert.equal(context.triggered.length, triggers);
  }
});

test("watch() forgets what it remembers of objects that left, and at its stop", async () => {
  for (const isStopped of [false, true]) {
    const { source, answers, contextOf, send } = started({ bounded: true });
    let context = contextOf();
    await source.start(context);
    send({});
    assert.deepEqual(context.triggered, ["default/a"]);
    if (isStopped) {
      await source.stop();
      context = contextOf();
      await source.start(context);
    } else await source.changeNamespaces?.(["two"]);
    context.triggered.length = 0;
    let reads = 0;
    answers.read = () => Promise.resolve(void reads++);
    send({ type: "deleted", header: headerOf("3", true) });
    await nextTurn();
    assert.deepEqual(context.triggered, []);
    assert.equal(reads, 0);
  }
});

test("watch() follows the references of a primary until it is gone", async () => {
  const { source, contextOf, send } = started({
    mapper: undefined,
    references: () => ["default/part"],
  });
  const context = contextOf();
  await source.start(context);
  const { metadata: key } = gadget("a");
  source.onPrimary?.({ type: "added", key: key as never, object: gadget("a") });
  send({});
  source.onPrimary?.({
    type: "modified",
    key: key as never,
    object: undefined,
  });
  send({});
  assert.deepEqual(context.triggered, ["default/a"]);
});

test("watch() passes on why the caches of new namespaces cannot be read", async () => {
  const { source, answers, contextOf, calls } = started();
  await source.start(contextOf());
  answers.attach = () => Promise.reject(new Error("forbidden"));
  const changed = source.changeNamespaces?.(["two"]);
  await assert.rejects(async () => await changed, /forbidden/);
  assert.equal(calls.at(-1), "attach two", "the former ones stay");
});

test("watch() keeps the managed fields of the operator's own controllers", async () => {
  const { source, acquired, contextOf } = started();
  await source.start(contextOf());
  assert.deepEqual((acquired[0] as { readonly prune: unknown }).prune, [
    'metadata.managedFields[manager!="test"]',
  ]);
});

const TEXT = "example.com/v1 Part";
const mapper = byFunction<KubernetesObject, Secondary>(() => []);

test("WatchingSource has a name of its own, and the access of its use", () => {
  const taken = new Set<string>();
  const named = (name?: string) =>
    new WatchingSource(PART, { name }).usedAs("owns", taken).name;
  assert.deepEqual([named(), named(), named("ours"), named()], [
    TEXT,
    `${TEXT} (2)`,
    "ours",
    `${TEXT} (3)`,
  ]);
  assert.deepEqual([...taken], [TEXT, `${TEXT} (2)`, "ours", `${TEXT} (3)`]);
  const access = (["owns", "watches", undefined] as const).map((role) => {
    const source = new WatchingSource(PART, {});
    if (role !== undefined) source.usedAs(role);
    return [source.readOnly, source.isOwned];
  });
  assert.deepEqual(access, [[false, true], [true, false], [false, false]]);
  const copied = new WatchingSource(PART, {}).usedAs("owns").usedAs("watches");
  assert.deepEqual([copied.readOnly, copied.isOwned], [true, false]);
  const writes = new WatchingSource(PART, { readOnly: false });
  assert.equal(writes.usedAs("watches").readOnly, false);
});

test("WatchingSource that owns maps by each way of ownership, unless it has a mapper", async () => {
  for (
    const [options, indexes] of [
      [{ mapper: undefined }, 2],
      [{ mapper }, 1],
      [{ mapper: undefined, references: () => [] }, 0],
    ] as const
  ) {
    const { source, calls, contextOf } = started(options);
    const own = (source as WatchingSource<KubernetesObject, Secondary>)
      .usedAs("owns");
    assert.equal(own.mapsByOwner, indexes === 2);
    await own.start(contextOf());
    const named = calls.filter((call) => call.startsWith("index"));
    assert.deepEqual(
      named,
      ["index primary 0", "index primary 1"].slice(0, indexes),
    );
  }
});

test("WatchingSource knows whose objects it watches, and whether these are all", () => {
  const client = { request() {}, resolve() {} } as never;
  const others = (
    [[{ mapper }, true], [{ mapper, client }, false], [{}, false]] as const
  ).map(([options, expected]) =>
    new WatchingSource(PART, options).usedAs("watches").isOfOthers === expected
  );
  assert.deepEqual(others, [true, true, true]);
  assert.equal(new WatchingSource(PART, { mapper }).isOfOthers, false);
  const all = [
    { name: "ours", labelSelector: undefined },
    { labelSelector: "app=web" },
    { mapper },
  ].map((options) => new WatchingSource(PART, options).watchesAll);
  assert.deepEqual(all, [true, false, false]);
});

test("WatchingSource takes over the whole selection of another", async () => {
  const { source, acquired, contextOf } = started({ namespaces: ["one"] });
  const other = new WatchingSource(PART, {
    namespaces: ["two"],
    labelSelector: "app=web",
  });
  const own = source as WatchingSource<KubernetesObject, Secondary>;
  own.selectAs(other as never);
  await own.start(contextOf());
  const { namespaces, labelSelector } = acquired[0] as Record<string, unknown>;
  assert.deepEqual([namespaces, labelSelector], [["two"], "app=web"]);
});

test("WatchingSource says why it would not show an object", async () => {
  const { source, contextOf } = started();
  const own = source as WatchingSource<KubernetesObject, Secondary>;
  assert.equal(own.whyHidden({ namespace: "two" }), undefined);
  await own.start(contextOf());
  assert.equal(
    own.whyHidden({ namespace: "two" }),
    "it watches the namespaces one",
  );
  assert.equal(own.whyHidden({ namespace: "one" }), undefined);
  assert.equal(own.whyHidden({}), undefined, "an object of the cluster");
  const field = (fieldSelector: string) =>
    new WatchingSource(PART, { fieldSelector });
  assert.equal(
    field("metadata.namespace=one").whyHidden({ namespace: "two" }),
    "it watches the fields metadata.namespace=one",
  );
  for (const selector of ["metadata.namespace=two", "spec.size=1"]) {
    assert.equal(field(selector).whyHidden({ namespace: "two" }), undefined);
  }
  const labels = new WatchingSource(PART, { labelSelector: "app=web" });
  assert.equal(
    labels.whyHidden({ labels: { app: "db" } }),
    "it watches the labels app=web",
  );
  assert.equal(labels.whyHidden({ labels: { app: "web" } }), undefined);
});
