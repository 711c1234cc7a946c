import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type EngineDefinition,
  imageNeeded,
  PhasedWorld,
} from "./phased_world.ts";

/** Recovers an engine that is gone, from a backup. */
function recovering(
  restorable: () => boolean = () => true,
): EngineDefinition {
  return {
    recover: (_, { observed }) =>
      observed.running === undefined && restorable()
        ? {
          reason: "RecoverDeployment",
          message: "The engine is gone",
          savepoint: "backup",
        }
        : undefined,
  };
}

test("phased deploys what was lost once more, under a stamp of its own [L23]", async () => {
  const world = await PhasedWorld.stable(recovering());
  world.engine = undefined;
  assert.equal(await world.pass(), 10_000);
  assert.deepEqual(world.actions, ["start 1.2 a"]);
  assert.equal(world.engine!.savepoint, "backup");
  assert.ok(
    world.events.includes("Warning RecoverDeployment: The engine is gone"),
  );
  assert.equal(world.ready().status, "False", "it is not known to be well yet");
  await world.settle();
  assert.equal(world.stored.status?.lifecycle, "Stable");
  assert.equal(world.stored.status?.rollout?.target?.generation, 1);
});

test("phased recovers nothing that is only ill, nor without a state to restore [L23]", async () => {
  let restorable = false;
  const world = await PhasedWorld.stable(recovering(() => restorable));
  world.broken.add("a");
  assert.equal(await world.pass(), 10_000);
  assert.deepEqual(world.actions, [], "it runs, though not well");
  world.engine = undefined;
  await world.pass();
  assert.deepEqual(world.actions, [], "there is nothing to restore");
  world.broken.clear();
  restorable = true;
  await world.pass();
  assert.deepEqual(world.actions, ["start 1.2 a"]);
});

test("phased recovers the stable spec after a rollback, and stays rolled back [L23]", async () => {
  const world = await PhasedWorld.stable({
    ...recovering(),
    rollback: { after: "1s" },
  });
  world.broken.add("b");
  world.edit({ image: "b" });
  await world.settle();
  await world.clock.advance(2_000);
  await world.settle();
  assert.equal(world.stored.status?.lifecycle, "RolledBack");
  world.engine = undefined;
  await world.settle();
  assert.equal(world.engine!.spec.image, "a");
  assert.equal(world.stored.status?.lifecycle, "RolledBack");
});

test("phased recovers by the old spec what an upgrade cannot suspend, then upgrades [L18]", async () => {
  const world: PhasedWorld = await PhasedWorld.stable({
    ...recovering(),
    suspend: (_, { observed }) => {
      if (observed.running === undefined) {
        return { state: "blocked", reason: "nothing runs to take a backup of" };
      }
      world.engine = undefined;
      return { state: "done", savepoint: "newest", again: true };
    },
  });
  world.engine = undefined;
  world.edit({ image: "b" });
  await world.pass();
  assert.deepEqual(world.actions, ["start 1.2 a"], "the old spec comes first");
  await world.settle();
  assert.deepEqual(world.actions, ["start 1.2 a", "start 2.3 b"]);
  assert.equal(world.engine!.savepoint, "newest");
  assert.equal(world.stored.status?.lifecycle, "Stable");
});

test("phased upgrades an unready deployment once it is safe, and reports why not [L12]", async () => {
  let safe = false;
  const world: PhasedWorld = await PhasedWorld.stable({
    suspend: () => {
      if (!safe) return { state: "blocked", reason: "no checkpoint yet" };
      world.engine = undefined;
      return { state: "done", savepoint: "checkpoint" };
    },
  });
  world.broken.add("a");
  world.edit({ image: "b" });
  for (let pass = 0; pass < 3; pass++) {
    assert.equal(await world.pass(), 10_000);
    assert.deepEqual(world.ready(), {
      status: "False",
      reason: "UpgradeBlocked",
      message: "no checkpoint yet",
    });
  }
  const { writes } = world;
  await world.pass();
  assert.equal(world.writes, writes, "the same is not written twice");
  safe = true;
  await world.settle();
  assert.equal(world.engine!.savepoint, "checkpoint");
  assert.equal(world.stored.status?.lifecycle, "Stable");
});

test("phased waits for a suspension that takes its time, and suspends once", async () => {
  let asked = 0;
  const world: PhasedWorld = await PhasedWorld.stable({
    suspend: () => {
      asked++;
      if (asked < 3) {
        return { state: "pending", reason: "a savepoint is taken" };
      }
      world.engine = undefined;
      return { state: "done", savepoint: "savepoint" };
    },
  });
  world.edit({ image: "b" });
  await world.pass();
  assert.equal(world.stored.status?.lifecycle, "Upgrading");
  assert.equal(world.ready().message, "a savepoint is taken");
  await world.pass();
  await world.pass();
  assert.equal(world.engine?.savepoint, "savepoint");
  assert.equal(asked, 3);
});

test("phased keeps a rollback a rollback while it waits for the suspension", async () => {
  let pending = false;
  const world: PhasedWorld = await PhasedWorld.stable({
    rollback: { after: "1s" },
    suspend: () => {
      if (pending) return { state: "pending", reason: "it stops" };
      world.engine = undefined;
      return { state: "done" };
    },
  });
  world.broken.add("b");
  world.edit({ image: "b" });
  await world.settle();
  pending = true;
  await world.clock.advance(2_000);
  await world.pass();
  await world.pass();
  assert.equal(world.stored.status?.lifecycle, "RollingBack");
  pending = false;
  await world.settle();
  assert.equal(world.engine!.spec.image, "a", "not the bad spec");
});

test("phased restarts what has failed, and calls it Failed where it does not [L24]", async () => {
  const failing: EngineDefinition = {
    failed: ({ healthy }) =>
      healthy ? undefined : { reason: "EngineFailed", message: "out of oil" },
  };
  const left = await PhasedWorld.stable(failing);
  left.broken.add("a");
  await left.settle();
  assert.equal(left.stored.status?.lifecycle, "Failed");
  assert.equal(left.ready().reason, "EngineFailed");
  assert.deepEqual(left.events, ["Warning EngineFailed: out of oil"]);
  left.broken.clear();
  await left.settle();
  assert.equal(left.stored.status?.lifecycle, "Stable");
  assert.equal(left.stored.status?.error, undefined);

  const restarted: PhasedWorld = await PhasedWorld.stable({
    ...failing,
    recover: (_, { observed }) =>
      observed.healthy ? undefined : {
        reason: "RestartFailed",
        message: "once more",
        savepoint: "backup",
      },
  });
  restarted.broken.add("a");
  await restarted.pass();
  assert.deepEqual(restarted.actions, ["start 1.2 a"]);
  restarted.broken.clear();
  await restarted.settle();
  assert.equal(restarted.stored.status?.lifecycle, "Stable");
  assert.equal(restarted.engine?.savepoint, "backup");
});

test("phased reports a failure again when its message changes", async () => {
  let message = "out of oil";
  const world = await PhasedWorld.stable({
    failed: ({ healthy }) =>
      healthy ? undefined : { reason: "EngineFailed", message },
  });
  world.broken.add("a");
  await world.settle();
  message = "on fire";
  await world.settle();
  assert.deepEqual(world.events, [
    "Warning EngineFailed: out of oil",
    "Warning EngineFailed: on fire",
  ]);
  assert.equal(world.ready().message, "on fire");
});

test("phased keeps the error of an invalid spec while it restarts the valid one", async () => {
  const world = await PhasedWorld.stable({
    ...imageNeeded,
    recover: (_, { observed }) =>
      observed.healthy
        ? undefined
        : { reason: "RestartFailed", message: "once more" },
  });
  world.broken.add("a");
  world.edit({ image: "" });
  await world.pass();
  assert.deepEqual(world.actions, ["start 1.2 a"]);
  assert.equal(world.stored.status?.error?.reason, "ValidationError");
});

test("phased restarts what is ill for too long, and nothing that only stumbles [L24]", async () => {
  let restarts = 0;
  const world: PhasedWorld = await PhasedWorld.stable({
    // 64 restarts within a look are too many, as in Flink.
    recover: () =>
      restarts > 64
        ? { reason: "RestartUnhealthyJob", message: `${restarts} restarts` }
        : undefined,
  });
  restarts = 64;
  await world.pass();
  assert.deepEqual(world.actions, []);
  restarts = 65;
  await world.pass();
  restarts = 0;
  await world.settle();
  assert.deepEqual(world.actions, ["start 1.2 a"]);
  assert.ok(
    world.events.includes("Warning RestartUnhealthyJob: 65 restarts"),
  );
});

test("phased redeploys without state in one run if a field asks for it", async () => {
  const discarded: boolean[] = [];
  const world: PhasedWorld = await PhasedWorld.stable({
    suspend: (_, { discard }) => {
      discarded.push(discard);
      world.engine = undefined;
      return { state: "done", savepoint: "savepoint", again: true };
    },
  });
  world.edit({ path: "elsewhere" });
  assert.equal(await world.pass(), 10_000);
  assert.deepEqual(discarded, [true]);
  assert.equal(world.engine?.savepoint, undefined, "nothing is carried over");
  world.edit({ suspend: true });
  await world.settle();
  world.edit({ suspend: false, path: "third" });
  await world.settle();
  assert.equal(world.engine?.savepoint, undefined, "nor from a suspension");
});

test("phased recovers the stable spec, not the failed one, while it leaves a rollback", async () => {
  let pending = false;
  const world: PhasedWorld = await PhasedWorld.stable({
    ...recovering(),
    rollback: { after: "1s" },
    suspend: () => {
      if (pending) return { state: "blocked", reason: "not now" };
      world.engine = undefined;
      return { state: "done" };
    },
  });
  world.broken.add("b");
  world.edit({ image: "b" });
  await world.settle();
  await world.clock.advance(2_000);
  await world.settle();
  pending = true;
  world.edit({ image: "c" });
  await world.pass();
  world.engine = undefined;
  await world.pass();
  assert.equal(world.engine!.spec.image, "a");
  pending = false;
  await world.settle();
  assert.equal(world.engine!.spec.image, "c");
  assert.equal(world.stored.status?.lifecycle, "Stable");
});

test("phased does not report a run that was aborted", async () => {
  let stopping = false;
  const world: PhasedWorld = await PhasedWorld.stable({
    observe: (run) => {
      if (!stopping) return { running: "", healthy: true };
      world.abort.abort(new Error("the operator stops"));
      run.ctx.signal.throwIfAborted();
      throw new Error("unreachable");
    },
  });
  stopping = true;
  const { writes } = world;
  await assert.rejects(world.pass(), /the operator stops/);
  assert.deepEqual(world.events, []);
  assert.equal(world.writes, writes);
});
