import assert from "node:assert/strict";
import { test } from "node:test";
import { Failed } from "@coracle/operator/workflows";
import {
  type EngineDefinition,
  imageNeeded,
  PhasedWorld,
} from "./phased_world.ts";

const stableWorld = PhasedWorld.stable;
const rollback: EngineDefinition = { rollback: { after: "5m" } };
const coughs: EngineDefinition = {
  stable: ({ healthy }) => healthy || "the engine coughs",
};

/** Damages fields of the write-ahead log, and restarts the operator. */
function damage(world: PhasedWorld, bad: object): void {
  const { status } = world.stored;
  world.write({ ...status, rollout: { ...status!.rollout, ...bad } } as never);
  world.restart();
  world.actions.length = 0;
}

/** Reasons of Ready in the statuses that are written. */
function reasons(): {
  readonly seen: string[];
  readonly onStatus: NonNullable<EngineDefinition["onStatus"]>;
} {
  const seen: string[] = [];
  return {
    seen,
    onStatus({ status }) {
      const ready = status?.conditions?.find(({ type }) => type === "Ready");
      seen.push(`${ready?.reason}: ${ready?.message}`);
    },
  };
}

test("phased reports a change of scale once, also while it is deferred", async () => {
  let busy: string | undefined = "a backup is running";
  const world = await stableWorld({
    scale: () => {},
    deferChange: (_, observed) => observed && busy,
  });
  world.edit({ replicas: 3 });
  for (let pass = 0; pass < 3; pass++) await world.pass();
  busy = undefined;
  await world.settle();
  assert.deepEqual(world.events, ["Normal SpecChanged: replicas: 1 -> 3"]);
});

test("phased passes what it observes to the function that defers a change", async () => {
  const asked: unknown[] = [];
  const world = await stableWorld({
    deferChange: (_, observed) => void asked.push(observed?.running),
  });
  asked.length = 0;
  world.edit({ image: "b" });
  await world.pass();
  assert.deepEqual(asked, ["1.1"]);
});

test("phased shows the error of the spec rather than that of the deployment", async () => {
  const world = await stableWorld({
    ...imageNeeded,
    failed: ({ healthy }) =>
      healthy ? undefined : { reason: "EngineFailed", message: "out of oil" },
  });
  world.broken.add("a");
  world.edit({ image: "" });
  await world.settle();
  assert.equal(world.ready().reason, "ValidationError");
  world.edit({ image: "a" });
  await world.settle();
  assert.equal(world.ready().reason, "EngineFailed");
});

test("phased keeps the reason of a deferral when an earlier error ends", async () => {
  let failure: Error | undefined;
  const world: PhasedWorld = await stableWorld({
    observe() {
      if (failure) throw failure;
      return { running: "", healthy: true };
    },
    deferChange: (_, observed) => observed && "a backup is running",
  });
  failure = new Failed("Unreachable", "no answer");
  await world.pass();
  failure = undefined;
  world.edit({ image: "b" });
  await world.pass();
  assert.equal(world.stored.status?.error, undefined);
  assert.equal(world.ready().reason, "Busy");
});

test("phased keeps the error that it retries until a run has succeeded", async () => {
  const failure = new Failed("NoBackup", "no space");
  let fails = false;
  const world = await stableWorld({
    reconcileOtherChanges: () => {
      if (fails) throw failure;
      return Promise.resolve(false);
    },
  });
  fails = true;
  await world.pass();
  const { writes } = world;
  await world.pass();
  assert.equal(world.writes, writes);
  assert.deepEqual(world.events, ["Warning NoBackup: no space"]);
  fails = false;
  await world.pass();
  assert.equal(world.ready().status, "True");
});

test("phased runs again soon only after other changes have done something", async () => {
  let acts = false;
  const seen: unknown[] = [];
  const world = await stableWorld({
    reconcileOtherChanges: (_, { observed, deployed }) => {
      seen.push(observed.running, deployed.image);
      return Promise.resolve(acts);
    },
  });
  seen.length = 0;
  assert.equal(await world.pass(), 60_000);
  acts = true;
  assert.equal(await world.pass(), 10_000);
  assert.deepEqual(seen, ["1.1", "a", "1.1", "a"]);
});

test("phased shows no change of the spec while another change is in progress", async () => {
  const { seen, onStatus } = reasons();
  const world = await stableWorld({
    onStatus,
    suspend: () => ({ state: "pending", reason: "a savepoint is taken" }),
  });
  world.edit({ image: "b" });
  await world.pass();
  seen.length = 0;
  world.edit({ note: "hello" });
  await world.pass();
  assert.ok(seen.every((text) => !text.startsWith("SpecChanged")), `${seen}`);
});

test("phased shows the change of a spec rather than the earlier reason", async () => {
  const { seen, onStatus } = reasons();
  const world = await stableWorld({ ...coughs, onStatus });
  world.broken.add("a");
  await world.settle();
  seen.length = 0;
  world.edit({ image: "b" });
  await world.pass();
  assert.equal(seen[0], 'SpecChanged: image: "a" -> "b"');
});

test("phased forgets the deferral of a rollback that is no longer possible", async () => {
  let safe = true;
  const world = await stableWorld({
    rollback: { after: "5m", safe: () => safe },
    deferChange: (_, observed) =>
      observed?.healthy === false ? "it is busy" : undefined,
  });
  world.broken.add("b");
  world.edit({ image: "b" });
  await world.settle();
  await world.clock.advance(360_000);
  await world.pass();
  assert.equal(world.ready().reason, "Busy");
  safe = false;
  await world.pass();
  assert.equal(world.ready().reason, "Deployed");
});

test("phased observes nothing while nothing is deployed", async () => {
  let observed = 0;
  const world: PhasedWorld = new PhasedWorld({ image: "a" }, {
    observe: () => {
      observed++;
      return { running: "", healthy: true };
    },
  });
  await world.pass();
  assert.equal(observed, 0);
  await world.settle();
  world.edit({ suspend: true });
  await world.settle();
  observed = 0;
  await world.pass();
  assert.equal(observed, 0);
});

test("phased suspends the deployed spec for the next, also at a rollback", async () => {
  const seen: string[] = [];
  const world: PhasedWorld = await stableWorld({
    ...rollback,
    suspend: (_, { deployed, next }) => {
      seen.push(`${deployed.image} for ${next.image}`);
      world.engine = undefined;
      return { state: "done" };
    },
  });
  world.broken.add("b");
  world.edit({ image: "b" });
  await world.settle();
  await world.clock.advance(360_000);
  await world.settle();
  assert.deepEqual(seen, ["a for b", "b for a"]);
  assert.ok(
    world.events.includes(
      "Normal Rollback: Generation 2 did not become stable: going back to generation 1",
    ),
  );
});

test("phased emits no event of a suspension without a function that suspends", async () => {
  const world = await stableWorld({ suspend: undefined });
  world.edit({ image: "b" });
  await world.settle();
  assert.deepEqual(world.events, [
    'Normal SpecChanged: image: "a" -> "b"',
    "Normal Submit: Deploying attempt 2.2",
  ]);
});

test("phased shows the reason of a recovery only until it is deployed", async () => {
  const { seen, onStatus } = reasons();
  const world = await stableWorld({
    onStatus,
    suspend: () => ({ state: "blocked", reason: "no savepoint" }),
    recover: (_, { observed }) =>
      observed.running === undefined
        ? { reason: "Lost", message: "The engine is gone" }
        : undefined,
  });
  world.engine = undefined;
  seen.length = 0;
  world.edit({ image: "b" });
  await world.pass();
  assert.ok(seen.includes("Lost: The engine is gone"), `${seen}`);
  assert.equal(world.ready().reason, "Deployed");
});

test("phased defers the first deployment, unless nothing is to run", async () => {
  const deferChange = () => "a backup is running";
  const world = new PhasedWorld({ image: "a" }, { deferChange });
  assert.equal(await world.pass(), 10_000);
  assert.deepEqual(world.actions, []);
  assert.equal(world.ready().reason, "Busy");
  const { writes } = world;
  await world.pass();
  assert.equal(world.writes, writes, "nothing has changed");
  const idle = new PhasedWorld({ image: "a", suspend: true }, { deferChange });
  assert.equal(await idle.pass(), 60_000);
  assert.equal(idle.ready().reason, "Suspended");
});

test("phased does not suspend by a spec that is invalid", async () => {
  const world = await stableWorld(imageNeeded);
  world.edit({ image: "b" });
  await world.pass();
  world.edit({ image: "", suspend: true });
  await world.settle();
  assert.equal(world.engine?.spec.image, "b");
});

test("phased rolls back the time after a damaged time was repaired", async () => {
  const world = await stableWorld(rollback);
  world.broken.add("b");
  world.edit({ image: "b" });
  await world.settle();
  damage(world, { since: "now" });
  await world.settle();
  assert.equal(world.stored.status?.lifecycle, "Deployed");
  await world.clock.advance(360_000);
  await world.settle();
  assert.equal(world.stored.status?.lifecycle, "RolledBack");
});

test("phased stays rolled back when the id of its attempt is damaged", async () => {
  const world = await stableWorld(rollback);
  world.broken.add("b");
  world.edit({ image: "b" });
  await world.settle();
  await world.clock.advance(360_000);
  await world.settle();
  damage(world, { attempt: 5 });
  await world.settle();
  assert.equal(world.stored.status?.lifecycle, "RolledBack");
  assert.deepEqual(world.actions, []);
});

test("phased goes on with a recorded attempt whose phase is damaged", async () => {
  const world = await stableWorld();
  world.edit({ image: "b" });
  await world.pass();
  damage(world, { phase: 1 });
  await world.settle();
  assert.deepEqual(world.actions, ["start 2.2 b"]);
});

test("phased replaces an unknown deployment only by a spec that is valid", async () => {
  const world = await stableWorld(imageNeeded);
  world.edit({ image: "" });
  damage(world, { target: 1, stable: 2 });
  assert.equal(await world.pass(), undefined);
  assert.equal(await world.pass(), undefined);
  assert.deepEqual(world.actions, []);
  world.edit({ image: "b" });
  await world.settle();
  assert.equal(world.engine?.spec.image, "b");
});

test("phased takes what is not stable for not deployed in a repair", async () => {
  const world = await stableWorld(coughs);
  world.engine = undefined;
  damage(world, { phase: 1, running: 2, target: 3, stable: 4, attempt: 5 });
  await world.settle();
  assert.equal(world.actions.filter((text) => /stop/.test(text)).length, 0);
  assert.equal(world.stored.status?.lifecycle, "Stable");
});

test("phased rolls back only if that is found safe, which may take time", async () => {
  for (const isSafe of [false, true]) {
    const world = await PhasedWorld.stable({
      rollback: { after: "1m", safe: () => Promise.resolve(isSafe) },
    });
    world.broken.add("b");
    world.edit({ image: "b" });
    await world.settle();
    await world.clock.advance(120_000);
    await world.settle();
    assert.equal(world.engine?.spec.image, isSafe ? "a" : "b");
  }
});

test("phased looks at what is suspended after its interval", async () => {
  const world = await PhasedWorld.stable();
  world.edit({ suspend: true });
  await world.settle();
  assert.equal(world.engine, undefined);
  assert.equal(await world.pass(), 60_000);
});

test("phased does not take a deployment that has failed for a stable one", async () => {
  let hasFailed = false;
  const failure = { reason: "Crashed", message: "It has crashed" };
  const world = await PhasedWorld.stable({
    failed: () => hasFailed ? failure : undefined,
  });
  hasFailed = true;
  world.edit({ image: "b" });
  await world.settle();
  const { rollout } = world.stored.status!;
  assert.equal(rollout?.target?.spec.image, "b");
  assert.equal(rollout?.stable?.spec.image, "a");
});

test("phased cleans up what can no longer be observed", async () => {
  let isBroken = false;
  let cleanups = 0;
  const world = await PhasedWorld.stable({
    observe() {
      if (isBroken) throw new Error("no route");
      return { running: "1.0", healthy: true };
    },
    cleanup: () => ++cleanups > 2,
  });
  world.remove();
  await world.pass();
  isBroken = true;
  await world.pass();
  assert.ok(!world.gone);
  await world.pass();
  assert.ok(world.gone);
});
