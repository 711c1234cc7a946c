import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { type KubernetesObject, Operator } from "@coracle/operator/core";
import type { ManagedController } from "../../../core/operator/controller_start.ts";
import { inspection, LoopLag } from "../../../core/operator/inspection.ts";

interface Inspected {
  readonly name: string;
  readonly faults: readonly string[];
  readonly objects: readonly {
    readonly deleting?: boolean;
    readonly conditions?: readonly Record<string, string>[];
    readonly runs: readonly Record<string, unknown>[];
  }[];
}

/** What is shown of a controller with these parts. */
function inspected(parts: {
  readonly watches?: readonly object[];
  readonly sources?: Readonly<Record<string, object>>;
  readonly object?: object;
  readonly known?: boolean;
  readonly runs?: readonly object[];
  readonly lease?: Parameters<typeof inspection>[0]["lease"];
}): Inspected {
  const { watches = [], sources = {}, known = true, runs = [] } = parts;
  const { object } = parts;
  const controller = {
    settings: {},
    current: () => object as KubernetesObject,
    health: () => ({
      name: "widgets",
      informers: [{ kind: "v1 Pod", watches }],
      sources: new Map(Object.entries(sources)),
    }),
    recent: () => [{ object: "default/a", known, runs }],
  } as unknown as ManagedController;
  const seen = inspection({
    state: "started",
    controllers: [controller],
    informers: undefined,
    lag: undefined,
    lease: parts.lease,
  }) as { readonly controllers: readonly Inspected[] };
  return seen.controllers[0]!;
}

test("A Lease that cannot be renewed is a fault of each controller", () => {
  const lease = { name: "default/lock", held: false, healthy: false };
  const failing = { ...lease, failingFor: 20_000, error: "It is forbidden" };
  assert.deepEqual(inspected({ lease: failing }).faults, [
    "Lease default/lock for 20s: It is forbidden",
  ]);
  const good = { ...lease, failingFor: 0, error: undefined };
  assert.deepEqual(inspected({ lease: good }).faults, []);
});

test("Operator that does not run measures no lag when it is inspected", () => {
  const clock = new VirtualClock();
  const operator = new Operator({ clock });
  operator.inspect();
  assert.equal(clock.pendingTimers, 0);
});

test("LoopLag has one measurement at a time, and none once it is closed", async () => {
  const clock = new VirtualClock();
  const lag = new LoopLag(clock);
  assert.deepEqual([lag.read(), lag.read()], [undefined, undefined]);
  assert.equal(clock.pendingTimers, 1);
  await clock.advance(20);
  assert.equal(lag.read(), 0);
  lag.close();
  assert.equal(clock.pendingTimers, 0);
});

test("LoopLag measures how late its timer is", () => {
  let now = 0;
  let fire = () => {};
  const lag = new LoopLag({
    now: () => now,
    wallTime: () => now,
    setTimer(callback) {
      fire = callback;
      return { cancel() {} };
    },
  });
  const seen = [50, 10].map((time) => {
    now = 0;
    lag.read();
    now = time;
    fire();
    return lag.read();
  });
  assert.deepEqual(seen, [30, 0], "the timer is due after 20 ms");
});

test("inspection names watches without contact, and event sources that fail", () => {
  const { faults } = inspected({
    watches: [
      { state: "watching", consecutiveFailures: 3 },
      { state: "connecting", consecutiveFailures: 0 },
      { state: "connecting", consecutiveFailures: 1, namespace: "a" },
      {
        state: "syncing",
        consecutiveFailures: 2,
        lastError: new Error("Refused"),
      },
    ],
    sources: {
      good: { status: "healthy" },
      silent: { status: "unhealthy" },
      bad: { status: "unhealthy", message: "no answer" },
    },
  });
  assert.deepEqual(faults, [
    "watch of v1 Pod in a: no contact",
    "watch of v1 Pod: Refused",
    "source silent: unhealthy",
    "source bad: no answer",
  ]);
});

test("inspection shows of an object its last run, and conditions cut short", () => {
  const writes = Array.from({ length: 30 }, (_, index) => `apply ${index}`);
  const runs = [{ at: 1 }, { at: 2, changes: [["data"]], writes }];
  const condition = { type: "Ready", status: "True", message: "x".repeat(600) };
  const object = {
    metadata: { name: "a", deletionTimestamp: "2026-01-01T00:00:00Z" },
    status: { conditions: Array(30).fill(condition), secret: "s" },
  };
  const [shown] = inspected({ object, runs }).objects;
  assert.deepEqual(shown?.runs, [{ at: 2, writes: writes.slice(0, 20) }]);
  assert.equal(shown?.deleting, true);
  assert.equal(shown?.conditions?.length, 20);
  assert.deepEqual(shown?.conditions?.[0], {
    type: "Ready",
    status: "True",
    reason: "",
    message: "x".repeat(500),
  });
  const [gone] = inspected({ object, known: false }).objects;
  assert.equal(gone?.conditions, undefined, "an object that does not exist");
  const [edited] = inspected({
    object: { metadata: {}, status: { conditions: "none" } },
  }).objects;
  assert.deepEqual([edited?.deleting, edited?.conditions], [false, []]);
});

test("LoopLag begins a measurement with each read after the last", async () => {
  const clock = new VirtualClock();
  const lag = new LoopLag(clock);
  for (const expected of [undefined, 0, 0]) {
    assert.equal(lag.read(), expected);
    assert.equal(clock.pendingTimers, 1);
    await clock.advance(20);
    assert.equal(clock.pendingTimers, 0);
  }
});

test("inspection counts no source of unknown health, nor a damaged condition", () => {
  const { faults, objects } = inspected({
    sources: { early: { status: "unknown", message: "not started" } },
    object: { metadata: {}, status: { conditions: [null] } },
  });
  assert.deepEqual(faults, []);
  const empty = { type: "", status: "", reason: "", message: "" };
  assert.deepEqual(objects[0]?.conditions, [empty]);
});
