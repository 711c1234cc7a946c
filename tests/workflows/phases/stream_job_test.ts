import assert from "node:assert/strict";
import { test } from "node:test";
import { StreamWorld } from "./stream_world.ts";

const HOUR = 3_600_000;

test("stream_job keeps the state in an upgrade, unless it is stateless [L25]", async () => {
  for (const upgradeMode of ["savepoint", "last-state", "stateless"] as const) {
    const world = await StreamWorld.stable({ upgradeMode });
    await world.between();
    world.edit({ program: "count:2" });
    await world.settle();
    const [old] = world.manager.jobs;
    const [next] = world.running;
    assert.equal(next?.program, "count:2", upgradeMode);
    assert.equal(old?.state, "canceled", upgradeMode);
    assert.equal(
      next?.from,
      {
        savepoint: "savepoints/uid-1-1.1",
        "last-state": "checkpoints/uid-1-1.1",
        stateless: undefined,
      }[upgradeMode],
    );
    if (upgradeMode === "savepoint") assert.ok(next!.records >= old!.records);
    if (upgradeMode === "stateless") assert.ok(next!.records <= 3);
  }
});

test("stream_job upgrades a job that does not run from its last state, once it has one [L12]", async () => {
  const world = await StreamWorld.stable();
  const [job] = world.manager.jobs;
  job!.state = "starting";
  world.edit({ program: "count:2", upgradeMode: "savepoint" });
  await world.settle();
  assert.equal(world.running[0]?.from, "checkpoints/uid-1-1.1");
});

test("stream_job stalls an upgrade whose state cannot be found [L11]", async () => {
  const world = await StreamWorld.stable({ restartFailed: false });
  const [job] = world.manager.jobs;
  job!.state = "failed";
  delete job!.checkpoint;
  world.edit({ program: "count:2" });
  await world.pass();
  assert.equal(world.ready().reason, "UpgradeFailed");
  assert.equal(world.stored.status?.lifecycle, "Failed");
  world.edit({ upgradeMode: "stateless" });
  await world.settle();
  assert.equal(world.stored.status?.lifecycle, "Stable");
});

test("stream_job scales in place, and by an upgrade where the job cannot [L20]", async () => {
  const world = await StreamWorld.stable();
  world.edit({ parallelism: 4 });
  await world.settle();
  assert.deepEqual(world.actions, ["PATCH 1.1"]);
  assert.equal(world.running[0]?.parallelism, 4);
  const rigid = await StreamWorld.stable({ program: "rigid" });
  rigid.edit({ parallelism: 4 });
  await rigid.settle();
  assert.equal(rigid.running[0]?.parallelism, 4);
  assert.equal(rigid.manager.jobs.length, 2);
});

test("stream_job forgets a finished job when its time is over, not before [L22]", async () => {
  const world = new StreamWorld({ program: "finite", keepFinished: 3_600 });
  await world.settle();
  assert.equal(world.stored.status?.job?.state, "finished");
  assert.equal(world.ready().status, "True");
  await world.clock.advance(HOUR - 60_000);
  await world.settle();
  assert.equal(world.manager.jobs.length, 1);
  await world.clock.advance(60_000);
  await world.settle();
  assert.equal(world.manager.jobs.length, 0);
});

test("stream_job keeps how a job ended when the job manager forgets it [L36]", async () => {
  const world = new StreamWorld({ program: "finite" });
  await world.settle();
  world.loseJobs();
  await world.settle();
  assert.equal(world.stored.status?.job?.state, "finished");
  assert.equal(world.stored.status?.lifecycle, "Stable");
  assert.equal(world.manager.jobs.length, 0, "nothing is started again");
});

test("stream_job recovers a lost job from its last checkpoint [L23]", async () => {
  const world = await StreamWorld.stable();
  world.loseJobs();
  await world.settle();
  assert.equal(world.running[0]?.from, "checkpoints/uid-1-1.1");
  assert.equal(world.stored.status?.lifecycle, "Stable");
  assert.match(world.events.join("\n"), /Warning RecoverDeployment/);
});

test("stream_job starts nothing without its state, unless that is wanted [L23]", async () => {
  const world = await StreamWorld.stable();
  world.loseJobs();
  const { job: _, ...status } = world.stored.status!;
  world.restart();
  world.write(status);
  await world.settle();
  assert.equal(world.ready().reason, "StateUnknown");
  assert.equal(world.running.length, 0);
  world.edit({ upgradeMode: "stateless" });
  await world.settle();
  assert.equal(world.stored.status?.lifecycle, "Stable");
});

test("stream_job restarts a failed job from its last checkpoint if configured [L24]", async () => {
  const world = await StreamWorld.stable();
  world.job("1.1").state = "failed";
  await world.settle();
  assert.equal(world.running[0]?.from, "checkpoints/uid-1-1.1");
  assert.match(world.events.join("\n"), /Warning RestartFailed/);

  const left = await StreamWorld.stable({ restartFailed: false });
  left.job("1.1").state = "failed";
  await left.settle();
  assert.equal(left.running.length, 0);
  assert.equal(left.ready().reason, "JobFailed");
  left.edit({ restartFailed: true });
  await left.settle();
  assert.equal(left.running.length, 0, "only what was deployed counts");
  left.edit({ program: "count:2" });
  await left.settle();
  assert.equal(left.running[0]?.from, "checkpoints/uid-1-1.1");
});

test("stream_job finds a job whose submission seemed to fail, by its recorded id [L33] [L35]", async () => {
  const world = new StreamWorld();
  let lost = true;
  world.answer = (request) => {
    if (request.method !== "PUT" || !lost) return undefined;
    lost = false;
    // The job is started, but the answer does not come through.
    return world.manager.handle(request).then(() => {
      throw new TypeError("fetch failed");
    });
  };
  assert.equal(await world.pass(), 10_000);
  assert.equal(world.stored.status?.rollout?.attempt, "1.1");
  assert.equal(world.stored.status?.lifecycle, "Upgrading");
  assert.equal(world.ready().reason, "JobManagerUnreachable");
  await world.settle();
  assert.equal(world.manager.jobs.length, 1);
  assert.deepEqual(world.actions, [], "it is not submitted again");
  assert.equal(world.stored.status?.lifecycle, "Stable");
});

test("stream_job submits again under the same id what never arrived [L33] [L35]", async () => {
  const world = new StreamWorld();
  let lost = 3;
  world.answer = (request) =>
    request.method === "PUT" && lost-- > 0
      ? Promise.reject(new TypeError("connection refused"))
      : undefined;
  for (let pass = 0; pass < 3; pass++) {
    await world.pass();
    assert.equal(world.stored.status?.lifecycle, "Upgrading");
    assert.equal(world.stored.status?.rollout?.attempt, "1.1");
  }
  await world.settle();
  assert.deepEqual(world.manager.jobs.map(({ id }) => id), ["uid-1-1.1"]);
  assert.equal(
    world.events.filter((event) => event.startsWith("Warning")).length,
    1,
    "the same trouble is told once",
  );
});

test("stream_job waits for a stopping job, and stops again one that reappears [L37]", async () => {
  const world = await StreamWorld.stable();
  world.edit({ suspend: true });
  await world.pass();
  assert.equal(world.job("1.1").state, "stopping");
  assert.match(world.ready().message, /Stopping the job/);
  await world.pass();
  assert.deepEqual(world.actions, ["POST 1.1"], "it is asked once");
  world.job("1.1").state = "running";
  await world.settle();
  assert.deepEqual(world.actions, ["POST 1.1", "POST 1.1"]);
  assert.equal(world.stored.status?.lifecycle, "Suspended");
  assert.deepEqual(world.running, []);
});

test("stream_job recovers a job that is lost while it is being stopped [L37]", async () => {
  const world = await StreamWorld.stable();
  world.edit({ program: "count:2" });
  await world.pass();
  world.loseJobs();
  await world.settle();
  assert.equal(world.running[0]?.program, "count:2");
  assert.equal(world.running[0]?.from, "checkpoints/uid-1-1.1");
  assert.equal(world.stored.status?.lifecycle, "Stable");
});

test("stream_job reports each failure of a job once, even after a restart [L38]", async () => {
  const world = await StreamWorld.stable();
  const told = () =>
    world.events.filter((event) => event.includes("JobException"));
  const { failures } = world.job("1.1");
  failures.push({ at: 1, text: "first" });
  await world.pass();
  world.restart();
  await world.pass();
  failures.push({ at: 2, text: "second" });
  await world.pass();
  assert.deepEqual(told(), [
    "Warning JobException: first",
    "Warning JobException: second",
  ]);
});

test("stream_job starts again from the state that a spec names", async () => {
  const world = await StreamWorld.stable();
  await world.between();
  world.edit({ suspend: true });
  await world.settle();
  world.edit({ suspend: false, restoreFrom: "checkpoints/uid-1-1.1" });
  await world.settle();
  assert.equal(world.running[0]?.from, "checkpoints/uid-1-1.1");
  world.edit({ restoreFrom: "nowhere" });
  await world.pass();
  await world.between();
  await world.pass();
  assert.equal(world.ready().reason, "StateMissing");
});

test("stream_job goes back to the last stable program in time, with its state [L26]", async () => {
  const world = await StreamWorld.stable({ rollbackAfter: "5m" });
  world.edit({ program: "count:2-stuck" });
  await world.settle();
  assert.equal(world.ready().message, "The job is starting");
  await world.clock.advance(6 * 60_000);
  await world.settle();
  assert.equal(world.stored.status?.lifecycle, "RolledBack");
  assert.equal(world.running[0]?.program, "count:1");
  assert.equal(world.running[0]?.from, "savepoints/uid-1-1.1");
  world.edit({ program: "count:3" });
  await world.settle();
  assert.equal(world.stored.status?.lifecycle, "Stable");
  assert.equal(world.running[0]?.program, "count:3");
});

test("stream_job loses nothing if the job manager fails, hangs or disappears", async () => {
  const world = await StreamWorld.stable();
  const troubles = {
    JobManagerConfused: () => Promise.resolve(new Response("<html>busy")),
    JobManagerUnreachable: () => Promise.reject(new TypeError("refused")),
    Hangs: () => new Promise<Response>(() => {}),
    Wrong: () => Promise.resolve(Response.json({ id: 7, state: "lunch" })),
    Broken: () => Promise.resolve(new Response("oops", { status: 500 })),
  };
  for (const [name, trouble] of Object.entries(troubles)) {
    world.events.length = 0;
    world.answer = trouble;
    world.edit({ parallelism: 2 });
    assert.equal(await world.pass(), 10_000, name);
    assert.equal(await world.pass(), 10_000, name);
    const { status, reason } = world.ready();
    assert.equal(status, "False", name);
    assert.match(reason, /^JobManager(Unreachable|Confused)$/, name);
    assert.equal(world.events.length, 1, `${name}: ${world.events}`);
    world.answer = undefined;
    await world.settle();
    assert.equal(world.ready().status, "True", name);
    world.edit({ parallelism: 1 });
    await world.settle();
  }
  assert.equal(world.manager.jobs.length, 1, "no job was started or stopped");
});

test("stream_job loses no savepoint if a user edits the status during an upgrade", async () => {
  const world = await StreamWorld.stable();
  world.edit({ program: "count:2" });
  await world.pass();
  await world.between();
  await world.pass();
  assert.deepEqual(world.stored.status?.rollout?.savepoint, {
    from: "savepoints/uid-1-1.1",
  });
  world.write({ lifecycle: "Created" });
  await world.settle();
  assert.match(world.events.join("\n"), /Warning StatusTampered/);
  assert.equal(world.running[0]?.from, "savepoints/uid-1-1.1");
  assert.equal(world.running.length, 1);
});

test("stream_job never runs twice, even if its status is lost", async () => {
  const world = await StreamWorld.stable();
  world.edit({ program: "count:2" });
  await world.settle();
  world.write({});
  world.restart();
  await world.pass();
  assert.equal(world.running.length, 1);
  assert.equal(world.ready().reason, "Refused");
  assert.match(world.ready().message, /runs already/);
});

test("stream_job stops its job before it goes [L15]", async () => {
  const world = await StreamWorld.stable();
  world.remove();
  await world.settle();
  assert.ok(world.gone);
  assert.deepEqual(world.running, []);
});

test("stream_job lets no job run on by itself because its manager could not be reached", async () => {
  const world = await StreamWorld.stable();
  world.remove();
  world.answer = () => Promise.reject(new TypeError("refused"));
  assert.equal(await world.pass(), 10_000);
  const { writes, events } = world;
  assert.equal(await world.pass(), 10_000);
  assert.ok(!world.gone);
  assert.equal(world.ready().reason, "JobManagerUnreachable");
  assert.equal(world.writes, writes, "the same is said once");
  assert.equal(events.filter((e) => e.startsWith("Warning")).length, 1);
  world.answer = undefined;
  await world.settle();
  assert.ok(world.gone);
  assert.deepEqual(world.running, []);
});
