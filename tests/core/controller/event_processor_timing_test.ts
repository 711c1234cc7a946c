import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "../../../core/virtual_clock.ts";
import { DONE, FAILED, running } from "../../support/processor_case.ts";

const A = "default/a";

test("EventProcessor makes exhaustion a state that can be seen, and goes on by interval [3.9.4] [MaxIntervalAfterRetryIT]", async () => {
  const one = await running({
    settings: { retry: { maxAttempts: 1, jitter: 0 }, maxInterval: "1h" },
  });
  one.script = () => FAILED;
  one.add(A);
  await one.clock.advance(2_000);
  assert.equal(one.begun.length, 2);
  assert.equal(one.begun[1]?.retry.last, true);
  assert.equal(one.processor.exhausted, 1);
  await one.clock.advance(3_600_000);
  assert.equal(one.begun.length, 3);
  assert.equal(one.begun[2]?.cause.type, "interval");
  one.script = () => DONE;
  one.update(A);
  await one.clock.advance(10_000);
  assert.equal(one.processor.exhausted, 0);
});

test("EventProcessor visits an object as asked although an event came meanwhile [3.9.5]", async () => {
  const one = await running();
  one.add(A);
  await one.settle();
  one.update(A);
  await one.end(A, { end: { type: "done", delay: 10_000 } });
  await one.end(A);
  await one.clock.advance(9_999);
  assert.equal(one.begun.length, 2);
  await one.clock.advance(1);
  assert.equal(one.begun.length, 3);
  assert.equal(one.begun[2]?.cause.type, "reschedule");
});

test("EventProcessor is not driven in a hot loop by events and failures [3.9.5]", async () => {
  const one = await running();
  one.script = () => FAILED;
  one.add(A);
  for (let step = 0; step < 100; step++) {
    await one.clock.advance(10);
    one.update(A);
  }
  assert.ok(one.begun.length <= 5, `${one.begun.length} runs in a second`);
});

test("EventProcessor does not measure by the calendar [3.9.7]", async () => {
  const clock = new VirtualClock();
  let calendar = 0;
  // Whenever somebody looks, it has been set back by a day.
  Object.assign(clock, { wallTime: () => calendar -= 86_400_000 });
  const one = await running({ clock, settings: { rateLimit: { limit: 1 } } });
  one.script = () => DONE;
  one.add(A);
  await one.settle();
  for (let step = 0; step < 5; step++) one.update(A);
  await one.clock.advance(9_999);
  assert.equal(one.begun.length, 1);
  await one.clock.advance(1);
  assert.equal(one.begun.length, 2, "[RateLimitIT]");
  assert.equal(one.begun[1]?.cause.events, 5);
  one.script = (run) => run.retry.attempt === 0 ? FAILED : DONE;
  await one.clock.advance(10_000);
  one.update(A);
  await one.clock.advance(10_000);
  assert.deepEqual(one.begun.slice(2).map(({ retry }) => retry.attempt), [
    0,
    1,
  ]);
});

test("EventProcessor frees a timer with its object [3.9.8]", async () => {
  const one = await running();
  one.script = () => DONE;
  for (let round = 0; round < 100; round++) {
    one.add(A);
    await one.settle();
    assert.equal(one.processor.delayed, 1);
    one.delete(A);
    assert.equal(one.processor.delayed, 0);
  }
  assert.equal(one.clock.pendingTimers, 0);
});

test("EventProcessor retries with growing pauses until a run succeeds [RetryIT]", async () => {
  const one = await running();
  let failures = 3;
  one.script = () => failures-- > 0 ? FAILED : DONE;
  one.add(A);
  await one.clock.advance(60_000);
  assert.deepEqual(one.begun.map((run) => run.startedAt), [
    0,
    2_000,
    5_000,
    9_500,
  ]);
  assert.deepEqual(one.begun.map((run) => run.retry.attempt), [0, 1, 2, 3]);
  assert.deepEqual(
    one.begun.map((run) => run.cause.type),
    ["added", "retry", "retry", "retry"],
  );
});

test("EventProcessor runs at the latest after the maximal interval [MaxIntervalIT]", async () => {
  const one = await running({ settings: { maxInterval: "50ms" } });
  one.script = () => DONE;
  one.add(A);
  await one.clock.advance(500);
  assert.equal(one.begun.length, 11);
  const never = await running({ settings: { maxInterval: false } });
  never.script = () => DONE;
  never.add(A);
  await never.clock.advance(1e9);
  assert.equal(never.begun.length, 1);
  assert.equal(never.processor.delayed, 0);
});

test("EventProcessor aborts a run when its time is over, and counts a failure", async () => {
  const one = await running({ settings: { timeout: "5s" } });
  one.add(A);
  await one.clock.advance(4_999);
  const [run] = one.begun;
  assert.equal(run?.signal.aborted, false);
  await one.clock.advance(1);
  assert.equal(run?.signal.aborted, true);
  assert.match(String(run?.signal.reason), /took longer than its timeout/);
  await one.end(A, FAILED);
  assert.equal(one.plans[0]?.failure, "retry");
});

test("EventProcessor keeps to the throughput of its controller", async () => {
  const one = await running({
    settings: { throughput: { limit: 2, period: "1s" }, concurrency: 100 },
  });
  one.script = () => DONE;
  for (let index = 0; index < 10; index++) one.add(`default/${index}`);
  await one.settle();
  assert.equal(one.begun.length, 2);
  await one.clock.advance(2_000);
  assert.equal(one.begun.length, 6);
  await one.clock.advance(2_000);
  assert.equal(one.begun.length, 10);
});
