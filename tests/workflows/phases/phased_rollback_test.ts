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
