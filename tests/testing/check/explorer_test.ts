import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Explorer,
  ScheduleGraph,
} from "../../../dev/testing/check/explorer.ts";
import type {
  EventEntry,
  RequestEntry,
  TraceEntry,
} from "../../../dev/testing/check/trace.ts";
import type { World } from "../../../dev/testing/check/world.ts";

/** World with a ConfigMap of a size, and what has happened in it. */
function worldOf(trace: readonly TraceEntry[] = [], size = 1): World {
  const metadata = { namespace: "default", name: "a" };
  const object = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata,
    data: { size },
  };
  return { trace, snapshot: () => ({ a: object }) } as object as World;
}

const actions = (...names: readonly (string | undefined)[]) =>
  names.map((name) => ({ name, run() {} }));

/** Explorer of a step of a world. */
function explorer(
  { forced = [], graph, world = worldOf(), step = 0 }: {
    readonly forced?: readonly number[];
    readonly graph?: ScheduleGraph | undefined;
    readonly world?: World;
    readonly step?: number;
  },
): Explorer {
  const made = new Explorer(forced, graph);
  made.begin(world, step);
  return made;
}

test("An explorer leaves each other choice for a later run", () => {
  const graph = new ScheduleGraph();
  const one = explorer({ graph });
  assert.equal(one.order(actions("a", "b", "c"), actions("a", "b", "c")), 0);
  assert.equal(one.order(actions("b", "c"), actions("b", "c")), 0);
  assert.equal(one.crash("patch a"), undefined);
  one.end();
  assert.deepEqual(graph.waiting, [
    [],
    [1],
    [2],
    [0, 1],
    [0, 0, 1],
    [0, 0, 2],
  ]);
  assert.equal(graph.states, 3);
  assert.equal(graph.count(), 1);
  assert.equal(one.choices, "a");
});

test("An explorer makes its first choices as they are given", () => {
  const three = actions("a", "b", "c");
  const one = explorer({ forced: [2, 1], graph: new ScheduleGraph() });
  assert.deepEqual([1, 2, 3].map(() => one.order(three, three)), [2, 1, 0]);
  assert.equal(one.choices, "cb");
  // A plan may be older than the operator.
  const old = explorer({ forced: [2] });
  assert.equal(old.order(actions("a", "b"), []), 1);
});

test("An explorer does not vary what has no name, or comes before its step", () => {
  const graph = new ScheduleGraph();
  const one = explorer({ graph });
  assert.equal(one.order(actions("a", undefined), []), 1);
  const early = new Explorer([1], graph);
  assert.equal(early.order(actions("a", "b"), []), 0);
  assert.equal(early.crash("patch a"), undefined);
  early.rest();
  early.end();
  assert.deepEqual(graph.waiting, [[]]);
});

test("An operator is killed once in a run, in two ways", () => {
  for (
    const [choice, how] of [[1, "unanswered"], [2, "before"]] as const
  ) {
    const graph = new ScheduleGraph();
    const one = explorer({ forced: [choice], graph });
    assert.equal(one.crash("patch a"), how);
    assert.equal(one.crash("patch b"), undefined);
    assert.deepEqual(graph.waiting, [[]]);
    assert.equal(one.choices, ["", "b", "c"][choice]);
  }
});

test("A kill before a write is tried once for a state of the server", () => {
  const graph = new ScheduleGraph();
  const waits = (world: World) => {
    const before = graph.waiting.length;
    explorer({ graph, world }).crash(`patch ${before}`);
    return graph.waiting.length - before;
  };
  assert.equal(waits(worldOf()), 2);
  // A restarted operator would know the same: without the write.
  assert.equal(waits(worldOf()), 1);
  assert.equal(waits(worldOf([], 2)), 2);
});

/** Runs one choice of a second run; whether its state is that of the first. */
function isSame(
  first: Parameters<typeof explorer>[0] & { readonly pending?: string },
  second: Parameters<typeof explorer>[0] & { readonly pending?: string },
): boolean {
  const graph = new ScheduleGraph();
  const runs = [first, second].map(({ pending = "a", ...given }) => {
    const one = explorer({ ...given, graph });
    one.order(actions("a", "b"), actions(pending, "b"));
    return one;
  });
  assert.equal(runs[0]?.isKnown, false);
  return runs[1]?.isKnown ?? false;
}

const request = (more: Partial<RequestEntry> = {}) =>
  ({
    type: "request",
    verb: "create",
    resource: "configmaps",
    subresource: "",
    namespace: "default",
    name: "a",
    code: 201,
    changed: true,
    answered: true,
    ...more,
  }) as RequestEntry;
const event = (more: Partial<EventEntry> = {}) =>
  ({
    type: "event",
    n: 1,
    event: "ADDED",
    resource: "configmaps",
    namespace: "default",
    name: "a",
    uid: "00000000-0000-0000-0000-000000000001",
    revision: 7,
    ...more,
  }) as EventEntry;
const start: TraceEntry = { type: "start", at: 0, incarnation: 2, why: "" };
const external = {
  type: "external",
  at: 0,
  incarnation: 1,
  method: "POST",
  url: "http://a.test/",
  n: 1,
  status: 200,
} as const;

test("A run ends where all that matters later is as in another run", () => {
  assert.equal(isSame({}, {}), true);
  const ended = explorer({});
  assert.equal(ended.isKnown, false);
  for (
    const [what, given] of [
      ["another step", { step: 1 }],
      ["another state of the server", { world: worldOf([], 2) }],
      ["another pending action", { pending: "c" }],
      ["a request", { world: worldOf([request()]) }],
      ["an event", { world: worldOf([event()]) }],
      ["a call", { world: worldOf([external]) }],
    ] as const
  ) assert.equal(isSame({}, given), false, what);
});

test("What an operator has not seen or forgets makes no other state", () => {
  const same = (
    a: readonly TraceEntry[],
    b: readonly TraceEntry[],
  ) => isSame({ world: worldOf(a) }, { world: worldOf(b) });
  const watch = request({ verb: "watch", changed: false, code: 200 });
  const lease = request({ resource: "leases", changed: false, code: 200 });
  const said = request({ resource: "events" });
  assert.equal(same([], [watch, lease, said]), true);
  assert.equal(same([], [event({ n: undefined })]), true);
  // A killed operator knows neither requests nor events, but calls are made.
  const read = request({ verb: "get", changed: false, code: 200 });
  assert.equal(same([], [read]), false);
  assert.equal(same([start], [read, event(), start]), true);
  assert.equal(same([start], [external, start]), false);
  // What is created or deleted differs in every case.
  assert.equal(same([start], [request(), start]), false);
  const removed = request({ verb: "delete", code: 200 });
  assert.equal(same([request(), start], [request(), removed, start]), false);
});

test("Versions, UIDs and times of a run make no other state", () => {
  const uid = (digit: number) =>
    `${String(digit).repeat(8)}-1111-4111-8111-111111111111`;
  const trace = (digit: number) => [
    event({ uid: uid(digit), revision: digit }),
    request({
      verb: "patch",
      code: 200,
      body: JSON.stringify({
        owner: uid(digit),
        resourceVersion: `${digit}`,
        at: `2026-01-0${digit}T00:00:00Z`,
      }),
    }),
  ];
  const world = (digit: number) => ({ world: worldOf(trace(digit)) });
  assert.equal(isSame(world(1), world(2)), true);
});

test("After a rest the order of earlier requests makes no other state", () => {
  const rested = (...trace: readonly TraceEntry[]) => {
    const graph = new ScheduleGraph();
    return (other: readonly TraceEntry[]) => {
      for (const all of [trace, other]) {
        const one = explorer({ graph, world: worldOf(all) });
        one.rest();
        one.order(actions("a", "b"), actions("a", "b"));
        if (all === other) return one.isKnown;
      }
      return undefined;
    };
  };
  const get = request({ verb: "get", changed: false, code: 200 });
  const list = request({ verb: "list", changed: false, code: 200 });
  assert.equal(rested(get, list, event())([list, get]), true);
  assert.equal(rested(get, list)([get]), false);
  // A request that failed is made again.
  const failed = request({ verb: "list", changed: false, code: 500 });
  assert.equal(rested(get, failed)([get]), true);
});

test("An operator that was killed is in another state than one that may be", () => {
  const graph = new ScheduleGraph();
  const two = actions("a", "b");
  explorer({ graph }).order(two, two);
  const killed = explorer({ graph, forced: [1] });
  assert.equal(killed.crash("patch a"), "unanswered");
  killed.order(two, two);
  assert.equal(killed.isKnown, false);
});
