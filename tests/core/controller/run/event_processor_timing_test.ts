import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { nextTurn } from "../../../../core/clock.ts";
import {
  DONE,
  FAILED,
  ProcessorFixture,
  running,
} from "../../../support/processor_fixture.ts";

const A = "default/a";
const B = "default/b";

test("EventProcessor shows exhausted objects, and runs them after the interval [3.9.4] [MaxIntervalAfterRetryIT]", async () => {
  const fixture = await running({
    settings: { retry: { maxAttempts: 1, jitter: 0 }, maxInterval: "1h" },
  });
  fixture.script = () => FAILED;
  fixture.add(A);
  await fixture.clock.advance(2_000);
  assert.equal(fixture.begun.length, 2);
  assert.equal(fixture.begun[1]?.retry.last, true);
  assert.equal(fixture.processor.failures.exhausted, 1);
  await fixture.clock.advance(3_600_000);
  assert.equal(fixture.begun.length, 3);
  assert.equal(fixture.begun[2]?.cause.type, "interval");
  fixture.script = () => DONE;
  fixture.update(A);
  await fixture.clock.advance(10_000);
  assert.equal(fixture.processor.failures.exhausted, 0);
});

test("EventProcessor keeps a requested reschedule despite an event before it [3.9.5]", async () => {
  const fixture = await running();
  fixture.add(A);
  await fixture.settle();
  fixture.update(A);
  await fixture.end(A, { end: { type: "done", delay: 10_000 } });
  await fixture.end(A);
  await fixture.clock.advance(9_999);
  assert.equal(fixture.begun.length, 2);
  await fixture.clock.advance(1);
  assert.equal(fixture.begun.length, 3);
  assert.equal(fixture.begun[2]?.cause.type, "reschedule");
});

test("EventProcessor is not driven in a hot loop by events and failures [3.9.5]", async () => {
  const fixture = await running();
  fixture.script = () => FAILED;
  fixture.add(A);
  for (let step = 0; step < 100; step++) {
    await fixture.clock.advance(10);
    fixture.update(A);
  }
  assert.ok(
    fixture.begun.length <= 5,
    `${fixture.begun.length} runs in a second`,
  );
});

test("EventProcessor does not depend on the wall clock [3.9.7]", async () => {
  const clock = new VirtualClock();
  let calendar = 0;
  // Each call finds the wall clock set back by a day.
  Object.assign(clock, { wallTime: () => calendar -= 86_400_000 });
  const fixture = await running({
    clock,
    settings: { rateLimit: { limit: 1 } },
  });
  fixture.script = () => DONE;
  fixture.add(A);
  await fixture.settle();
  for (let step = 0; step < 5; step++) fixture.update(A);
  await fixture.clock.advance(9_999);
  assert.equal(fixture.begun.length, 1);
  await fixture.clock.advance(1);
  assert.equal(fixture.begun.length, 2, "[RateLimitIT]");
  assert.equal(fixture.begun[1]?.cause.events, 5);
  fixture.script = (run) => run.retry.attempt === 0 ? FAILED : DONE;
  await fixture.clock.advance(10_000);
  fixture.update(A);
  await fixture.clock.advance(10_000);
  assert.deepEqual(fixture.begun.slice(2).map(({ retry }) => retry.attempt), [
    0,
    1,
  ]);
});

test("EventProcessor cancels the timers of deleted objects [3.9.8]", async () => {
  const fixture = await running();
  fixture.script = () => DONE;
  for (let round = 0; round < 100; round++) {
    fixture.add(A);
    await fixture.settle();
    assert.equal(fixture.processor.delayed, 1);
    fixture.delete(A);
    assert.equal(fixture.processor.delayed, 0);
  }
  assert.equal(fixture.clock.pendingTimers, 0);
});

test("EventProcessor that was stopped sets no deadline for a run that goes on [J75]", async () => {
  const fixture = await running({ settings: { retry: { jitter: 0 } } });
  fixture.add(A);
  await fixture.settle();
  await fixture.end(A, FAILED);
  fixture.add(B);
  await fixture.settle();
  assert.equal(fixture.clock.pendingTimers, 1);
  fixture.processor.pause();
  fixture.processor.clear();
  assert.equal(fixture.clock.pendingTimers, 0);
  await fixture.end(B, FAILED);
  fixture.processor.retryFailed();
  assert.equal(fixture.clock.pendingTimers, 0);
  await fixture.clock.advance(60_000);
  assert.deepEqual(fixture.keys, [A, B]);
});

test("EventProcessor retries with growing delays until a run succeeds [RetryIT]", async () => {
  const retry = {
    initial: "2s",
    multiplier: 1.5,
    max: "15187ms",
    maxAttempts: 5,
    jitter: 0,
  } as const;
  const fixture = await running({ settings: { retry } });
  let failures = 3;
  fixture.script = () => failures-- > 0 ? FAILED : DONE;
  fixture.add(A);
  await fixture.clock.advance(60_000);
  assert.deepEqual(fixture.begun.map((run) => run.startedAt), [
    0,
    2_000,
    5_000,
    9_500,
  ]);
  assert.deepEqual(fixture.begun.map((run) => run.retry.attempt), [0, 1, 2, 3]);
  assert.deepEqual(
    fixture.begun.map((run) => run.cause.type),
    ["added", "retry", "retry", "retry"],
  );
});

test("EventProcessor repeats the failed run of one object when its source works again", async () => {
  const fixture = await running({ settings: { retry: false } });
  fixture.script = () => FAILED;
  fixture.add(A);
  fixture.add(B);
  await fixture.clock.advance(60_000);
  fixture.processor.retryFailed(A);
  await fixture.clock.advance(60_000);
  assert.deepEqual(fixture.keys, [A, B, A]);
  assert.equal(fixture.begun.at(-1)?.cause.type, "retry");
});

test("EventProcessor repeats failed runs when a source works again, using no attempt", async () => {
  const fixture = await running({
    settings: { retry: { jitter: 0, maxAttempts: 1 }, maxInterval: false },
  });
  fixture.script = ({ key }) => key === B ? DONE : FAILED;
  fixture.add(A);
  fixture.add(B);
  await fixture.clock.advance(60_000);
  assert.deepEqual(fixture.keys, [A, B, A], "no retry is left");
  fixture.processor.retryFailed();
  fixture.processor.retryFailed("default/unknown");
  await fixture.clock.advance(499);
  assert.equal(fixture.begun.length, 3);
  await fixture.clock.advance(1);
  assert.deepEqual(fixture.keys, [A, B, A, A]);
  fixture.script = () => undefined;
  fixture.processor.retryFailed(A);
  await fixture.clock.advance(500);
  fixture.processor.retryFailed();
  await fixture.end(A, FAILED);
  await fixture.clock.advance(10_000);
  assert.equal(fixture.begun.length, 6, "a run in progress is repeated");
  await fixture.end(A);
  fixture.processor.retryFailed();
  await fixture.clock.advance(10_000);
  assert.equal(fixture.begun.length, 6);
});

test("EventProcessor keeps the attempts of an object whose run is requested [RetryIntervalHonoredOnFrequentEventsIT]", async () => {
  const fixture = await running({ settings: { retry: { jitter: 0 } } });
  fixture.script = () => FAILED;
  fixture.add(A);
  await fixture.clock.advance(3_500);
  assert.deepEqual(fixture.begun.map((run) => run.retry.attempt), [0, 1, 2]);
  fixture.processor.request(A);
  fixture.update(A);
  await fixture.clock.advance(3_499);
  assert.deepEqual(fixture.begun[3]?.retry, { attempt: 3, last: false });
  assert.equal(fixture.begun.length, 4);
  await fixture.clock.advance(1);
  assert.equal(fixture.begun[4]?.retry.attempt, 3, "the retry at its time");
});

test("EventProcessor calls a run before the last planned retry not the last", async () => {
  const fixture = await running({
    settings: { retry: { initial: "1s", maxAttempts: 1, jitter: 0 } },
  });
  fixture.script = () => FAILED;
  fixture.add(A);
  await fixture.clock.advance(500);
  fixture.update(A);
  await fixture.clock.advance(499);
  assert.deepEqual(fixture.begun.map(({ retry }) => retry), [
    { attempt: 0, last: false },
    { attempt: 1, last: false },
  ]);
  await fixture.clock.advance(1);
  assert.deepEqual(fixture.begun[2]?.retry, { attempt: 1, last: true });
});

test("EventProcessor begins no run while the lease is not certainly held", async () => {
  let isHeld = true;
  const fixture = await running({ mayRun: () => isHeld });
  fixture.script = () => DONE;
  fixture.add(A);
  await fixture.settle();
  isHeld = false;
  fixture.update(A);
  fixture.add(B);
  await fixture.clock.advance(5_000);
  assert.deepEqual(fixture.keys, [A]);
  isHeld = true;
  await fixture.clock.advance(1_000);
  assert.deepEqual(fixture.keys, [A, A, B]);
});

test("EventProcessor runs after a pause that began while its lease was uncertain", async () => {
  let isHeld = false;
  const fixture = await running({ mayRun: () => isHeld });
  fixture.script = () => DONE;
  fixture.add(A);
  await fixture.settle();
  fixture.processor.pause();
  isHeld = true;
  await fixture.clock.advance(5_000);
  assert.deepEqual(fixture.keys, []);
  fixture.processor.resume();
  await fixture.settle();
  assert.deepEqual(fixture.keys, [A]);
});

test("EventProcessor runs an object in a loop of writes after its pause, failed or not", async () => {
  for (const result of [DONE, FAILED]) {
    const fixture = await running();
    fixture.add(A);
    await fixture.settle();
    fixture.begun[0]!.pause = 60_000;
    await fixture.end(A, result);
    fixture.update(A);
    await fixture.clock.advance(59_999);
    assert.equal(fixture.begun.length, 1);
    await fixture.clock.advance(1);
    assert.equal(fixture.begun.length, 2);
  }
});

test("EventProcessor runs at the latest after the maximal interval [MaxIntervalIT]", async () => {
  const fixture = await running({ settings: { maxInterval: "50ms" } });
  fixture.script = () => DONE;
  fixture.add(A);
  await fixture.clock.advance(500);
  assert.equal(fixture.begun.length, 11);
  const never = await running({ settings: { maxInterval: false } });
  never.script = () => DONE;
  never.add(A);
  await never.clock.advance(1e9);
  assert.equal(never.begun.length, 1);
  assert.equal(never.processor.delayed, 0);
});

test("EventProcessor aborts a run after its timeout, which counts as a failure", async () => {
  const fixture = await running({ settings: { timeout: "5s" } });
  fixture.add(A);
  await fixture.clock.advance(4_999);
  const [run] = fixture.begun;
  assert.equal(run?.signal.aborted, false);
  await fixture.clock.advance(1);
  assert.equal(run?.signal.aborted, true);
  assert.match(String(run?.signal.reason), /took longer than its timeout/);
  await fixture.end(A, FAILED);
  assert.equal(fixture.plans[0]?.failure, "retry");
});

test("EventProcessor does not abort a run that has ended before its timeout", async () => {
  const fixture = await running({
    settings: { timeout: "5s", maxInterval: false },
  });
  fixture.add(A);
  await fixture.settle();
  const [run] = fixture.begun;
  await fixture.end(A);
  assert.equal(fixture.clock.pendingTimers, 0);
  await fixture.clock.advance(10_000);
  assert.equal(run?.aborted, undefined);
});

test("EventProcessor respects the throughput limit of its controller", async () => {
  const fixture = await running({
    settings: { throughput: { limit: 2, period: "1s" }, concurrency: 100 },
  });
  fixture.script = () => DONE;
  for (let index = 0; index < 10; index++) fixture.add(`default/${index}`);
  await fixture.settle();
  assert.equal(fixture.begun.length, 2);
  await fixture.clock.advance(2_000);
  assert.equal(fixture.begun.length, 6);
  await fixture.clock.advance(2_000);
  assert.equal(fixture.begun.length, 10);
});

test("EventProcessor knows since when its oldest failing object fails", async () => {
  const fixture = await running();
  assert.equal(fixture.processor.failures.oldest, 0);
  await fixture.clock.advance(1_000);
  fixture.script = () => FAILED;
  fixture.add(A);
  await fixture.clock.advance(30_000);
  fixture.add("default/b");
  await fixture.clock.advance(10_000);
  const { failing, oldest } = fixture.processor.failures;
  assert.deepEqual([failing, oldest], [2, 40_000]);
});

test("EventProcessor collects the events that are read after a long run", async () => {
  const fixture = await running();
  fixture.add(A);
  await fixture.clock.advance(700);
  fixture.open.get(A)?.end();
  for (let events = 0; events < 10; events++) {
    await nextTurn();
    fixture.update(A);
  }
  fixture.add(B);
  await nextTurn();
  assert.deepEqual(fixture.keys, [A, B], "another object runs");
  await fixture.settle();
  assert.deepEqual(fixture.keys, [A, B, A]);
  assert.equal(fixture.begun[2]?.cause.events, 10);
});

test("EventProcessor collects events after a long run for a tenth of it", async () => {
  const fixture = await running();
  fixture.add(A);
  await fixture.clock.advance(700);
  fixture.open.get(A)?.end();
  const advanced = fixture.clock.advance(70);
  while (fixture.begun.length < 2) {
    await nextTurn();
    fixture.update(A);
  }
  assert.equal(fixture.clock.now(), 770);
  await advanced;
});

test("EventProcessor runs again at once after a short run", async () => {
  const fixture = await running();
  fixture.add(A);
  await fixture.clock.advance(19);
  fixture.update(A);
  fixture.open.get(A)?.end();
  await nextTurn();
  assert.deepEqual(fixture.keys, [A, A]);
});

for (const isRead of [true, false]) {
  const title = isRead
    ? "collects the events after a write, if one is read already"
    : "runs again at once after the answer to a write";
  test(`EventProcessor ${title}`, async () => {
    const fixture = await running();
    fixture.add(A);
    await fixture.clock.advance(700);
    const first = fixture.open.get(A);
    if (first !== undefined) first.run.wroteAt = fixture.clock.now();
    if (isRead) fixture.update(A);
    first?.end();
    await nextTurn();
    if (!isRead) fixture.update(A);
    await nextTurn();
    assert.deepEqual(fixture.keys, isRead ? [A] : [A, A]);
    await fixture.clock.advance(70);
    assert.deepEqual(fixture.keys, [A, A]);
  });
}

test("EventProcessor keeps the pause after the failure of a long run", async () => {
  const fixture = await running();
  fixture.add(A);
  await fixture.clock.advance(700);
  fixture.update(A);
  await fixture.end(A, FAILED);
  await fixture.clock.advance(99);
  assert.equal(fixture.begun.length, 1);
  await fixture.clock.advance(1);
  assert.equal(fixture.begun.length, 2);
});

test("EventProcessor counts a failure that onError plans for until a success", async () => {
  for (const delay of [undefined, 3_600_000]) {
    const fixture = await running();
    const failed = { type: "failed", final: true, delay } as const;
    fixture.script = () => ({ end: failed, error: new Error("As asked") });
    fixture.add(A);
    for (let step = 0; step < 100; step++) {
      await fixture.clock.advance(10);
      fixture.update(A);
    }
    assert.ok(
      fixture.begun.length <= 5,
      `${fixture.begun.length} runs in a second`,
    );
    assert.equal(fixture.processor.failures.failing, 1);
    assert.ok(fixture.processor.failures.oldest >= 990);
    const { length } = fixture.begun;
    await fixture.clock.advance(5_000);
    fixture.processor.retryFailed();
    await fixture.clock.advance(60_000);
    assert.equal(
      fixture.begun.length - length,
      delay === undefined ? 1 : 2,
      "a source repeats no run whose retry was ruled out",
    );
    fixture.script = () => DONE;
    fixture.update(A);
    await fixture.clock.advance(5_000);
    assert.equal(fixture.processor.failures.failing, 0);
  }
});

test("EventProcessor repeats a deletion that onError reschedules", async () => {
  const fixture = await running({ settings: { allEvents: true } });
  fixture.script = () => DONE;
  fixture.add(A);
  await fixture.settle();
  const failed = { type: "failed", final: true, delay: 10_000 } as const;
  fixture.script = () => ({ end: failed, error: new Error("As asked") });
  fixture.delete(A);
  await fixture.settle();
  fixture.script = () => DONE;
  await fixture.clock.advance(10_000);
  assert.deepEqual(fixture.begun.map(({ deleted }) => deleted), [
    false,
    true,
    true,
  ]);
  assert(fixture.isForgotten(A));
});

test("EventProcessor spends no throughput on keys that the limiter holds back", async () => {
  const fixture = await running({
    settings: {
      rateLimit: { limit: 1, period: "10s" },
      throughput: { limit: 1, period: "1s", burst: 2 },
    },
  });
  fixture.script = () => DONE;
  fixture.add(A);
  await fixture.settle();
  // One token is left, and the object may not run again yet.
  fixture.update(A);
  await fixture.settle();
  assert.equal(fixture.begun.length, 1);
  fixture.add(B);
  await fixture.settle();
  assert.deepEqual(fixture.keys, [A, B]);
  fixture.add("default/c");
  await fixture.settle();
  assert.equal(fixture.begun.length, 2, "the token was that of B");
  await fixture.clock.advance(1_000);
  assert.equal(fixture.begun.length, 3);
});

test("EventProcessor takes an aborted run that returns for no success", async () => {
  const fixture = await running();
  fixture.add(A);
  await fixture.settle();
  await fixture.end(A, FAILED);
  await fixture.clock.advance(1_000);
  fixture.processor.pause();
  fixture.processor.abortAll("leadership");
  await fixture.end(A);
  assert.equal(fixture.plans.at(-1), undefined);
  assert.equal(fixture.processor.stateOf(A).failures, 1);
  fixture.processor.resume();
  await fixture.settle();
  await fixture.end(A);
  assert.equal(fixture.processor.stateOf(A).failures, 0);
});

test("EventProcessor goes on if the random numbers fail", async () => {
  for (const value of [NaN, 1, -1, undefined]) {
    const fixture = await running({
      random() {
        if (value === undefined) throw new Error("no entropy");
        return value;
      },
    });
    fixture.script = (run) => run.retry.attempt === 0 ? FAILED : DONE;
    fixture.add(A);
    await fixture.clock.advance(1_000);
    fixture.add(B);
    await fixture.settle();
    assert.deepEqual(fixture.keys, [A, A, B]);
    assert.match(fixture.faults.join(), /Cannot draw a random number/);
  }
});

test("EventProcessor runs an object whose event cannot be read", async () => {
  const fixture = await running();
  fixture.script = () => DONE;
  fixture.add(A);
  await fixture.settle();
  // A relist of a bounded cache that keeps only the key.
  const header = { generation: 1 } as never;
  const unread = { header, relist: true };
  Object.defineProperty(unread, "object", {
    enumerable: true,
    get: () => {
      throw new Error("only its key is kept");
    },
  });
  const { processor } = fixture;
  const object = fixture.primaries.get(A);
  const event = { type: "updated", key: A, previous: object };
  processor.onPrimary(
    Object.defineProperties(
      event,
      Object.getOwnPropertyDescriptors(unread),
    ) as never,
    -1,
  );
  await fixture.settle();
  assert.equal(fixture.begun.length, 2);
});

test("EventProcessor runs listed objects last, and what an event ran first once", async () => {
  const fixture = new ProcessorFixture({ settings: { concurrency: 1 } });
  const listed = [A, B, "default/c", "default/d"];
  for (const key of listed) fixture.add(key, { initial: true });
  assert.equal(fixture.processor.waiting, 4);
  fixture.update("default/c");
  assert.equal(fixture.processor.waiting, 4);
  fixture.delete("default/d");
  assert.equal(fixture.processor.waiting, 3);
  fixture.add("default/e");
  fixture.script = () => DONE;
  fixture.processor.resume();
  await fixture.settle();
  assert.deepEqual(fixture.keys, ["default/c", "default/e", A, B]);
  assert.deepEqual(
    fixture.begun.map(({ cause }) => [cause.type, cause.events]),
    [["modified", 2], ["added", 1], ["initial", 1], ["initial", 1]],
  );
  assert.equal(fixture.processor.waiting, 0);
  assert.equal(fixture.processor.delayed, 4);
});

test("EventProcessor keeps first runs and intervals of objects whose watch is replaced", async () => {
  const fixture = new ProcessorFixture({ settings: { maxInterval: "1h" } });
  fixture.script = () => DONE;
  fixture.processor.resume();
  const before = fixture.add(A);
  await fixture.settle();
  fixture.processor.pause();
  fixture.add(B, { initial: true });
  fixture.handOver();
  assert.equal(fixture.processor.waiting, 1);
  fixture.processor.resume();
  await fixture.settle();
  assert.deepEqual(fixture.keys.slice(0, 3).toSorted(), [A, A, B]);
  await fixture.clock.advance(3_600_000);
  assert.equal(fixture.begun.length, 5);
  assert.equal(before, fixture.begun[0]?.primary);
});
