import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { MetricsRegistry, noMetrics } from "@coracle/operator/core";
import {
  LifecycleMetrics,
  type PhasedObject,
  type PhasedStatus,
} from "@coracle/operator/workflows";
import {
  INVALID_SPEC,
  type Lifecycle,
  lifecycleOf,
} from "../../../workflows/phases/phased_status.ts";

const TARGET = { spec: {}, generation: 1 };

function stateOf(
  status: PhasedStatus,
  metadata: Partial<PhasedObject["metadata"]> = {},
): Lifecycle {
  return lifecycleOf({
    metadata: { name: "x", ...metadata },
    spec: {},
    status,
  });
}

test("lifecycleOf goes by the first that fits, in Flink's order [L44]", () => {
  const rollout = {
    phase: "Upgrading",
    running: false,
    target: TARGET,
  } as const;
  const stalled = { reason: "Broken", message: "", stalled: true };
  assert.equal(stateOf({}), "Created");
  assert.equal(stateOf({ error: stalled }), "Failed");
  assert.equal(stateOf({ rollout }), "Upgrading");
  assert.equal(stateOf({ rollout, error: stalled }), "Upgrading");
  const back = { ...rollout, phase: "RollingBack" } as const;
  assert.equal(stateOf({ rollout: back }), "RollingBack");
  const deployed = { ...rollout, phase: "Deployed", running: true } as const;
  assert.equal(stateOf({ rollout: deployed }), "Deployed");
  const suspended = { ...deployed, running: false };
  assert.equal(stateOf({ rollout: suspended, error: stalled }), "Suspended");
  const stable = { ...deployed, healthy: true, stable: TARGET };
  assert.equal(stateOf({ rollout: stable }), "Stable");
  assert.equal(stateOf({ rollout: { ...stable, healthy: false } }), "Deployed");
  const rolledBack = { ...stable, phase: "RolledBack" } as const;
  assert.equal(stateOf({ rollout: rolledBack }), "RolledBack");
  const deletionTimestamp = "2026-01-01T00:00:00Z";
  assert.equal(stateOf({ rollout }, { deletionTimestamp }), "Deleting");
});

test("lifecycleOf is Failed by errors that nothing but help can end [L44]", () => {
  const deployed = {
    phase: "Deployed",
    running: true,
    healthy: true,
    target: TARGET,
    stable: TARGET,
  } as const;
  const error = { reason: "Broken", message: "" };
  assert.equal(stateOf({ rollout: deployed, error }), "Stable");
  const stalled = { ...error, stalled: true };
  assert.equal(stateOf({ rollout: deployed, error: stalled }), "Failed");
  const rolledBack = { ...deployed, phase: "RolledBack" } as const;
  assert.equal(stateOf({ rollout: rolledBack, error: stalled }), "Failed");
  const invalid = { ...stalled, reason: INVALID_SPEC };
  assert.equal(stateOf({ rollout: deployed, error: invalid }), "Stable");
});

test("LifecycleMetrics times transitions and states as Flink does [L44]", async () => {
  const transitions: Record<string, number[]> = {};
  const states: Record<string, number[]> = {};
  const clock = new VirtualClock();
  const metrics = new LifecycleMetrics({
    ...noMetrics,
    histogram: () => ({
      remove() {},
      observe(seconds, { transition, state = "" } = {}) {
        if (transition === undefined) (states[state] ??= []).push(seconds);
        else (transitions[transition] ??= []).push(seconds);
      },
    }),
  }, { kind: "Engine", clock });
  const update = (lifecycle: Lifecycle) =>
    metrics.update({
      metadata: { name: "x", uid: "1" },
      spec: {},
      status: { lifecycle },
    });
  update("Created");
  const life: readonly Lifecycle[] = [
    ...(["Created", "Upgrading", "Upgrading", "Deployed"] as const),
    ...(["Deployed", "Stable", "Upgrading", "Upgrading"] as const),
    ...(["Deployed", "RollingBack", "RolledBack", "Suspended"] as const),
    ...(["Upgrading", "Deployed", "Deployed", "Stable"] as const),
    ...(["Upgrading", "Upgrading", "Deployed", "Deployed"] as const),
  ];
  for (const state of [...life, "Stable"] as const) {
    await clock.advance(1_000);
    update(state);
  }
  assert.deepEqual(transitions, {
    Submission: [1, 1, 1, 1, 1],
    Stabilization: [2, 2, 2],
    Suspend: [1, 1, 1],
    Rollback: [2],
    Resume: [4],
    Upgrade: [5],
  });
  assert.deepEqual(states["Created"], [1]);
  assert.equal(states["Upgrading"]!.length, 4);
  assert.equal(states["Upgrading"]!.reduce((sum, time) => sum + time), 3);
});

test("LifecycleMetrics distinguishes namespaces, and drops deleted objects [L44] [L15]", () => {
  const clock = new VirtualClock();
  const registry = new MetricsRegistry();
  const metrics = new LifecycleMetrics(registry, { kind: "Engine", clock });
  const object = (index: number): PhasedObject => ({
    metadata: { name: "x", uid: `${index}`, namespace: `ns-${index % 2}` },
    spec: {},
    status: { lifecycle: "Stable" },
  });
  for (let index = 0; index < 1_000; index++) metrics.update(object(index));
  assert.equal(metrics.size, 1_000);
  for (const namespace of ["ns-0", "ns-1"]) {
    assert.ok(
      registry.text().includes(
        `coracle_lifecycle_objects{kind="Engine",namespace="${namespace}",state="Stable"} 500`,
      ),
    );
  }
  for (let index = 0; index < 1_000; index++) metrics.forget(object(index));
  assert.equal(metrics.size, 0);
  assert.ok(!registry.text().includes("namespace="));
});

test("LifecycleMetrics times a new object from its creation [L44]", async () => {
  const clock = new VirtualClock();
  const registry = new MetricsRegistry();
  const metrics = new LifecycleMetrics(registry, { kind: "Engine", clock });
  const object: PhasedObject = {
    metadata: {
      name: "x",
      uid: "1",
      creationTimestamp: new Date(clock.wallTime()).toISOString(),
    },
    spec: {},
  };
  await clock.advance(4_000);
  metrics.update(object);
  await clock.advance(2_000);
  metrics.update(object);
  object.status = { lifecycle: "Stable" };
  metrics.update(object);
  assert.match(
    registry.text(),
    /coracle_lifecycle_state_seconds_count\{[^}]*state="Created"\} 1/,
  );
  assert.match(
    registry.text(),
    /coracle_lifecycle_state_seconds_sum\{[^}]*state="Created"\} 6/,
    "until it was last seen, as all states",
  );
});

test("LifecycleMetrics counts each object once in the state that it has", () => {
  const registry = new MetricsRegistry();
  const metrics = new LifecycleMetrics(registry, { kind: "Engine" });
  const object = (uid: string, lifecycle: Lifecycle): PhasedObject => ({
    metadata: { name: uid, uid, namespace: "shop" },
    spec: {},
    status: { lifecycle },
  });
  const counts = () =>
    [...registry.text().matchAll(/lifecycle_objects\{.*state="(\w+)"\} (\d+)/g)]
      .map(([, state, count]) => `${state} ${count}`);
  metrics.update(object("1", "Stable"));
  metrics.update(object("2", "Stable"));
  assert.deepEqual(counts(), ["Stable 2"]);
  metrics.update(object("1", "Upgrading"));
  assert.deepEqual(counts().toSorted(), ["Stable 1", "Upgrading 1"]);
  metrics.forget(object("1", "Upgrading"));
  metrics.forget(object("2", "Stable"));
  assert.deepEqual(counts(), []);
  metrics.update(object("3", "Stable"));
  assert.deepEqual(counts(), ["Stable 1"]);
});

test("LifecycleMetrics times a state from when a restarted operator first saw it", async () => {
  const clock = new VirtualClock();
  const seen: Record<string, number[]> = {};
  const metrics = new LifecycleMetrics({
    ...noMetrics,
    histogram: () => ({
      remove() {},
      observe(seconds, { transition, state = "" } = {}) {
        (seen[transition ?? state] ??= []).push(seconds);
      },
    }),
  }, { kind: "Engine", clock });
  const creationTimestamp = new Date(clock.wallTime()).toISOString();
  const update = async (lifecycle: Lifecycle) => {
    await clock.advance(1_000);
    metrics.update({
      metadata: { name: "x", uid: "1", creationTimestamp },
      spec: {},
      status: { lifecycle },
    });
  };
  await clock.advance(60_000);
  await update("Deployed");
  await update("Stable");
  const times = (name: string) => seen[name];
  assert.deepEqual([times("Stabilization"), times("Deployed")], [[1], [0]]);
  // The second upgrade ends the stay in the state before the first.
  await update("Upgrading");
  await update("Deployed");
  await update("Upgrading");
  assert.deepEqual(times("Stable"), [0]);
  await update("Stable");
  assert.equal(times("Upgrade"), undefined);
});
