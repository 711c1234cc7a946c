import assert from "node:assert/strict";
import { test } from "node:test";
import { MetricsRegistry } from "@coracle/operator/core";
import {
  Failed,
  lintStatus,
  Stalled,
  statusOf,
  Waiting,
} from "@coracle/operator/workflows";
import { type EngineSpec, PhasedWorld } from "./phased_world.ts";

test("phased calls an object Ready only while it is stable and what is asked for runs", async () => {
  const seen: string[] = [];
  const world = new PhasedWorld({ image: "a" }, {
    rollback: { after: "1s" },
    stable: ({ healthy }) => healthy || "the engine coughs",
    onStatus: (object) => {
      const conditions = object.status!.conditions!;
      const ready = conditions.find(({ type }) => type === "Ready")!;
      const others = conditions.filter(({ type }) => type !== "Ready");
      seen.push(
        `${object.metadata.generation} ${ready.status} ${ready.reason} ${
          others.map(({ type }) => type)
        }`.trim(),
      );
      assert.deepEqual(lintStatus(object, { inProgress: true }), []);
    },
  });
  await world.settle();
  world.edit({ image: "b" });
  await world.settle();
  world.broken.add("c");
  world.edit({ image: "c" });
  await world.settle();
  await world.clock.advance(2_000);
  await world.settle();
  assert.deepEqual(seen, [
    "1 Unknown Created Reconciling",
    "1 False Upgrading Reconciling",
    "1 False Deployed Reconciling",
    "1 True Stable",
    "2 False SpecChanged Reconciling",
    "2 False Upgrading Reconciling",
    "2 False Deployed Reconciling",
    "2 True Stable",
    "3 False SpecChanged Reconciling",
    "3 False Upgrading Reconciling",
    "3 False Deployed Reconciling",
    "3 False Deployed Reconciling",
    "3 False RollingBack Reconciling",
    "3 False RollingBack Reconciling",
    "3 False RolledBack Stalled",
    "3 False RolledBack Stalled",
  ]);
  assert.equal(
    world.ready().message,
    "Generation 3 did not become stable: generation 2 runs again",
  );
});

test("phased takes Ready back while what runs is ill, and gives it again", async () => {
  const world = await PhasedWorld.stable({
    stable: ({ healthy }) => healthy || "the engine coughs",
  });
  world.broken.add("a");
  assert.equal(await world.pass(), 10_000);
  assert.deepEqual(world.ready(), {
    status: "False",
    reason: "Deployed",
    message: "the engine coughs",
  });
  world.broken.clear();
  assert.equal(await world.pass(), 60_000);
  assert.equal(world.ready().status, "True");
});

test("phased reports a wait once, and the error that it retries", async () => {
  let trouble: Error | undefined;
  const world = await PhasedWorld.stable({
    observe: () => {
      if (trouble) throw trouble;
      return { running: "", healthy: true };
    },
  });
  trouble = new Waiting("Unreachable", "no answer", { event: "Warning" });
  assert.equal(await world.pass(), 10_000);
  const { writes } = world;
  assert.equal(await world.pass(), 10_000);
  assert.equal(world.writes, writes);
  assert.deepEqual(world.events, ["Warning Unreachable: no answer"]);
  assert.equal(world.ready().reason, "Unreachable");
  assert.equal(statusOf(world.stored as never).status, "InProgress");

  trouble = new Failed("Rubbish", "not JSON");
  assert.equal(await world.pass(), 60_000);
  assert.equal(world.ready().reason, "Rubbish");
  assert.equal(statusOf(world.stored as never).status, "InProgress");
  assert.equal(world.stored.status?.lifecycle, "Stable");

  trouble = new Failed("Nothing", "harmless", { harmless: true });
  await world.pass();
  trouble = undefined;
  await world.pass();
  assert.equal(world.ready().status, "True");
  assert.equal(world.stored.status?.error, undefined);
});

test("phased calls an invalid spec Stalled while the last valid one goes on running", async () => {
  const world = await PhasedWorld.stable({
    validate: (_, { image }) => image === "" ? "no image" : undefined,
  });
  world.edit({ image: "" });
  await world.pass();
  assert.deepEqual(world.ready(), {
    status: "False",
    reason: "ValidationError",
    message: "no image",
  });
  assert.equal(statusOf(world.stored as never).status, "Failed");
  assert.equal(world.stored.status?.lifecycle, "Stable");
  assert.equal(world.stored.status?.observedGeneration, 2);
  assert.deepEqual(lintStatus(world.stored as never), []);
  assert.equal(world.engine?.spec.image, "a");
});

test("phased is suspended, not on its way, where a new object asks for nothing", async () => {
  const world = new PhasedWorld({ image: "a", suspend: true });
  await world.settle();
  assert.equal(world.ready().reason, "Suspended");
  assert.equal(world.stored.status?.observedGeneration, 1);
});

test("phased reads the switches of a rollback from the present spec [L31]", async () => {
  const asked: EngineSpec[] = [];
  const world = await PhasedWorld.stable({
    rollback: (spec) => {
      asked.push(spec);
      return spec.note === "roll back" ? { after: "1s" } : undefined;
    },
  });
  world.broken.add("b");
  world.edit({ image: "b" });
  await world.settle();
  await world.clock.advance(2_000);
  await world.settle();
  assert.equal(
    world.stored.status?.lifecycle,
    "Deployed",
    "it is switched off",
  );
  world.edit({ note: "roll back" });
  await world.settle();
  assert.equal(world.stored.status?.lifecycle, "RolledBack");
  assert.equal(world.stored.status?.rollout?.target?.spec.note, undefined);
});

test("phased stores specs with their version, and reads those of older operators [L46]", async () => {
  const world = await PhasedWorld.stable();
  assert.deepEqual(world.stored.status?.rollout?.target, {
    spec: { image: "a", replicas: 1 },
    generation: 1,
    version: "v1",
  });
  const old = structuredClone(world.stored.status!);
  old.rollout!.target = { spec: { picture: "a" } as never, generation: 1 };
  old.rollout!.stable = old.rollout!.target;

  const blind = new PhasedWorld({ image: "a" });
  blind.write(old);
  blind.engine = world.engine;
  await blind.settle();
  assert.equal(blind.actions.length, 2, "taken as it is, it is another spec");

  const converted: (string | undefined)[] = [];
  const reading = new PhasedWorld({ image: "a" }, {
    convert: (stored, version) => {
      converted.push(version);
      const { picture } = stored as { picture: string };
      return { image: picture };
    },
  });
  reading.write(old);
  reading.engine = world.engine;
  await reading.settle();
  assert.deepEqual(reading.actions, []);
  assert.deepEqual(converted, [undefined, undefined]);
  assert.equal(reading.stored.status?.rollout?.target?.version, "v1");
});

test("phased calls onEvent for each event, and ignores its errors [L40]", async () => {
  const told: string[] = [];
  const world = new PhasedWorld({ image: "a" }, {
    onEvent: (object, { type, reason }) => {
      told.push(`${object.metadata.name} ${type} ${reason}`);
      throw new Error("listener");
    },
  });
  await world.settle();
  assert.deepEqual(told, ["one Normal Submit"]);
});

test("phased counts objects by their state of life, and forgets those that go [L15] [L44]", async () => {
  const metrics = new MetricsRegistry();
  const world = await PhasedWorld.stable({ metrics });
  const line = (state: string, count: number) =>
    `coracle_lifecycle_objects{kind="Engine",namespace="default",state="${state}"} ${count}`;
  assert.ok(metrics.text().includes(line("Stable", 1)), metrics.text());
  assert.ok(!metrics.text().includes(line("Created", 1)));
  world.edit({ image: "b" });
  await world.pass();
  assert.ok(metrics.text().includes(line("Upgrading", 1)));
  await world.settle();
  world.remove();
  await world.settle();
  assert.ok(world.gone);
  assert.ok(!/coracle_lifecycle_objects\{/.test(metrics.text()));
  assert.match(metrics.text(), /transition="Upgrade"/);
});

test("phased writes of an unexpected error nothing that the run left half done", async () => {
  let suspend: () => { state: "pending"; reason: string } = () => ({
    state: "pending",
    reason: "it stops",
  });
  const world = await PhasedWorld.stable({
    rollback: { after: "1s" },
    suspend: () => world.engine?.spec.image === "b" ? suspend() : undefined!,
  });
  world.broken.add("b");
  world.edit({ image: "b" });
  await world.settle();
  await world.clock.advance(2_000);
  await world.pass();
  assert.equal(world.stored.status?.lifecycle, "RollingBack");
  suspend = () => {
    throw new Error("no answer");
  };
  world.edit({ image: "c" });
  await assert.rejects(world.pass());
  assert.equal(world.stored.status?.lifecycle, "RollingBack");
  assert.equal(world.ready().message, "no answer");
});

test("phased limits the errors in the status as its options say", async () => {
  const world = new PhasedWorld({ image: "a" }, {
    errors: { maxLength: 8 },
    deploy: () => {
      throw new Failed("NoQuota", "no room in the region");
    },
  });
  await world.pass();
  assert.equal(world.ready().message.length, 8);
});

test("phased observes the generation that a function calls Stalled", async () => {
  const world = new PhasedWorld({ image: "a" }, {
    deploy: () => {
      throw new Stalled("UnsupportedVersion", "version 9");
    },
  });
  await world.pass();
  const { error, observedGeneration, lifecycle } = world.stored.status!;
  assert.equal(error?.stalled, true);
  assert.deepEqual([observedGeneration, lifecycle], [1, "Upgrading"]);
  assert.equal(statusOf(world.stored as never).status, "Failed");
});

test("phased emits the events of an outcome once for each message, or none", async () => {
  let trouble: Error | undefined;
  const world = await PhasedWorld.stable({
    observe: () => {
      if (trouble) throw trouble;
      return { running: "", healthy: true };
    },
  });
  for (const message of ["one", "one", "two"]) {
    trouble = new Waiting("Unreachable", message, { event: "Normal" });
    await world.pass();
  }
  trouble = new Failed("Quiet", "three", { event: "None" });
  await world.pass();
  assert.deepEqual(world.events, [
    "Normal Unreachable: one",
    "Normal Unreachable: two",
  ]);
});

test("phased observes no generation of a suspended object with an error", async () => {
  let fails = true;
  const world = new PhasedWorld({ image: "a", suspend: true }, {
    validate: () => {
      if (fails) throw new Failed("NoAnswer", "the registry is away");
      return undefined;
    },
  });
  await world.pass();
  assert.equal(world.stored.status?.observedGeneration, undefined);
  fails = false;
  await world.pass();
  assert.equal(world.stored.status?.observedGeneration, 1);
  assert.equal(world.stored.status?.lifecycle, "Created");
});

test("phased passes the options of an event on beside its listener", async () => {
  const world = await PhasedWorld.stable({
    onEvent: () => {},
    reconcileOtherChanges: ({ events }) => {
      events.normal("Backup", "done", { every: "1h" });
      return false;
    },
  });
  assert.ok(world.events.length === 0);
  await world.pass();
  assert.deepEqual(world.events, ['Normal Backup: done {"every":"1h"}']);
});

test("phased restores a status that was edited without its revision", async () => {
  const world = await PhasedWorld.stable();
  world.write({ ...world.stored.status, lifecycle: "Failed" });
  await world.pass();
  assert.match(world.events.join(), /^Warning StatusTampered/);
  assert.equal(world.stored.status?.lifecycle, "Stable");
});

test("phased times the states of its objects by its own clock", async () => {
  const metrics = new MetricsRegistry();
  const world = await PhasedWorld.stable({ metrics });
  world.edit({ image: "b" });
  await world.settle();
  // The virtual clock moves by whole seconds.
  assert.match(
    metrics.text(),
    /transition_seconds_sum\{[^}]*transition="Stabilization"\} [1-9]\d*\n/,
  );
});
