import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { silentLogger } from "@coracle/operator/client";
import type {
  EventSource,
  NamespaceSet,
  SourceContext,
} from "@coracle/operator/core";
import { ConfigMap, type KubernetesObject } from "@coracle/operator/kinds";
import {
  Activation,
  CrdPresence,
  GatedSource,
} from "../../../workflows/graph/activation.ts";
import { fc } from "../../support/property.ts";
import { recordedContext } from "../../support/source_context.ts";

const MAP: ConfigMap = { metadata: { namespace: "default", name: "a" } };

/** A gated source, what its inner one was told, and what was logged. */
function gated(
  methods: Partial<EventSource<KubernetesObject, ConfigMap>> = {},
) {
  const calls: (string | NamespaceSet)[] = [];
  const logged: string[] = [];
  const clock = new VirtualClock();
  const source = new GatedSource<KubernetesObject, ConfigMap>({
    name: "maps",
    kind: ConfigMap,
    readOnly: true,
    start({ namespaces }) {
      calls.push("start", namespaces);
      return Promise.resolve();
    },
    stop() {
      calls.push("stop");
      return Promise.resolve();
    },
    changeNamespaces(namespaces) {
      calls.push("change", namespaces);
      return Promise.resolve();
    },
    get: () => MAP,
    list: () => [MAP],
    secondaries: () => [MAP],
    ...methods,
  });
  const context = recordedContext(clock, [], {
    log: { ...silentLogger, error: (message) => logged.push(message) },
  });
  return { source, context, clock, calls, logged };
}

test("GatedSource shows the inner source only while a node is active", async () => {
  const { source, context } = gated();
  const shown = async () => [
    await source.get(MAP.metadata as Required<typeof MAP.metadata>),
    ...await source.list("default"),
    ...await source.secondaries(MAP),
  ];
  assert.deepEqual([source.readOnly, source.kind], [true, ConfigMap]);
  await source.start(context);
  assert.deepEqual(await shown(), [undefined]);
  assert.equal(source.health().message, "not active");
  await source.hold("node", "default/a");
  assert.deepEqual(await shown(), [MAP, MAP, MAP]);
  await source.release("node", "default/a");
  assert.deepEqual(await shown(), [undefined]);
});

test("GatedSource passes writes and primaries on from the start to the stop", async () => {
  const syncing = Promise.withResolvers<void>();
  const passed: unknown[] = [];
  const write = { succeed() {}, fail() {} };
  const { source, context, calls } = gated({
    start: () => syncing.promise,
    beginWrite: ({ name }) => {
      passed.push(name);
      return write;
    },
    onPrimary: ({ type }) => void passed.push(type),
    list: (namespace) => {
      passed.push(namespace);
      return [];
    },
  });
  const key = { namespace: "default", name: "a" };
  const pass = () => {
    source.onPrimary({ type: "modified", key, object: MAP });
    return source.beginWrite(key) === write;
  };
  await source.start(context);
  assert.equal(pass(), false);
  const held = source.hold("node", "default/a");
  assert.equal(pass(), true);
  await source.changeNamespaces(["one"]);
  assert.deepEqual(calls, ["change", ["one"]]);
  assert.deepEqual(passed.splice(0), ["modified", "a"]);
  syncing.resolve();
  await held;
  assert.equal(pass(), true);
  await source.list("default");
  assert.deepEqual(passed.splice(0), ["modified", "a", "default"]);
  await source.release("node", "default/a");
  assert.equal(pass(), false);
  assert.deepEqual(passed, []);
});

test("GatedSource triggers primaries with an active node, after its sync", async () => {
  const inner = Promise.withResolvers<SourceContext<KubernetesObject>>();
  const syncing = Promise.withResolvers<void>();
  const { source, context } = gated({
    start(given) {
      inner.resolve(given);
      return syncing.promise;
    },
  });
  await source.start(context);
  const held = source.hold("node", "default/a");
  const { trigger } = await inner.promise;
  assert.equal(trigger("default/a"), false, "its run sees the first state");
  syncing.resolve();
  await held;
  assert.equal(trigger({ namespace: "default", name: "a" }), true);
  assert.equal(trigger("default/b"), false);
  await source.hold("node", "*");
  assert.equal(trigger("default/b"), true);
  assert.deepEqual(context.triggered, ["default/a", "default/b"]);
});

test("GatedSource forgets its nodes when it stops, and starts again", async () => {
  const { source, context, calls } = gated();
  await source.start(context);
  await source.hold("node", "default/a");
  await source.stop();
  await assert.rejects(source.hold("node", "default/b"), /it is not started/);
  calls.length = 0;
  await source.start(context);
  await source.hold("node", "default/b");
  await source.release("node", "default/b");
  assert.deepEqual(calls, ["start", "all", "stop"]);
});

test("GatedSource starts its inner source in the namespaces of the moment", async () => {
  const { source, context, calls } = gated();
  await source.start(context);
  await source.changeNamespaces(["one"]);
  assert.deepEqual(calls, [], "there is nothing to change yet");
  await source.hold("node", "default/a");
  await source.changeNamespaces(["two"]);
  assert.deepEqual(calls.splice(0), ["start", ["one"], "change", ["two"]]);
  await source.stop();
  assert.deepEqual(calls, ["stop"]);
});

test("GatedSource reports that it was not registered, and a failed start", async () => {
  const { source, context, calls } = gated({
    start: () => Promise.reject(new Error("As asked")),
  });
  const hold = () => source.hold("node", "default/a");
  await assert.rejects(
    hold(),
    /^Error: Cannot use the source "maps": it is not started: register/,
  );
  await source.start(context);
  await assert.rejects(hold(), /^Error: As asked$/);
  assert.equal(source.health().message, "not active");
  await assert.rejects(hold(), /^Error: As asked$/, "it is tried again");
  assert.ok(calls.every((call) => call === "stop"));
});

test("GatedSource gives up an inner source that does not sync, with what ails it", async () => {
  const { source, context, clock } = gated({
    start: () => new Promise(() => {}),
    health: () => ({ status: "unhealthy", message: "no such kind" }),
  });
  await source.start(context);
  const held = assert.rejects(
    source.hold("node", "default/a"),
    /has not synced within \d+ ms: received no such kind$/,
  );
  await clock.advance(3_600_000);
  await held;
  assert.equal(clock.pendingTimers, 0);
  assert.equal(source.health().message, "not active");
});

test("GatedSource stops with its last primary, and logs a failure to stop", async () => {
  const { source, context, calls, logged } = gated({
    stop: () => Promise.reject(new Error("As asked")),
  });
  await source.start(context);
  await source.hold("node", "default/a");
  await source.hold("node", "default/b");
  for (const name of ["a", "b"]) {
    assert.deepEqual(logged, []);
    const key = { namespace: "default", name };
    source.onPrimary({ type: "deleted", key, object: { metadata: key } });
    await new Promise((resolve) => setTimeout(resolve));
  }
  assert.deepEqual(logged, ["Cannot stop a source"]);
  assert.deepEqual(calls, ["start", "all"]);
});

test("GatedSource ignores a start that ends after the source was stopped", async () => {
  const starts: (() => void)[] = [];
  const { source, context } = gated({
    start: () => new Promise<void>((resolve) => starts.push(resolve)),
  });
  const get = async () =>
    await source.get(MAP.metadata as Required<typeof MAP.metadata>);
  const turn = () => new Promise((resolve) => setTimeout(resolve));
  await source.start(context);
  const first = source.hold("node", "default/a");
  await turn();
  await source.release("node", "default/a");
  const second = source.hold("node", "default/a");
  await turn();
  starts[0]!();
  await first;
  await turn();
  assert.equal(await get(), undefined, "the second start has not synced");
  starts[1]!();
  await second;
  assert.equal(await get(), MAP);
});

test("CrdPresence ignores a change that ends after it was stopped", async () => {
  const informer = {
    addHandler: () => ({ synced: Promise.resolve() }),
    get: () => ({
      metadata: { name: "routes.example.com" },
      spec: { versions: [{ name: "v1", served: true }] },
      status: { conditions: [{ type: "Established", status: "True" }] },
    }),
  };
  const lease = { informer, release: () => Promise.resolve() };
  const context = recordedContext(new VirtualClock(), [MAP], {
    informers: { acquire: () => lease } as never,
  });
  const presence = new CrdPresence({
    group: "example.com",
    version: "v1",
    kind: "Route",
    plural: "routes",
    scope: "Namespaced",
  });
  const reaction = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  await presence.follow((isPresent) => {
    if (!isPresent) return Promise.resolve();
    begun.resolve();
    return reaction.promise;
  });
  const started = presence.start(context);
  await begun.promise;
  const stopped = presence.stop();
  reaction.resolve();
  await Promise.all([started, stopped]);
  assert.equal(presence.present, false);
  assert.deepEqual(context.triggered, []);
});

/** Action of a workflow on a gated source. */
type Act =
  | { do: "hold" | "release"; node: string; primary: string }
  | { do: "deleted"; primary: string }
  | { do: "settle" };

const node = fc.constantFrom("first", "second");
const primary = fc.constantFrom("default/a", "default/b");
const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ do: fc.constantFrom("hold", "release"), node, primary }),
  fc.record({ do: fc.constant("deleted"), primary }),
  fc.record({ do: fc.constant("settle") }),
);

test("GatedSource is open exactly while a node holds it, and never starts twice", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(act, { maxLength: 30, size: "max" }),
      async (acts) => {
        let state = "stopped";
        const faults: string[] = [];
        const slow = (from: string, via: string, to: string) => async () => {
          if (state !== from) faults.push(`${via} while it is ${state}`);
          state = via;
          await new Promise<void>((resolve) => clock.setTimer(resolve, 10));
          if (state === via) state = to;
        };
        const { source, context, clock } = gated({
          start: slow("stopped", "starting", "started"),
          // It may be stopped while it starts.
          stop: () => {
            if (state === "stopped") return Promise.resolve();
            if (state === "starting") state = "started";
            return slow("started", "stopping", "stopped")();
          },
        });
        await source.start(context);
        const holders = new Set<string>();
        for (const step of acts) {
          if (step.do === "settle") await clock.advance(100);
          else if (step.do === "deleted") {
            const [namespace, name = ""] = step.primary.split("/");
            const key = { namespace, name } as {
              namespace: string;
              name: string;
            };
            source.onPrimary({ type: "deleted", key, object: undefined });
            for (const holder of holders) {
              if (holder.endsWith(step.primary)) holders.delete(holder);
            }
          } else {
            const holder = `${step.node} ${step.primary}`;
            if (step.do === "hold") holders.add(holder);
            else holders.delete(holder);
            source[step.do](step.node, step.primary).catch(() => {});
          }
          if (step.do !== "settle") continue;
          assert.equal(state, holders.size > 0 ? "started" : "stopped");
          assert.equal((await source.list()).length, holders.size > 0 ? 1 : 0);
        }
        const stopped = source.stop();
        await clock.advance(100);
        await stopped;
        assert.deepEqual([state, faults, clock.pendingTimers], [
          "stopped",
          [],
          0,
        ]);
      },
    ),
    { numRuns: 300 },
  );
});

test("GatedSource starts again after its inner source could not be stopped", async () => {
  let fails = true;
  const { source, context, calls } = gated({
    stop: () => fails ? Promise.reject(new Error("stuck")) : Promise.resolve(),
  });
  await source.start(context);
  await source.hold("node", "default/a");
  await assert.rejects(source.release("node", "default/a"), /stuck/);
  fails = false;
  await source.hold("node", "default/a");
  assert.deepEqual(calls, ["start", "all", "start", "all"]);
  assert.equal((await source.list()).length, 1);
});

test("Activation waits for the sources of a node that becomes active", async () => {
  const syncing = Promise.withResolvers<void>();
  const inner = {
    name: "maps",
    kind: ConfigMap,
    start: () => syncing.promise,
    stop: () => Promise.resolve(),
  };
  const node = {
    name: "maps",
    dependent: { sources: [inner], read: () => undefined },
    when: { activeWhen: () => true },
  } as never;
  const activation = new Activation<KubernetesObject>([node]);
  await activation.sources[0]?.start(gated().context);
  let isActive = false;
  const run = { primary: MAP, ctx: {} } as never;
  const verdict = activation.verdict(node, run).then(() => isActive = true);
  for (let turn = 0; turn < 20; turn++) await undefined;
  assert.equal(isActive, false);
  syncing.resolve();
  await verdict;
});
