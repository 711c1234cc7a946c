import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Failed,
  lintStatus,
  Stalled,
  Waiting,
} from "@coracle/operator/workflows";
import { imageNeeded, PhasedWorld } from "./phased_world.ts";

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

test("phased keeps the deployment while the spec or a transition is invalid [L4] [L5]", async () => {
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
    "Normal Suspended: Suspended the deployment",
  ]);
  assert.equal(world.stored.status?.rollout?.savepoint, "savepoint");
  assert.equal(await world.pass(), 10_000);
  assert.deepEqual(world.actions, ["stop 1.1", "start 2.2 b"]);
  assert.equal(world.engine?.savepoint, "savepoint");
  assert.equal(world.stored.status?.rollout?.savepoint, undefined, "used");
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

test("phased reports a failed deployment once, and a success clears it [L8]", async () => {
  let fails = true;
  const failing: PhasedWorld = new PhasedWorld({ image: "a" }, {
    deploy: (_, { spec, attempt, savepoint }) => {
      if (fails) throw new Failed("NoQuota", "no room");
      failing.engine = { spec, attempt, savepoint };
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
    deploy: (_, { spec, attempt, savepoint }) => {
      if (fails) throw new Error("no route");
      deployed.push(spec.image);
      world.engine = { spec, attempt, savepoint };
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
    deploy: (_, { spec, attempt, savepoint }) => {
      if (!ready) throw new Waiting("NoBackup", "not yet", { after: 3_000 });
      world.engine = { spec, attempt, savepoint };
    },
  });
  assert.equal(await world.pass(), 3_000);
  assert.equal(world.stored.status?.lifecycle, "Upgrading");
  ready = true;
  await world.settle();
  assert.equal(world.stored.status?.lifecycle, "Stable");
});

test("phased schedules no run after a function throws Stalled [L13]", async () => {
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
  const world = await stableWorld({ deferChange: () => busy });
  busy = "a backup is running";
  world.edit({ image: "b" });
  assert.equal(await world.pass(), 10_000);
  assert.deepEqual(world.actions, []);
  const { reason, message } = world.ready();
  assert.deepEqual([reason, message], ["Busy", busy]);
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

test("phased observes a generation when it is stable, or can never be", async () => {
  const world = await PhasedWorld.stable(imageNeeded);
  const observed = () => world.stored.status?.observedGeneration;
  world.edit({ image: "b" });
  await world.pass();
  assert.equal(observed(), 1, "it is upgraded");
  await world.settle();
  assert.equal(observed(), 2);
  world.edit({ image: "" });
  await world.settle();
  assert.equal(world.stored.status?.error?.stalled, true);
  assert.equal(observed(), 3);
});

test("phased ends an error by a harmless failure, and by a suspension", async () => {
  let failure: Error | undefined;
  const world: PhasedWorld = new PhasedWorld({ image: "a" }, {
    observe() {
      if (failure) throw failure;
      const { engine } = world;
      return { running: engine?.attempt, healthy: engine !== undefined };
    },
  });
  await world.settle();
  const fail = async () => {
    failure = new Failed("Unreachable", "no answer");
    await world.pass();
    assert.equal(world.stored.status?.error?.reason, "Unreachable");
  };
  await fail();
  failure = new Failed("Restarting", "it comes", { harmless: true });
  await world.pass();
  assert.equal(world.stored.status?.error, undefined);
  await fail();
  failure = undefined;
  world.edit({ suspend: true });
  await world.settle();
  assert.equal(world.stored.status?.error, undefined);
});

test("phased deploys nothing while the object is suspended, whatever else changes", async () => {
  const world = await stableWorld();
  world.edit({ suspend: true });
  await world.settle();
  assert.deepEqual(world.actions, ["stop 1.1"]);
  assert.equal(world.stored.status?.lifecycle, "Suspended");
  world.edit({ image: "b" });
  await world.settle();
  world.edit({ path: "other" });
  await world.settle();
  assert.deepEqual(world.actions, ["stop 1.1"]);
  assert.equal(world.stored.status?.lifecycle, "Suspended");
  world.edit({ suspend: false });
  await world.settle();
  assert.equal(world.engine?.spec.image, "b");
});
