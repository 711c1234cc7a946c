import assert from "node:assert/strict";
import { test } from "node:test";
import { imageNeeded, PhasedWorld } from "./phased_world.ts";

const MINUTE = 60_000;

const stableWorld = PhasedWorld.stable;

const rollback = { rollback: { after: "5m" } };

test("phased rolls back an unstable deployment, even while the spec is invalid [L26] [L27]", async () => {
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

test("phased counts the time until a rollback from the last change of scale", async () => {
  const world = await stableWorld({ ...rollback, scale: () => true });
  await world.clock.advance(10 * MINUTE);
  world.broken.add("a");
  world.edit({ replicas: 3 });
  await world.settle();
  await world.clock.advance(4 * MINUTE);
  await world.settle();
  assert.equal(world.stored.status?.rollout?.phase, "Deployed");
  await world.clock.advance(2 * MINUTE);
  await world.pass();
  assert.notEqual(world.stored.status?.rollout?.phase, "Deployed");
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

test("phased rolls back nothing that is busy, and does it later", async () => {
  let isBusy = false;
  const world = await stableWorld({
    ...rollback,
    deferChange: () => isBusy ? "it is busy" : undefined,
  });
  world.broken.add("b");
  world.edit({ image: "b" });
  await world.settle();
  isBusy = true;
  await world.clock.advance(6 * MINUTE);
  await world.settle();
  assert.equal(world.stored.status?.rollout?.phase, "Deployed");
  assert.equal(world.ready().reason, "Busy");
  const { writes } = world;
  for (let pass = 0; pass < 3; pass++) await world.pass();
  assert.equal(world.writes, writes, "nothing has changed");
  assert.equal(world.engine?.spec.image, "b");
  isBusy = false;
  await world.settle();
  assert.equal(world.engine?.spec.image, "a");
});

test("phased asks whether a rollback from one spec to another is accepted", async () => {
  const asked: string[] = [];
  const world = await stableWorld({
    rollback: {
      after: "5m",
      accepts(stable, failed) {
        asked.push(`${failed.image} to ${stable.image}`);
        return asked.length > 1;
      },
    },
  });
  world.broken.add("b");
  world.edit({ image: "b" });
  await world.settle();
  await world.clock.advance(5 * MINUTE + 1);
  await world.pass();
  assert.equal(world.stored.status?.rollout?.phase, "Deployed");
  await world.settle();
  assert.equal(world.engine?.spec.image, "a");
  assert.deepEqual(asked, ["b to a", "b to a"]);
});

test("phased rolls back after the time, and not at it", async () => {
  const world = await stableWorld(rollback);
  world.broken.add("b");
  world.edit({ image: "b" });
  await world.settle();
  const { since = 0 } = world.stored.status?.rollout ?? {};
  await world.clock.advance(since + 5 * MINUTE - world.clock.wallTime());
  await world.pass();
  assert.equal(world.stored.status?.rollout?.phase, "Deployed");
  await world.clock.advance(1);
  await world.pass();
  assert.notEqual(world.stored.status?.rollout?.phase, "Deployed");
});

test("phased does not scale what it has rolled back to, but upgrades from it", async () => {
  const scaled: unknown[] = [];
  const world = await stableWorld({
    ...rollback,
    scale: (_run, { replicas }) => void scaled.push(replicas),
  });
  world.broken.add("b");
  world.edit({ image: "b" });
  await world.settle();
  assert.deepEqual(scaled, [], "another image is no change of scale");
  await world.clock.advance(6 * MINUTE);
  await world.settle();
  assert.equal(world.stored.status?.lifecycle, "RolledBack");
  world.broken.clear();
  world.edit({ replicas: 3 });
  await world.settle();
  assert.deepEqual(scaled, []);
  const { image, replicas } = world.engine?.spec ?? {};
  assert.deepEqual([image, replicas], ["b", 3]);
});
