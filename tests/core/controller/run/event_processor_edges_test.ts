import assert from "node:assert/strict";
import { test } from "node:test";
import { ConcurrencyCap } from "../../../../core/controller/run/concurrency_cap.ts";
import { growthOf } from "../../../support/growth.ts";
import {
  DONE,
  FAILED,
  type ProcessorCaseOptions,
  ProcessorFixture,
} from "../../../support/processor_fixture.ts";

const KEY = "default/a";

function started(options: ProcessorCaseOptions = {}): ProcessorFixture {
  const fixture = new ProcessorFixture(options);
  fixture.processor.resume();
  return fixture;
}

test("EventProcessor ignores triggers of unknown primaries [J18]", async () => {
  const fixture = started();
  fixture.processor.onTrigger("default/unknown", "maps", {});
  fixture.processor.request("default/unknown");
  await fixture.settle();
  assert.deepEqual(fixture.keys, []);
  assert.equal(fixture.processor.waiting, 0);
});

test("EventProcessor silently drops a waiting run of a deleted object [J13]", async () => {
  const started: string[] = [];
  const ended: string[] = [];
  const fixture = new ProcessorFixture({
    observers: [{
      started: ({ key }) => started.push(key),
      ended: ({ key }) => ended.push(key),
    }],
  });
  fixture.add(KEY);
  fixture.primaries.delete(KEY);
  fixture.processor.resume();
  await fixture.settle();
  assert.deepEqual({ keys: fixture.keys, started, ended }, {
    keys: [],
    started: [],
    ended: [],
  });
  assert.equal(fixture.processor.running, 0);
  fixture.add(KEY);
  await fixture.settle();
  assert.deepEqual(fixture.keys, [KEY], "the key is not stuck");
});

test("EventProcessor starts no queued run while it is paused [J16]", async () => {
  const fixture = started({ settings: { concurrency: 1 } });
  fixture.add(KEY);
  fixture.add("default/b");
  await fixture.settle();
  fixture.processor.pause();
  await fixture.end(KEY);
  assert.deepEqual(fixture.keys, [KEY]);
  fixture.processor.resume();
  await fixture.settle();
  assert.deepEqual(fixture.keys, [KEY, "default/b"]);
});

test("EventProcessor forgets objects that are deleted while it is paused [J22]", () => {
  const fixture = new ProcessorFixture();
  fixture.add(KEY);
  fixture.delete(KEY);
  assert.equal(fixture.processor.waiting, 0);
  assert(fixture.isForgotten(KEY));
});

test("EventProcessor keeps the latest thousand deletions while it is paused", async () => {
  for (const hasRun of [false, true]) {
    const fixture = new ProcessorFixture({ settings: { allEvents: true } });
    if (hasRun) {
      fixture.processor.resume();
      fixture.processor.pause();
    }
    const keys = Array.from({ length: 1_500 }, (_, i) => `default/${i}`);
    for (const key of keys) {
      fixture.add(key);
      fixture.delete(key);
    }
    assert.equal(fixture.processor.waiting, 1_000);
    assert(fixture.isForgotten("default/499"));
    fixture.processor.resume();
    await fixture.settle();
    assert.equal(fixture.begun[0]?.key, "default/500");
    assert.equal(fixture.begun[0]?.deleted, true);
  }
});

test("EventProcessor runs an aborted deletion again when it is resumed", async () => {
  const fixture = started({ settings: { allEvents: true } });
  fixture.add(KEY);
  await fixture.settle();
  await fixture.end(KEY);
  fixture.delete(KEY);
  await fixture.settle();
  fixture.processor.pause();
  fixture.processor.abortAll("leadership");
  await fixture.end(KEY, FAILED);
  // The cache no longer has the object, so that no resync finds it.
  fixture.processor.resume();
  await fixture.settle();
  assert.deepEqual(fixture.begun.map((run) => run.deleted), [
    false,
    true,
    true,
  ]);
});

test("EventProcessor plans no run of an earlier object for its successor", async () => {
  const fixture = started({
    settings: { allEvents: true, maxInterval: false },
  });
  fixture.add(KEY);
  await fixture.settle();
  await fixture.end(KEY, { end: { type: "done", delay: 10_000 } });
  fixture.delete(KEY);
  await fixture.settle();
  await fixture.end(KEY);
  fixture.add(KEY);
  await fixture.settle();
  await fixture.end(KEY);
  await fixture.clock.advance(20_000);
  assert.deepEqual(fixture.begun.map((run) => run.deleted), [
    false,
    true,
    false,
  ]);
});

test("EventProcessor starts a new retry series after a success [J14]", async () => {
  const fixture = started({
    settings: { retry: { initial: "1s", jitter: 0 } },
  });
  fixture.add(KEY);
  await fixture.settle();
  await fixture.end(KEY, FAILED);
  await fixture.clock.advance(1_000);
  assert.equal(fixture.begun.at(-1)?.retry.attempt, 1);
  await fixture.end(KEY, DONE);
  fixture.update(KEY);
  await fixture.settle();
  assert.equal(fixture.begun.at(-1)?.retry.attempt, 0);
  await fixture.end(KEY, FAILED);
  await fixture.clock.advance(1_000);
  assert.equal(fixture.begun.at(-1)?.retry.attempt, 1);
});

test("EventProcessor cancels the planned retry after a success [J17]", async () => {
  const fixture = started({
    settings: { retry: { initial: "1s", jitter: 0 }, maxInterval: false },
  });
  fixture.add(KEY);
  await fixture.settle();
  await fixture.end(KEY, FAILED);
  assert.equal(fixture.processor.delayed, 1);
  await fixture.clock.advance(500);
  fixture.update(KEY);
  await fixture.settle();
  await fixture.end(KEY, DONE);
  assert.equal(fixture.processor.delayed, 0);
  await fixture.clock.advance(10_000);
  assert.equal(fixture.begun.length, 2);
});

test("EventProcessor applies the limiter to all events, including deletions [J21]", async () => {
  const fixture = started({
    settings: { allEvents: true, rateLimit: { limit: 1, period: "10s" } },
  });
  fixture.add(KEY);
  await fixture.settle();
  await fixture.end(KEY);
  fixture.update(KEY);
  fixture.update(KEY);
  await fixture.settle();
  assert.equal(fixture.begun.length, 1);
  fixture.delete(KEY);
  await fixture.clock.advance(9_000);
  assert.equal(fixture.begun.length, 1);
  await fixture.clock.advance(1_100);
  assert.equal(fixture.begun.length, 2);
  assert.equal(fixture.begun[1]?.deleted, true);
});

test("EventProcessor reconciles a deletion right after the run that it happened in [J23]", async () => {
  const fixture = started({ settings: { allEvents: true } });
  const object = fixture.add(KEY);
  await fixture.settle();
  fixture.delete(KEY);
  await fixture.settle();
  assert.equal(fixture.begun.length, 1);
  await fixture.end(KEY);
  assert.equal(fixture.begun.length, 2);
  assert.equal(fixture.begun[1]?.deleted, true);
  assert.equal(fixture.begun[1]?.primary, object, "the last known state");
  await fixture.end(KEY);
  assert(fixture.isForgotten(KEY));
});

test("EventProcessor retries a deletion early after an event of a source [J24]", async () => {
  const fixture = started({
    settings: {
      allEvents: true,
      retry: { initial: "1m", max: "1m", maxAttempts: 1, jitter: 0 },
    },
  });
  fixture.add(KEY);
  await fixture.settle();
  await fixture.end(KEY);
  fixture.delete(KEY);
  await fixture.settle();
  await fixture.end(KEY, FAILED);
  fixture.processor.onTrigger(KEY, "maps", {});
  await fixture.clock.advance(1_000);
  assert.equal(fixture.begun.length, 3, "long before the retry");
  assert.equal(fixture.begun[2]?.deleted, true);
  await fixture.end(KEY, DONE);
  assert(fixture.isForgotten(KEY));
});

test("EventProcessor forgets a waiting deletion when the object changes its shard", async () => {
  let isOurs = true;
  const fixture = started({
    settings: { allEvents: true },
    shard: { owns: () => isOurs },
  });
  fixture.add(KEY);
  await fixture.settle();
  await fixture.end(KEY);
  fixture.delete(KEY);
  await fixture.settle();
  await fixture.end(KEY, FAILED);
  isOurs = false;
  await fixture.processor.releaseShard();
  assert(fixture.isForgotten(KEY));
  isOurs = true;
  fixture.processor.onTrigger(KEY, "maps", {});
  await fixture.clock.advance(3_600_000);
  assert.equal(fixture.begun.length, 2);
});

test("EventProcessor reconciles no deletion without all-events mode [J33]", async () => {
  const fixture = started();
  fixture.add(KEY);
  await fixture.settle();
  fixture.delete(KEY);
  await fixture.end(KEY);
  assert.equal(fixture.begun.length, 1);
  assert.deepEqual(
    fixture.begun.map(({ deleted, finalStateUnknown }) => [
      deleted,
      finalStateUnknown,
    ]),
    [[false, false]],
  );
});

test("EventProcessor without a maximal interval adds no runs [J32]", async () => {
  const fixture = started({ settings: { maxInterval: false } });
  fixture.add(KEY);
  await fixture.settle();
  await fixture.end(KEY);
  assert.equal(fixture.processor.delayed, 0);
  await fixture.clock.advance(100 * 3_600_000);
  assert.equal(fixture.begun.length, 1);
});

test("EventProcessor passes a free place of the cap on if it starts no run", async () => {
  const cap = new ConcurrencyCap(1);
  const first = started({ cap });
  const { clock } = first;
  const second = started({ cap, clock });
  const third = started({ cap, clock });
  first.add(KEY);
  await first.settle();
  second.add(KEY);
  await first.settle();
  third.add(KEY);
  await first.settle();
  second.delete(KEY);
  await first.end(KEY);
  assert.deepEqual(third.keys, [KEY]);
});

test("EventProcessor is idle when all of its runs have ended", async () => {
  const fixture = started();
  fixture.add(KEY);
  fixture.add("default/b");
  await fixture.settle();
  let idle = 0;
  for (let waiter = 0; waiter < 2; waiter++) {
    void fixture.processor.whenIdle().then(() => idle++);
  }
  await fixture.end(KEY);
  assert.equal(idle, 0, "a run goes on");
  await fixture.end("default/b");
  assert.equal(idle, 2);
});

test("EventProcessor keeps nothing of those who wait until it is idle", async () => {
  const fixture = started();
  const found = await growthOf(4, async () => {
    fixture.add(KEY);
    await fixture.settle();
    const idle = fixture.processor.whenIdle();
    await fixture.end(KEY);
    await idle;
    fixture.delete(KEY);
    await fixture.settle();
    fixture.begun.length = fixture.plans.length = 0;
  });
  assert.deepEqual(found, []);
});

test("EventProcessor keeps nothing of a deletion that another replica runs", async () => {
  let isOwned = false;
  const fixture = started({
    settings: { allEvents: true },
    shard: { owns: () => isOwned },
  });
  fixture.add(KEY);
  fixture.delete(KEY);
  await fixture.settle();
  isOwned = true;
  assert(fixture.isForgotten(KEY));
  assert.deepEqual(fixture.keys, []);
});

test("EventProcessor forgets an object that is deleted once another replica has it", async () => {
  let isOwned = true;
  const fixture = started({
    settings: { allEvents: true, maxInterval: 3_600_000 },
    shard: { owns: () => isOwned },
  });
  fixture.add(KEY);
  await fixture.settle();
  await fixture.end(KEY);
  assert.equal(fixture.processor.delayed, 1);
  isOwned = false;
  fixture.delete(KEY);
  isOwned = true;
  assert.equal(fixture.processor.delayed, 0);
  assert(fixture.isForgotten(KEY));
});

test("EventProcessor that was cleared keeps no deletion", async () => {
  const fixture = new ProcessorFixture({ settings: { allEvents: true } });
  fixture.add(KEY);
  fixture.delete(KEY);
  fixture.processor.clear();
  assert(fixture.isForgotten(KEY));
  fixture.processor.resume();
  await fixture.settle();
  assert.deepEqual(fixture.keys, []);
});

test("EventProcessor loses none of many deletions while it runs", async () => {
  const settings = { allEvents: true, concurrency: 1 };
  const fixture = started({ settings });
  const keys = Array.from({ length: 1_100 }, (_, i) => `default/${i}`);
  for (const key of keys) {
    fixture.add(key);
    fixture.delete(key);
  }
  await fixture.settle();
  assert.equal(fixture.processor.waiting + fixture.processor.running, 1_100);
});

test("EventProcessor aborts no run in all-events mode when the deletion starts", async () => {
  const fixture = started({ settings: { allEvents: true } });
  fixture.add(KEY);
  await fixture.settle();
  fixture.mark(KEY);
  assert.equal(fixture.open.get(KEY)?.run.aborted, undefined);
});

test("EventProcessor runs the meant primaries again, and no others", async () => {
  const fixture = started();
  for (const key of [KEY, "default/b"]) {
    fixture.add(key);
    await fixture.settle();
    await fixture.end(key);
  }
  fixture.processor.resync((key) => key === KEY);
  await fixture.settle();
  assert.deepEqual(fixture.keys, [KEY, "default/b", KEY]);
});

test("EventProcessor counts no object as failing that is about to vanish", async () => {
  const fixture = started();
  fixture.add(KEY);
  await fixture.settle();
  await fixture.end(KEY, { end: { type: "finalizerRemoved" } });
  const { failing, exhausted, oldest } = fixture.processor.failures;
  assert.deepEqual([failing, exhausted, oldest], [0, 0, 0]);
});

test("ConcurrencyCap calls a controller again that it refuses during a call", () => {
  const cap = new ConcurrencyCap(1);
  let begun = 0;
  const pump = () => {
    while (cap.acquire(pump)) begun++;
  };
  pump();
  cap.release();
  assert.equal(begun, 2);
  cap.release();
  assert.equal(begun, 3);
});

test("ConcurrencyCap offers nothing to a controller that is forgotten", () => {
  const cap = new ConcurrencyCap(1);
  const offered: string[] = [];
  const [first, second] = ["first", "second"].map((name) => () =>
    void offered.push(name)
  );
  assert(first && second);
  assert.equal(cap.acquire(() => {}), true);
  assert.equal(cap.acquire(first), false);
  assert.equal(cap.acquire(second), false);
  cap.forget(first);
  cap.release();
  assert.deepEqual(offered, ["second"]);
  assert.equal(cap.running, 0);
});
