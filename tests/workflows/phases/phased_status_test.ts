import assert from "node:assert/strict";
import { test } from "node:test";
import type { PhasedStatus } from "@coracle/operator/workflows";
import { StatusTamperedError } from "../../../workflows/phases/exclusive_status.ts";
import {
  type Lifecycle,
  lifecycleConditions,
  lifecycleOf,
  RolloutLog,
  type RolloutStatus,
} from "../../../workflows/phases/phased_status.ts";
import {
  readRollout,
  readStatus,
} from "../../../workflows/phases/stored_status.ts";
import { PhasedWorld } from "./phased_world.ts";

const stableWorld = PhasedWorld.stable;

test("phased writes each change once, and nothing where nothing changed [L39] [X2]", async () => {
  const world = await stableWorld();
  const { writes } = world;
  for (let pass = 0; pass < 5; pass++) await world.pass();
  assert.equal(world.writes, writes);
});

test("phased restores a status that another writer changed, and reports it", async () => {
  const world = await stableWorld();
  world.edit({ image: "b" });
  await world.pass();
  world.tamper();
  await world.pass();
  assert.ok(world.events.some((e) => e.startsWith("Warning StatusTampered")));
  await world.settle();
  assert.equal(world.stored.status?.lifecycle, "Stable");
  assert.equal(world.engine?.spec.image, "b");
  assert.equal(world.engine?.savepoint, "savepoint", "nothing was lost");
});

test("phased ends a run in which another writer changes the status, and recovers [X1]", async () => {
  const world: PhasedWorld = await stableWorld({
    suspend: () => {
      world.tamper();
      return { state: "done", savepoint: "savepoint" };
    },
  });
  world.edit({ image: "b" });
  await assert.rejects(world.pass(), StatusTamperedError);
  assert.deepEqual(world.actions, [], "nothing is deployed unannounced");
});

test("phased goes on from the newer status of another replica", async () => {
  const world = await stableWorld();
  world.edit({ image: "b" });
  const other = world.replica();
  await other.pass();
  world.stored = other.stored;
  world.engine = other.engine;
  await world.settle();
  assert.equal(world.engine?.spec.image, "b");
  assert.ok(!world.events.some((e) => e.includes("StatusTampered")));
});

test("phased does not give a re-created object the status of a dead one [X3]", async () => {
  const world = await stableWorld();
  world.put({
    metadata: { ...world.stored.metadata, uid: "uid-2", generation: 1 },
    spec: world.stored.spec,
  });
  world.engine = undefined;
  await world.pass();
  assert.deepEqual(world.actions, ["start 1.1 a"]);
});

test("phased calls onStatus for each written status, and ignores its errors [L40]", async () => {
  const told: unknown[] = [];
  const world = new PhasedWorld({ image: "a" }, {
    onStatus: (object, previous) => {
      told.push([previous === undefined, object.status?.lifecycle]);
      throw new Error("listener");
    },
  });
  await world.settle();
  assert.deepEqual(told, [
    [true, "Created"],
    [false, "Upgrading"],
    [false, "Deployed"],
    [false, "Stable"],
  ]);
});

test("phased sets the generation of the run in the conditions", async () => {
  let ill = false;
  const world: PhasedWorld = await stableWorld({
    observe: () => {
      // A newer generation appears while the pass is under way.
      if (ill) world.edit({ image: "newer" });
      return { running: "", healthy: !ill };
    },
  });
  ill = true;
  await world.pass();
  assert.equal(world.stored.metadata.generation, 2);
  const seen = world.stored.status?.conditions?.map((condition) =>
    condition.observedGeneration
  );
  assert.deepEqual(seen, [1, 1], "Reconciling and Ready");
});

const CHOICE = { spec: { image: "a" }, generation: 1, version: "v1" };
const NEXT = { spec: { image: "b" }, generation: 2, version: "v1" };
const LOG: RolloutStatus = {
  phase: "Deployed",
  running: true,
  healthy: true,
  target: CHOICE,
  stable: CHOICE,
  attempt: "1.1",
  since: 5,
};

/** Lifecycle of a status with the changed fields of a log, and an error. */
function lifecycle(rollout: object | undefined, stalled?: boolean): Lifecycle {
  const status: PhasedStatus = {
    ...(rollout && { rollout: { ...LOG, ...rollout } }),
    ...(stalled !== undefined && {
      error: { reason: "R", message: "m", ...(stalled && { stalled }) },
    }),
  };
  return lifecycleOf({ metadata: { name: "a" }, spec: {}, status });
}

test("lifecycleOf is the first state that applies to a log and an error", () => {
  assert.equal(lifecycle(undefined, false), "Created");
  assert.equal(lifecycle(undefined, true), "Failed");
  assert.equal(lifecycle({}), "Stable");
  assert.equal(lifecycle({}, false), "Stable");
  assert.equal(lifecycle({}, true), "Failed");
  assert.equal(lifecycle({ target: NEXT }), "Deployed");
  assert.equal(lifecycle({ healthy: false }), "Deployed");
  assert.equal(lifecycle({ phase: "Upgrading", running: false }), "Upgrading");
  assert.equal(lifecycle({ running: false }, true), "Suspended");
  assert.equal(lifecycle({ phase: "RolledBack", target: NEXT }), "RolledBack");
  assert.equal(lifecycle({ phase: "RolledBack" }, true), "Failed");
});

test("lifecycleConditions shows an error, then a pending reason, then the rest", () => {
  const error = { reason: "Error", message: "error" };
  const pending = { reason: "Busy", message: "busy" };
  const shown = (facts: object) =>
    lifecycleConditions(
      [],
      {
        lifecycle: "Stable",
        error: undefined,
        pending: undefined,
        message: "own",
        ...facts,
      },
      { now: 0, generation: 1 },
    ).map(({ type, status, reason, message }) =>
      `${type} ${status} ${reason} ${message}`
    );
  const both = { error, pending };
  assert.deepEqual(shown(both), [
    "Reconciling True Error error",
    "Ready False Error error",
  ]);
  assert.deepEqual(shown({ pending }), [
    "Reconciling True Busy busy",
    "Ready False Busy busy",
  ]);
  assert.deepEqual(
    shown({ pending: { message: "busy" } }).at(-1),
    [
      "Ready False Stable busy",
    ].join(),
  );
  assert.deepEqual(shown({}), ["Ready True Stable own"]);
  assert.match(shown({ ...both, lifecycle: "RolledBack" })[0]!, /^Stalled/);
});

test("readStatus leaves out fields that are damaged", () => {
  assert.deepEqual(readStatus("ab"), {});
  const { error, lifecycle } = readStatus({
    error: { reason: "R", message: 5 },
    lifecycle: "toString",
  });
  assert.deepEqual([error, lifecycle], [undefined, undefined]);
  assert.deepEqual(readStatus({ error: { reason: 5, message: "m" } }), {
    conditions: [],
  });
});

test("readRollout keeps a count only if it is a whole number from 0", () => {
  const isKept = (revision: unknown) =>
    readRollout({ ...LOG, revision }, {}).damaged.length === 0;
  const counts = [0, 7, 2 ** 53 - 1, 1.5, -1, 2 ** 53, "1", null, NaN];
  assert.deepEqual(counts.filter(isKept), [0, 7, 2 ** 53 - 1]);
});

test("readRollout names each field that is damaged or missing once", () => {
  const damaged = (bad: object, spec: unknown = {}) =>
    readRollout(
      JSON.parse(JSON.stringify({ ...LOG, revision: 1, ...bad })),
      spec,
    ).damaged;
  assert.deepEqual(damaged({}), []);
  for (const attempt of ["1.1x", "x1.1", "1.1234567890123456", "1", 5]) {
    assert.deepEqual(damaged({ attempt }), ["attempt"]);
  }
  for (
    const bad of [
      { first: 1 },
      { version: 1 },
      { generation: -1 },
      { spec: undefined },
      { spec: "a" },
    ]
  ) assert.deepEqual(damaged({ stable: { ...NEXT, ...bad } }), ["stable"]);
  const text = { spec: "a", generation: 1 };
  assert.deepEqual(damaged({ target: text, stable: text }, "b"), []);
  const failed = { target: NEXT, stable: CHOICE };
  for (const phase of ["RollingBack", "RolledBack"] as const) {
    assert.deepEqual(damaged({ phase, ...failed }), []);
    assert.deepEqual(damaged({ phase, target: NEXT, stable: NEXT }), ["phase"]);
    const inFlight = { phase, ...failed, running: false };
    assert.deepEqual(damaged({ ...inFlight, attempt: undefined }), ["attempt"]);
    assert.deepEqual(damaged({ phase, target: NEXT, stable: undefined }), [
      "stable",
    ]);
  }
  const nothing = { target: undefined, stable: undefined };
  assert.deepEqual(damaged({ ...nothing, running: false }), ["target"]);
  assert.deepEqual(damaged({ ...nothing, phase: "Upgrading" }), ["target"]);
  assert.deepEqual(
    damaged({ ...nothing, phase: "Upgrading", running: false }),
    [],
  );
  const { log } = readRollout({ ...LOG, phase: "RolledBack" }, {});
  assert.ok(!("phase" in log));
});

test("RolloutLog converts the specs of other versions, each with its version", () => {
  const converted: unknown[] = [];
  const { status } = new RolloutLog<unknown>(
    { ...LOG, target: NEXT, stable: { ...CHOICE, version: "v0" } },
    {
      version: "v1",
      convert(stored, version) {
        converted.push(version);
        return { ...stored as object, isNew: true };
      },
    },
  );
  assert.deepEqual(converted, ["v0"]);
  assert.deepEqual(status.target, NEXT);
  assert.deepEqual(status.stable, {
    ...CHOICE,
    spec: { image: "a", isNew: true },
  });
});

/** Log with changed fields. */
function logWith(fields: Partial<RolloutStatus>): RolloutLog<unknown> {
  return new RolloutLog<unknown>(
    { ...LOG, ...fields },
    { version: "v1", convert: undefined },
  );
}

test("RolloutLog knows what is deployed, and what may be", () => {
  const upgrading = { target: NEXT, attempt: "2.2" } as const;
  const phases = ["Upgrading", "Deployed", "RollingBack", "RolledBack"];
  const found = phases.flatMap((phase) =>
    [true, false].map((running) => {
      const log = logWith({ ...upgrading, phase, running } as never);
      return [log.deployed?.generation, log.isChanging, log.inFlight];
    })
  );
  assert.deepEqual(found, [
    [2, true, undefined],
    [2, true, "2.2"],
    [2, false, undefined],
    [2, false, undefined],
    [2, true, undefined],
    [2, true, "2.2"],
    [1, false, undefined],
    [1, false, undefined],
  ]);
});

test("RolloutLog takes the stable spec for the target when it leaves a rollback", () => {
  const log = logWith({ phase: "RolledBack", target: NEXT });
  log.markSuspending();
  assert.deepEqual(log.status, { ...LOG, phase: "Upgrading" });
  const back = logWith({ phase: "RollingBack", target: NEXT });
  back.markSuspending();
  assert.deepEqual(back.status.target, NEXT);
});

test("RolloutLog records a deployment that is not known to be stable", () => {
  const log = logWith({
    phase: "Upgrading",
    target: { ...NEXT, first: true },
    savepoint: "s",
  });
  log.markDeployed();
  const { stable, ...status } = log.status;
  assert.deepEqual(stable, CHOICE);
  assert.deepEqual(status, {
    phase: "Deployed",
    running: true,
    healthy: false,
    target: NEXT,
    attempt: "1.1",
    since: 5,
  });
});

test("RolloutLog retries an attempt that was not deployed with its id", () => {
  const fields = { phase: "Upgrading", running: false } as const;
  const log = logWith({ ...fields, target: NEXT, attempt: "2.7" });
  log.markNotDeployed(NEXT);
  assert.equal(log.recordDeployment(NEXT, 9), false);
  assert.equal(log.status.attempt, "2.7");
  const newer = { ...NEXT, generation: 3 };
  assert.equal(log.recordDeployment(newer, 9), true);
  const { attempt, since, target } = log.status;
  assert.deepEqual([attempt, since, target], ["3.8", 9, newer]);
  const first = logWith({ ...fields, target: { ...NEXT, first: true } });
  first.markNotDeployed(NEXT);
  assert.notEqual(first.status.target, undefined);
  first.markNotDeployed(newer);
  assert.equal(first.status.target, undefined);
});

test("RolloutLog keeps no earlier savepoint when a deployment is suspended", () => {
  const log = logWith({ savepoint: "old" });
  log.markSuspended(undefined);
  assert.deepEqual(log.status, { ...LOG, running: false, healthy: false });
  log.markSuspended("new");
  assert.equal(log.status.savepoint, "new");
});

test("RolloutLog deploys again as a rollback what was rolled back to", () => {
  for (const phase of ["Deployed", "RolledBack"] as const) {
    const log = logWith({ phase, target: NEXT });
    log.markRecovering("backup");
    const isBack = phase === "RolledBack";
    assert.equal(log.status.phase, isBack ? "RollingBack" : "Upgrading");
    assert.equal(log.status.savepoint, "backup");
  }
});

test("RolloutLog takes a spec in force without a deployment for stable", () => {
  const log = logWith({ phase: "Upgrading", running: false });
  log.markInForce(NEXT);
  const { phase, target, stable } = log.status;
  assert.deepEqual([phase, target, stable], ["Deployed", NEXT, NEXT]);
});
