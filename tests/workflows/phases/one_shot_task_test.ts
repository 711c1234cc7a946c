import assert from "node:assert/strict";
import { test } from "node:test";
import type { Kind } from "@coracle/operator/client";
import {
  oneShotTask,
  type TaskDefinition,
  type TaskObject,
} from "@coracle/operator/workflows";
import { type Kill, PhasedStore } from "./phased_store.ts";

type Backup = TaskObject<string> & { spec: { of: string } };

const Backup: Kind<Backup> = {
  group: "example.com",
  version: "v1",
  kind: "Backup",
  plural: "backups",
  scope: "Namespaced",
};

/** An API server with one Backup, and the backups that were really begun. */
class BackupWorld extends PhasedStore<Backup> {
  readonly started: Set<string> = new Set();
  progress: Awaited<
    ReturnType<TaskDefinition<TaskObject<string>, string>["check"]>
  > = { state: "running" };
  disposed: string[] = [];

  constructor(definition: Partial<TaskDefinition<Backup, string>> = {}) {
    super(
      { spec: { of: "shop" } } as Backup,
      () =>
        oneShotTask<Backup, string>(Backup, {
          clock: this.clock,
          start: (_, attempt) =>
            this.effect(() => {
              this.started.add(attempt);
            }),
          check: () => this.progress,
          dispose: (_, result) =>
            this.effect(() => {
              this.disposed.push(result);
            }),
          ...definition,
        }),
    );
  }

  get state(): string | undefined {
    return this.stored.status?.state;
  }

  /** Fails the attempt that is in progress; gives the pause before the next. */
  async fail(): Promise<number | undefined> {
    this.progress = { state: "failed", message: "the disk is full" };
    const pause = await this.pass();
    this.progress = { state: "running" };
    return pause;
  }
}

test("oneShotTask starts, checks and completes a task [L48]", async () => {
  const world = new BackupWorld();
  assert.equal(await world.pass(), 10_000);
  assert.equal(world.state, "InProgress");
  assert.equal(await world.pass(), 10_000);
  assert.equal(world.ready().status, "False");
  world.progress = { state: "completed", result: "s3://shop/1" };
  assert.equal(await world.pass(), undefined);
  assert.equal(world.state, "Completed");
  assert.equal(world.stored.status?.result, "s3://shop/1");
  assert.equal(world.stored.status?.observedGeneration, 1);
  assert.equal(world.ready().status, "True");
  assert.ok(world.events.includes("Normal Completed: The task is completed"));
  const { writes } = world;
  assert.equal(await world.pass(), undefined);
  assert.equal(world.writes, writes);
  assert.equal(world.started.size, 1);
});

test("oneShotTask starts a task in progress whose attempt somebody has removed", async () => {
  const world = new BackupWorld();
  world.write({ state: "InProgress" });
  await world.pass();
  assert.equal(world.started.size, 1);
  assert.equal(world.state, "InProgress");
  assert.deepEqual(world.events.filter((event) => /Invalid/.test(event)), []);
});

test("oneShotTask counts no failure of a check that is aborted with its run", async () => {
  const world: BackupWorld = new BackupWorld({
    check() {
      world.abort.abort(new Error("the operator stops"));
      throw new Error("the connection was closed");
    },
  });
  await world.pass();
  await assert.rejects(() => world.pass(), /the operator stops/);
  assert.equal(world.state, "InProgress");
  assert.equal(world.stored.status?.failures, undefined);
});

test("oneShotTask observes an edit of a task that has ended, and does nothing", async () => {
  const world = new BackupWorld();
  await world.pass();
  world.progress = { state: "completed", result: "s3://shop/1" };
  await world.pass();
  world.edit({ of: "bank" });
  assert.equal(await world.pass(), undefined);
  const { status } = world.stored;
  assert.equal(status?.observedGeneration, 2);
  assert.deepEqual(
    status?.conditions?.map((condition) => condition.observedGeneration),
    [2],
  );
  assert.equal(status?.state, "Completed");
  assert.equal(world.started.size, 1);
  const { writes } = world;
  assert.equal(await world.pass(), undefined);
  assert.equal(world.writes, writes);
});

test("oneShotTask tries again after 10 s, and twice as long each time [L48]", async () => {
  const world = new BackupWorld();
  for (const pause of [10_000, 20_000, 40_000, 80_000]) {
    await world.pass();
    assert.equal(await world.fail(), pause);
    assert.equal(world.state, "Pending");
    await world.clock.advance(pause - 1);
    assert.equal(await world.pass(), 1, "not a moment sooner");
    assert.equal(world.state, "Pending");
    await world.clock.advance(1);
  }
  assert.equal(world.started.size, 4, "each attempt has a stamp of its own");
  assert.deepEqual(
    world.events.filter((event) => event.startsWith("Warning")),
    Array(4).fill("Warning TaskFailed: the disk is full"),
  );
});

test("oneShotTask ends after the given number of retries [L48]", async () => {
  for (const limit of [0, 3, 7]) {
    const world = new BackupWorld({ retries: () => limit });
    for (let failure = 0; failure <= limit; failure++) {
      assert.notEqual(world.state, "Failed");
      await world.pass();
      await world.fail();
      await world.clock.advance(3_600_000);
    }
    assert.equal(world.state, "Failed");
    assert.equal(world.ready().message, "the disk is full");
    assert.equal(await world.pass(), undefined);
  }
});

test("oneShotTask is Reconciling until it ends, and Stalled if that is no success", async () => {
  const world = new BackupWorld({ retries: () => 0 });
  const also = () =>
    world.stored.status?.conditions?.map(({ type }) => type)
      .filter((type) => type !== "Ready");
  await world.pass();
  assert.deepEqual(also(), ["Reconciling"]);
  await world.fail();
  assert.equal(world.state, "Failed");
  assert.deepEqual(also(), ["Stalled"]);
  const good = new BackupWorld();
  await good.pass();
  good.progress = { state: "completed", result: "s3://shop/1" };
  await good.pass();
  assert.deepEqual(good.stored.status?.conditions?.map(({ type }) => type), [
    "Ready",
  ]);
});

test("oneShotTask counts what start and check throw as failures [L48]", async () => {
  const world = new BackupWorld({
    start: () => {
      throw new Error("no route");
    },
  });
  assert.equal(await world.pass(), 10_000);
  assert.equal(world.stored.status?.error, "no route");
  assert.equal(world.stored.status?.failures, 1);
});

test("oneShotTask abandons a task that has become pointless [L48]", async () => {
  let gone = false;
  const world = new BackupWorld({
    pointless: () => gone ? "the shop is gone" : undefined,
  });
  await world.pass();
  gone = true;
  assert.equal(await world.pass(), undefined);
  assert.equal(world.state, "Abandoned");
  assert.equal(world.ready().message, "the shop is gone");
});

test("oneShotTask lets a deletion wait for what is in progress, then disposes of it [L48]", async () => {
  const world = new BackupWorld();
  await world.pass();
  world.remove();
  assert.equal(await world.pass(), 10_000);
  assert.ok(!world.gone);
  world.progress = { state: "completed", result: "s3://shop/1" };
  await world.pass();
  assert.ok(world.gone);
  assert.deepEqual(world.disposed, ["s3://shop/1"]);
});

test("oneShotTask immediately deletes a task that never started or has failed [L48]", async () => {
  const fresh = new BackupWorld();
  fresh.remove();
  await fresh.pass();
  assert.ok(fresh.gone);
  const failed = new BackupWorld({ retries: 0 });
  await failed.pass();
  await failed.fail();
  failed.remove();
  await failed.pass();
  assert.ok(failed.gone);
  assert.deepEqual(failed.disposed, []);
});

test("oneShotTask deletes a task between two attempts without another one [L48]", async () => {
  const world = new BackupWorld();
  await world.pass();
  await world.fail();
  assert.equal(world.state, "Pending");
  const started = world.started.size;
  world.remove();
  await world.pass();
  assert.ok(world.gone);
  assert.equal(world.started.size, started);
  assert.deepEqual(world.disposed, []);
});

test("oneShotTask waits with a deletion until its disposal is done [L48]", async () => {
  let done = false;
  const world = new BackupWorld({ dispose: () => done });
  await world.pass();
  world.progress = { state: "completed", result: "s3://shop/1" };
  await world.pass();
  world.remove();
  assert.equal(await world.pass(), 10_000);
  assert.ok(!world.gone);
  done = true;
  await world.pass();
  assert.ok(world.gone);
});

test("oneShotTask begins each attempt once, wherever the operator is killed [L48]", async () => {
  const play = async (kill: Kill) => {
    const world = new BackupWorld();
    world.kill = kill;
    await world.settle();
    world.progress = { state: "failed", message: "the disk is full" };
    await world.settle();
    world.progress = { state: "running" };
    await world.clock.advance(10_000);
    await world.settle();
    world.progress = { state: "completed", result: "s3://shop/1" };
    await world.settle();
    return world;
  };
  const undisturbed = await play({ after: Infinity, side: "before" });
  assert.ok(undisturbed.effects >= 6);
  for (let after = 0; after < undisturbed.effects; after++) {
    for (const side of ["before", "after"] as const) {
      const world = await play({ after, side });
      const where = `killed ${side} effect ${after}`;
      assert.deepEqual([...world.started], [...undisturbed.started], where);
      const { conditions: _, ...ending } = world.stored.status!;
      const { conditions: _times, ...expected } = undisturbed.stored.status!;
      assert.deepEqual(ending, expected, where);
    }
  }
});

test("oneShotTask waits for its next attempt no longer than its longest pause", async () => {
  for (const [pause, started] of [[600_000, 1], [600_001, 2]] as const) {
    const world = new BackupWorld({ maxBackOff: "10m" });
    await world.pass();
    await world.fail();
    const retryAt = world.clock.wallTime() + pause;
    world.write({ ...world.stored.status, retryAt });
    world.restart();
    await world.pass();
    assert.equal(world.started.size, started);
  }
});

test("oneShotTask pauses for an hour at most, and forgets an error at its end", async () => {
  const world = new BackupWorld();
  await world.pass();
  const pauses: number[] = [];
  for (let failures = 1; failures <= 11; failures++) {
    const pause = await world.fail() ?? 0;
    pauses.push(pause);
    await world.clock.advance(pause);
    await world.pass();
  }
  assert.deepEqual(pauses.slice(-3), [2_560_000, 3_600_000, 3_600_000]);
  assert.equal(world.stored.status?.error, "the disk is full");
  world.progress = { state: "completed", result: "s3://shop/1" };
  await world.pass();
  assert.equal(world.stored.status?.error, undefined);
});

test("oneShotTask reports why it abandons a task", async () => {
  const world = new BackupWorld({ pointless: () => "the shop is closed" });
  await world.pass();
  assert(world.events.includes("Warning Abandoned: the shop is closed"));
});

test("oneShotTask records the id of each attempt before it starts it", async () => {
  const recorded: unknown[] = [];
  const world: BackupWorld = new BackupWorld({
    start(_, attempt) {
      const { status } = world.stored;
      recorded.push(status?.attempt === attempt, status?.retryAt);
    },
  });
  await world.pass();
  await world.clock.advance(await world.fail() ?? 0);
  await world.pass();
  assert.deepEqual(recorded, [true, undefined, true, undefined]);
});

test("oneShotTask does not start again when the cache is behind its writes", async () => {
  let starts = 0;
  const world = new BackupWorld({ start: () => void starts++ });
  const old = structuredClone(world.stored);
  await world.pass();
  world.stored = old;
  await world.pass().catch(() => {});
  assert.equal(starts, 1);
});

test("oneShotTask observes a generation only when the task has ended", async () => {
  const world = new BackupWorld();
  await world.pass();
  assert.equal(world.stored.status?.observedGeneration, undefined);
  world.progress = { state: "completed", result: "s3://shop/1" };
  await world.pass();
  assert.equal(world.stored.status?.observedGeneration, 1);
});

test("oneShotTask reports a time of retry that is too late, and counts attempts", async () => {
  const world = new BackupWorld();
  await world.pass();
  await world.fail();
  const retryAt = world.clock.wallTime() + 3_600_001;
  world.write({ ...world.stored.status, retryAt, failures: -1 });
  world.restart();
  await world.pass();
  assert.ok(
    world.events.includes(
      "Warning StatusInvalid: The status was damaged: failures, retryAt could not be read",
    ),
    world.events.join("\n"),
  );
});

test("oneShotTask takes a shorter maxBackOff than its default, and Infinity retries", async () => {
  const world = new BackupWorld({ maxBackOff: "5s", retries: Infinity });
  await world.pass();
  assert.equal(await world.fail(), 5_000);
  const invalid = new BackupWorld({ backOff: "6s", maxBackOff: "5s" });
  await assert.rejects(invalid.pass(), /"backOff" must not be longer/);
});

test("oneShotTask asks whether a task is pointless until it has ended", async () => {
  let asked = 0;
  const world = new BackupWorld({ pointless: () => void asked++ });
  await world.pass();
  world.progress = { state: "completed", result: "s3://shop/1" };
  await world.pass();
  assert.equal(asked, 2);
  await world.pass();
  assert.equal(asked, 2);
});

test("oneShotTask ends an attempt that was recorded before it lets an object go", async () => {
  const world = new BackupWorld();
  world.write({ state: "Pending", attempt: "uid-1-0" });
  world.remove();
  await world.pass();
  assert.ok(!world.gone);
  assert.deepEqual([...world.started], ["uid-1-0"]);
});

test("oneShotTask keeps a deleted object whose attempt fails until its retry is due", async () => {
  const world = new BackupWorld({ backOff: "1m" });
  await world.pass();
  world.remove();
  assert.equal(await world.fail(), 60_000);
  assert.ok(!world.gone);
});

test("oneShotTask counts the failures that the id of its attempt tells", async () => {
  const world = new BackupWorld();
  world.write({ state: "InProgress", attempt: "uid-1-2", failures: -1 });
  await world.fail();
  assert.equal(world.stored.status?.failures, 3);
});

test("oneShotTask does not show an error that is no text", async () => {
  const world = new BackupWorld();
  world.write({ state: "Pending", error: 5 as never });
  await world.pass();
  assert.equal(world.ready().message, "The task is InProgress");
});
