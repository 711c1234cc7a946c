import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusTamperedError } from "../../../workflows/phases/exclusive_status.ts";
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
