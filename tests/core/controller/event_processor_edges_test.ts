import assert from "node:assert/strict";
import { test } from "node:test";
import { ConcurrencyCap } from "../../../core/controller/concurrency_cap.ts";
import {
  DONE,
  FAILED,
  ProcessorCase,
  type ProcessorCaseOptions,
} from "../../support/processor_case.ts";

const KEY = "default/a";

function started(options: ProcessorCaseOptions = {}): ProcessorCase {
  const one = new ProcessorCase(options);
  one.processor.resume();
  return one;
}

test("EventProcessor ignores what sources trigger for primaries that it does not know", async () => {
  const one = started();
  one.processor.triggered("default/unknown", "maps", {});
  one.processor.requested("default/unknown");
  await one.settle();
  assert.deepEqual(one.keys, []);
  assert.equal(one.processor.waiting, 0);
});

test("EventProcessor drops a waiting run whose object is gone without a word", async () => {
  const started: string[] = [];
  const ended: string[] = [];
  const one = new ProcessorCase({
    observers: [{
      started: ({ key }) => started.push(key),
      ended: ({ key }) => ended.push(key),
    }],
  });
  one.add(KEY);
  one.primaries.delete(KEY);
  one.processor.resume();
  await one.settle();
  assert.deepEqual([one.keys, started, ended], [[], [], []]);
  assert.equal(one.processor.running, 0);
  one.add(KEY);
  await one.settle();
  assert.deepEqual(one.keys, [KEY], "it is not stuck");
});

test("EventProcessor begins nothing that was queued when it is paused", async () => {
  const one = started({ settings: { concurrency: 1 } });
  one.add(KEY);
  one.add("default/b");
  await one.settle();
  one.processor.pause();
  await one.end(KEY);
  assert.deepEqual(one.keys, [KEY]);
  one.processor.resume();
  await one.settle();
  assert.deepEqual(one.keys, [KEY, "default/b"]);
});

test("EventProcessor forgets what is deleted while it is paused", () => {
  const one = new ProcessorCase();
  one.add(KEY);
  one.delete(KEY);
  assert.equal(one.processor.waiting, 0);
  assert.deepEqual(one.forgotten, [KEY]);
});

test("EventProcessor begins a retry series anew after a success", async () => {
  const one = started({ settings: { retry: { initial: "1s", jitter: 0 } } });
  one.add(KEY);
  await one.settle();
  await one.end(KEY, FAILED);
  await one.clock.advance(1_000);
  assert.equal(one.begun.at(-1)?.retry.attempt, 1);
  await one.end(KEY, DONE);
  one.update(KEY);
  await one.settle();
  assert.equal(one.begun.at(-1)?.retry.attempt, 0);
  await one.end(KEY, FAILED);
  await one.clock.advance(1_000);
  assert.equal(one.begun.at(-1)?.retry.attempt, 1);
});

test("EventProcessor cancels what was planned when a run ends well", async () => {
  const one = started({
    settings: { retry: { initial: "1s", jitter: 0 }, maxInterval: false },
  });
  one.add(KEY);
  await one.settle();
  await one.end(KEY, FAILED);
  assert.equal(one.processor.delayed, 1);
  await one.clock.advance(500);
  one.update(KEY);
  await one.settle();
  await one.end(KEY, DONE);
  assert.equal(one.processor.delayed, 0);
  await one.clock.advance(10_000);
  assert.equal(one.begun.length, 2);
});

test("EventProcessor holds events back by the limiter, also those of a deletion", async () => {
  const one = started({
    settings: { allEvents: true, rateLimit: { limit: 1, period: "10s" } },
  });
  one.add(KEY);
  await one.settle();
  await one.end(KEY);
  one.update(KEY);
  one.update(KEY);
  await one.settle();
  assert.equal(one.begun.length, 1);
  one.delete(KEY);
  await one.clock.advance(9_000);
  assert.equal(one.begun.length, 1);
  await one.clock.advance(1_100);
  assert.equal(one.begun.length, 2);
  assert.equal(one.begun[1]?.deleted, true);
});

test("EventProcessor tells an object that is deleted during its run in all-events mode, at once after it", async () => {
  const one = started({ settings: { allEvents: true } });
  const object = one.add(KEY);
  await one.settle();
  one.delete(KEY);
  await one.settle();
  assert.equal(one.begun.length, 1);
  await one.end(KEY);
  assert.equal(one.begun.length, 2);
  assert.deepEqual(
    [one.begun[1]?.deleted, one.begun[1]?.primary],
    [true, object],
    "with the state that it had last",
  );
  await one.end(KEY);
  assert.deepEqual(one.forgotten, [KEY]);
});

test("EventProcessor hands an event of a source to the retry of a deletion in all-events mode", async () => {
  const one = started({
    settings: {
      allEvents: true,
      retry: { initial: "1m", max: "1m", maxAttempts: 1, jitter: 0 },
    },
  });
  one.add(KEY);
  await one.settle();
  await one.end(KEY);
  one.delete(KEY);
  await one.settle();
  await one.end(KEY, FAILED);
  one.processor.triggered(KEY, "maps", {});
  await one.clock.advance(1_000);
  assert.equal(one.begun.length, 3, "long before the retry");
  assert.equal(one.begun[2]?.deleted, true);
  await one.end(KEY, DONE);
  assert.deepEqual(one.forgotten, [KEY]);
});

test("EventProcessor forgets a deletion that waits in all-events mode when another replica has the object", async () => {
  let isOurs = true;
  const one = started({
    settings: { allEvents: true },
    shard: { owns: () => isOurs },
  });
  one.add(KEY);
  await one.settle();
  await one.end(KEY);
  one.delete(KEY);
  await one.settle();
  await one.end(KEY, FAILED);
  isOurs = false;
  await one.processor.yieldOthers();
  assert.deepEqual(one.forgotten, [KEY]);
  isOurs = true;
  one.processor.triggered(KEY, "maps", {});
  await one.clock.advance(3_600_000);
  assert.equal(one.begun.length, 2);
});

test("EventProcessor never tells of a deletion without all-events mode", async () => {
  const one = started();
  one.add(KEY);
  await one.settle();
  one.delete(KEY);
  await one.end(KEY);
  assert.equal(one.begun.length, 1);
  assert.deepEqual(
    one.begun.map(({ deleted, finalStateUnknown }) => [
      deleted,
      finalStateUnknown,
    ]),
    [[false, false]],
  );
});

test("EventProcessor without a maximal interval leaves an object alone", async () => {
  const one = started({ settings: { maxInterval: false } });
  one.add(KEY);
  await one.settle();
  await one.end(KEY);
  assert.equal(one.processor.delayed, 0);
  await one.clock.advance(100 * 3_600_000);
  assert.equal(one.begun.length, 1);
});

test("EventProcessor that is told of room and needs none passes it on", async () => {
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
