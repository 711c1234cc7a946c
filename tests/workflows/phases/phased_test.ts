import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Failed,
  Stalled,
  Waiting,
} from "../../../workflows/conditions/outcome.ts";
import { lintStatus } from "../../../workflows/conditions/status_lint.ts";
import { StatusTamperedError } from "../../../workflows/phases/exclusive_status.ts";
import { PhasedWorld } from "./phased_world.ts";

const MINUTE = 60_000;

const stableWorld = PhasedWorld.stable;

test("phased deploys a new object, then sees it stable [L1]", async () => {
  const world = new PhasedWorld({ image: "a" });
  assert.equal(await world.pass(), 10_000);
  assert.equal(world.stored.status?.lifecycle, "Deployed");
  assert.equal(await world.pass(), 60_000);
  assert.equal(world.stored.status?.lifecycle, "Stable");
  assert.deepEqual(world.actions, ["start 1.1 a"]);
  assert.deepEqual(lintStatus(world.stored as never), []);
});

test("phased deploys nothing for a new object that is to be suspended [L2]", async () => {
  const world = new PhasedWorld({ image: "a", suspend: true });
  assert.equal(await world.pass(), 60_000);
  assert.deepEqual(world.actions, []);
  assert.equal(world.stored.status?.rollout?.target, undefined);
});

const imageNeeded = {
  validate: (
    _run: unknown,
    next: { image: string },
    last?: { image: string },
  ) =>
    next.image === "" || (last?.image === "a" && next.image === "forbidden")
      ? "image is not allowed"
      : undefined,
};

test("phased warns once of an invalid new object and deploys nothing [L3]", async () => {
  const world = new PhasedWorld({ image: "" }, imageNeeded);
  assert.equal(await world.pass(), undefined);
  assert.equal(await world.pass(), undefined);
  assert.deepEqual(world.events, [
    "Warning ValidationError: image is not allowed",
  ]);
  assert.equal(world.stored.status?.lifecycle, "Failed");
  assert.deepEqual(world.actions, []);
});

test("phased goes on with what runs while the spec is invalid or a transition forbidden [L4] [L5]", async () => {
  const seen: string[] = [];
  const world = await stableWorld({
    ...imageNeeded,
    observe: (_, deployed) => {
      seen.push(deployed.image);
      return { running: "", healthy: true };
    },
  });
  world.edit({ image: "forbidden" });
  assert.equal(await world.pass(), 60_000);
  assert.equal(seen.at(-1), "a");
  assert.equal(world.stored.status?.error?.message, "image is not allowed");
  assert.equal(world.stored.status?.rollout?.target?.generation, 1);
  world.edit({ image: "a" });
  await world.settle();
  assert.equal(world.stored.status?.error, undefined);
  assert.deepEqual(world.actions, []);
});

test("phased upgrades in two passes: suspend, then deploy with what was carried over [L6] [L43]", async () => {
  const world = await stableWorld();
  world.edit({ image: "b" });
  assert.equal(await world.pass(), 0);
  assert.deepEqual(world.actions, ["stop 1.1"]);
  assert.equal(world.stored.status?.lifecycle, "Upgrading");
  assert.deepEqual(world.events, [
    'Normal SpecChanged: image: "a" -> "b"',
    "Normal Suspended: Suspended what was running",
  ]);
  assert.equal(await world.pass(), 10_000);
  assert.deepEqual(world.actions, ["stop 1.1", "start 2.2 b"]);
  assert.equal(world.engine?.carry, "savepoint");
  await world.settle();
  assert.equal(world.stored.status?.lifecycle, "Stable");
  assert.equal(world.stored.status?.observedGeneration, 2);
});

test("phased deploys what it promised though the spec has become invalid since [L7]", async () => {
  const world = await stableWorld(imageNeeded);
  world.edit({ image: "b" });
  await world.pass();
  world.edit({ image: "" });
  await world.pass();
  assert.equal(world.engine?.spec.image, "b");
});

test("phased lets a newer spec in between suspension and deployment [X5]", async () => {
  const world = await stableWorld();
  world.edit({ image: "b" });
  await world.pass();
  world.edit({ image: "c" });
  await world.settle();
  assert.equal(world.engine?.spec.image, "c");
  assert.deepEqual(world.actions.filter((a) => a.startsWith("start")), [
    "start 3.3 c",
  ]);
});

test("phased tells a failed deployment once, and a success clears it [L8]", async () => {
  let fails = true;
  const failing: PhasedWorld = new PhasedWorld({ image: "a" }, {
    deploy: (_, { spec, attempt, carry }) => {
      if (fails) throw new Failed("NoQuota", "no room");
      failing.engine = { spec, attempt, carry };
    },
  });
  assert.equal(await failing.pass(), 60_000);
  assert.equal(await failing.pass(), 60_000);
  const warnings = failing.events.filter((event) =>
    event.startsWith("Warning")
  );
  assert.deepEqual(warnings, ["Warning NoQuota: no room"]);
  assert.equal(failing.stored.status?.error?.reason, "NoQuota");
  fails = false;
  await failing.pass();
  assert.equal(failing.stored.status?.error, undefined);
});

test("phased chains the causes of an unexpected error, writes it and throws it [L9]", async () => {
  const world = new PhasedWorld({ image: "a" }, {
    deploy: () => {
      throw new Error("outer", { cause: new Error("inner") });
    },
  });
  await assert.rejects(world.pass(), /outer/);
  assert.equal(world.stored.status?.error?.message, "outer -> inner");
  assert.deepEqual(world.events.at(-1), "Warning Error: outer -> inner");
});

test("phased forgets a first deployment that did not land [L10] [L34]", async () => {
  let fails = true;
  const deployed: string[] = [];
  const world = new PhasedWorld({ image: "a" }, {
    deploy: (_, { spec, attempt, carry }) => {
      if (fails) throw new Error("no route");
      deployed.push(spec.image);
      world.engine = { spec, attempt, carry };
    },
  });
  await assert.rejects(world.pass());
  world.edit({ image: "b" });
  fails = false;
  await world.pass();
  assert.deepEqual(deployed, ["b"]);
});

test("phased waits, and goes on, when a deployment asks it to wait [L11]", async () => {
  let ready = false;
  const world: PhasedWorld = new PhasedWorld({ image: "a" }, {
    deploy: (_, { spec, attempt, carry }) => {
      if (!ready) throw new Waiting("NoBackup", "not yet", { after: 3_000 });
      world.engine = { spec, attempt, carry };
    },
  });
  assert.equal(await world.pass(), 3_000);
  assert.equal(world.stored.status?.lifecycle, "Upgrading");
  ready = true;
  await world.settle();
  assert.equal(world.stored.status?.lifecycle, "Stable");
});

test("phased does not come back by itself when a function says that it is stalled [L13]", async () => {
  const world = new PhasedWorld({ image: "a" }, {
    observe: () => ({ running: "", healthy: true }),
    deploy: () => {
      throw new Stalled("UnsupportedVersion", "version 9");
    },
  });
  assert.equal(await world.pass(), undefined);
  assert.equal(world.stored.status?.error?.reason, "UnsupportedVersion");
});

test("phased writes the status before it deploys, even when that throws [L16]", async () => {
  let promised: unknown;
  const world: PhasedWorld = new PhasedWorld({ image: "a" }, {
    deploy: () => {
      promised = world.stored.status?.rollout;
      throw new Error("no route");
    },
  });
  await assert.rejects(world.pass());
  assert.deepEqual(promised, {
    phase: "Upgrading",
    running: false,
    healthy: false,
    target: { spec: { image: "a" }, generation: 1, first: true, version: "v1" },
    attempt: "1.1",
    since: world.clock.wallTime(),
    revision: 2,
  });
});

test("phased observes a change that asks for nothing without acting [L17]", async () => {
  const world = await stableWorld();
  world.edit({ note: "hello" });
  assert.equal(await world.pass(), 60_000);
  assert.equal(world.stored.status?.observedGeneration, 2);
  assert.equal(world.stored.status?.rollout?.target?.generation, 1);
  assert.deepEqual(world.actions, []);
});

test("phased interrupts nothing that is busy [L19]", async () => {
  let busy: string | undefined;
  const world = await stableWorld({ busy: () => busy });
  busy = "a backup is running";
  world.edit({ image: "b" });
  assert.equal(await world.pass(), 10_000);
  assert.deepEqual(world.actions, []);
  busy = undefined;
  await world.settle();
  assert.equal(world.engine?.spec.image, "b");
});

test("phased scales in place where it can, and upgrades where it cannot [L20]", async () => {
  const scaled: number[] = [];
  const world = await stableWorld({
    scale: (_, { replicas }) => {
      scaled.push(replicas!);
    },
  });
  world.edit({ replicas: 3 });
  await world.settle();
  assert.deepEqual(scaled, [3]);
  assert.deepEqual(world.actions, []);
  assert.equal(world.stored.status?.rollout?.target?.generation, 2);
  const other = await stableWorld();
  other.edit({ replicas: 3 });
  await other.settle();
  assert.equal(other.actions.length, 2);
});

const rollback = { rollback: { after: "5m" } };

test("phased rolls back what did not become stable in time, even while the spec is invalid [L26] [L27]", async () => {
  const world = await stableWorld({ ...rollback, ...imageNeeded });
  world.broken.add("b");
  world.edit({ image: "b" });
  await world.settle();
  assert.equal(world.stored.status?.lifecycle, "Deployed");
  world.edit({ image: "" });
  await world.clock.advance(5 * MINUTE);
  await world.settle();
  assert.equal(world.engine?.spec.image, "a");
  assert.equal(world.stored.status?.rollout?.phase, "RolledBack");
  assert.deepEqual(world.stored.status?.rollout?.target?.spec.image, "b");
  const actions = world.actions.length;
  await world.pass();
  await world.pass();
  assert.equal(world.actions.length, actions, "it never rolls back twice");
});

async function rolledBack(): Promise<PhasedWorld> {
  const world = await stableWorld(rollback);
  world.broken.add("b");
  world.edit({ image: "b" });
  await world.settle();
  await world.clock.advance(5 * MINUTE);
  await world.settle();
  assert.equal(world.stored.status?.lifecycle, "RolledBack");
  world.actions.length = 0;
  return world;
}

test("phased leaves a rollback by a new spec, and needs nothing for the stable one [L28]", async () => {
  const back = await rolledBack();
  back.edit({ image: "a" });
  await back.settle();
  assert.equal(back.stored.status?.lifecycle, "Stable");
  assert.deepEqual(back.actions, []);
  const on = await rolledBack();
  on.edit({ image: "c" });
  await on.settle();
  assert.equal(on.stored.status?.lifecycle, "Stable");
  assert.equal(on.engine?.spec.image, "c");
});

test("phased does not roll back to nothing, nor when it is not safe, nor too early [L29]", async () => {
  const parked = new PhasedWorld({ image: "a", suspend: true }, rollback);
  await parked.settle();
  parked.broken.add("a");
  parked.edit({ suspend: false });
  await parked.settle();
  await parked.clock.advance(10 * MINUTE);
  await parked.settle();
  assert.equal(parked.stored.status?.lifecycle, "Deployed");
  const unsafe = await stableWorld({
    rollback: { after: "5m", safe: () => false },
  });
  unsafe.broken.add("b");
  unsafe.edit({ image: "b" });
  await unsafe.settle();
  await unsafe.clock.advance(10 * MINUTE);
  await unsafe.settle();
  assert.equal(unsafe.stored.status?.rollout?.phase, "Deployed");
});

test("phased suspends what was rolled back [L30]", async () => {
  const world = await rolledBack();
  world.edit({ suspend: true });
  await world.settle();
  assert.equal(world.engine, undefined);
  assert.equal(world.stored.status?.lifecycle, "Suspended");
});

test("phased sees that an attempt has landed by its stamp alone [L32]", async () => {
  const world = new PhasedWorld({ image: "a" });
  world.kill = { after: 2, side: "after" };
  await assert.rejects(world.pass());
  assert.equal(world.stored.status?.rollout?.phase, "Upgrading");
  world.edit({ image: "b" });
  world.restart();
  await world.pass();
  assert.equal(world.actions[0], "start 1.1 a");
  assert.equal(world.actions[1], "stop 1.1", "the newer spec is an upgrade");
});

test("phased writes each change once, and nothing where nothing changed [L39] [X2]", async () => {
  const world = await stableWorld();
  const { writes } = world;
  for (let pass = 0; pass < 5; pass++) await world.pass();
  assert.equal(world.writes, writes);
});

test("phased restores a status that somebody else has changed, and says so", async () => {
  const world = await stableWorld();
  world.edit({ image: "b" });
  await world.pass();
  world.tamper();
  await world.pass();
  assert.ok(world.events.some((e) => e.startsWith("Warning StatusTampered")));
  await world.settle();
  assert.equal(world.stored.status?.lifecycle, "Stable");
  assert.equal(world.engine?.spec.image, "b");
  assert.equal(world.engine?.carry, "savepoint", "nothing was lost");
});

test("phased ends a pass in which somebody changes the status, and recovers [X1]", async () => {
  const world: PhasedWorld = await stableWorld({
    suspend: () => {
      world.tamper();
      return { state: "done", carry: "savepoint" };
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

test("phased refuses a status that makes no sense when it starts, and loses nothing", async () => {
  const world = await stableWorld();
  const { rollout } = world.stored.status!;
  world.write({ ...world.stored.status, rollout: { phase: "Lunch" } as never });
  world.restart();
  assert.equal(await world.pass(), undefined);
  assert.equal(world.stored.status?.error?.reason, "StatusInvalid");
  assert.equal(world.ready().reason, "StatusInvalid");
  assert.deepEqual(world.actions, []);
  world.write({ ...world.stored.status, rollout });
  world.restart();
  await world.settle();
  assert.equal(world.stored.status?.lifecycle, "Stable");
  assert.deepEqual(world.actions, []);
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

test("phased tells listeners of each written status, and outlives them [L40]", async () => {
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

test("phased says in the conditions which generation was seen", async () => {
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
