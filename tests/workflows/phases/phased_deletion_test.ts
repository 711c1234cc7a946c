import assert from "node:assert/strict";
import { test } from "node:test";
import { Waiting } from "@coracle/operator/workflows";
import { ExclusiveStatus } from "../../../workflows/phases/exclusive_status.ts";
import { Engine, PhasedWorld } from "./phased_world.ts";

test("phased undoes what runs, and then lets the object go [L15]", async () => {
  const seen: unknown[] = [];
  const world: PhasedWorld = await PhasedWorld.stable({
    cleanup: (_, found) => {
      seen.push(found?.running);
      if (world.engine === undefined) return true;
      world.engine = undefined;
      return false;
    },
  });
  world.remove();
  assert.equal(await world.pass(), 10_000);
  assert.equal(world.stored.status?.lifecycle, "Deleting");
  await world.settle();
  assert.ok(world.gone);
  assert.deepEqual(seen, ["1.1", undefined]);
  assert.equal(
    world.events.filter((event) => event.startsWith("Normal Cleanup")).length,
    1,
  );
});

test("phased deletes a deployment that it cannot observe [L15]", async () => {
  let blind = false;
  const world = await PhasedWorld.stable({
    observe: () => {
      if (blind) throw new Error("no answer");
      return { running: "", healthy: true };
    },
  });
  blind = true;
  world.remove();
  await world.settle();
  assert.ok(world.gone);
});

test("phased keeps an object that others need, with one warning, and no longer [L47]", async () => {
  let jobs: string | undefined = "2 session jobs still run here";
  const world = await PhasedWorld.stable({ neededBy: () => jobs });
  world.remove();
  for (let pass = 0; pass < 3; pass++) {
    assert.equal(await world.pass(), 10_000);
  }
  assert.equal(world.ready().reason, "CleanupBlocked");
  assert.deepEqual(
    world.events.filter((event) => event.startsWith("Warning")),
    ["Warning CleanupBlocked: 2 session jobs still run here"],
  );
  assert.deepEqual(world.actions, []);
  jobs = undefined;
  await world.settle();
  assert.ok(world.gone);
});

test("phased deletes an object without a neededBy function [L47]", async () => {
  const world = await PhasedWorld.stable();
  world.remove();
  await world.settle();
  assert.ok(world.gone);
  assert.deepEqual(world.actions, ["stop 1.1"]);
});

test("phased reports why a deletion waits or fails, and continues it", async () => {
  let trouble: Error | undefined = new Waiting("Unreachable", "no answer");
  const world = await PhasedWorld.stable({
    cleanup: () => {
      if (trouble) throw trouble;
    },
  });
  world.remove();
  assert.equal(await world.pass(), 10_000);
  assert.equal(world.ready().reason, "Unreachable");
  trouble = new Error("the plug is stuck");
  await assert.rejects(world.pass(), /stuck/);
  assert.equal(world.ready().message, "the plug is stuck");
  trouble = undefined;
  await world.settle();
  assert.ok(world.gone);
});

test("phased ends an earlier error when its object is deleted, and writes it at once", async () => {
  let status: unknown;
  let blind = false;
  const world: PhasedWorld = await PhasedWorld.stable({
    observe() {
      if (blind) throw new Error("no answer");
      return { running: "1.1", healthy: true };
    },
    cleanup() {
      status = structuredClone(world.stored.status);
      return false;
    },
  });
  blind = true;
  await assert.rejects(world.pass(), /no answer/);
  assert.notEqual(world.stored.status?.error, undefined);
  blind = false;
  world.remove();
  await world.pass();
  const cleaning = status as Record<string, unknown>;
  assert.equal(cleaning["lifecycle"], "Deleting");
  assert.equal(cleaning["error"], undefined);
});

test("phased ends the error of a cleanup when a later one goes on", async () => {
  let trouble: Error | undefined = new Error("the plug is stuck");
  const world = await PhasedWorld.stable({
    cleanup() {
      if (trouble) throw trouble;
      return false;
    },
  });
  world.remove();
  await assert.rejects(world.pass(), /stuck/);
  assert.notEqual(world.stored.status?.error, undefined);
  trouble = undefined;
  await world.pass();
  assert.equal(world.stored.status?.error, undefined);
});

test("ExclusiveStatus forgets deleted objects [L15]", () => {
  const statuses = new ExclusiveStatus(Engine);
  for (let index = 0; index < 10_000; index++) {
    const object = {
      metadata: { name: `engine-${index}`, uid: `uid-${index}` },
      spec: { image: "a" },
    };
    statuses.adopt(object);
    statuses.forget(object);
  }
  assert.equal(statuses.size, 0);
});

test("phased keeps the reason that a cleanup waits for, and writes it once", async () => {
  const world = await PhasedWorld.stable({
    cleanup: () => {
      throw new Waiting("Volumes", "2 volumes are left");
    },
  });
  world.remove();
  await world.pass();
  const { writes } = world;
  await world.pass();
  assert.equal(world.writes, writes);
  assert.equal(world.ready().reason, "Volumes");
});

test("phased forgets the status of an object that it has let go", async () => {
  const world = await PhasedWorld.stable();
  world.remove();
  await world.settle();
  assert.ok(world.gone);
  world.events.length = 0;
  world.tamper();
  await world.pass();
  assert.ok(!world.events.some((text) => text.includes("StatusTampered")));
});
