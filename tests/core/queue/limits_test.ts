import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  exponentialBackoff,
  noRetry,
  type RateLimitWindow,
} from "@coracle/operator/core";
import { fc } from "../../support/property.ts";
import { tokenBucket } from "../../../core/queue/limits.ts";
import { ADDED, QUEUE_CAUSES } from "../../../core/controller/cause.ts";
import { SchedulingQueue } from "../../../core/queue/scheduling_queue.ts";

test("exponentialBackoff multiplies the delay up to the maximum [GenericRetryExecutionTest]", () => {
  const policy = exponentialBackoff({
    initial: "2s",
    multiplier: 1.5,
    max: "15187ms",
    maxAttempts: 5,
    jitter: 0,
  });
  const pauses = [1, 2, 3, 4, 5, 6, 7].map((n) => policy.delay(n, 0.9));
  assert.deepEqual(pauses.map(Math.round), [
    2_000,
    3_000,
    4_500,
    6_750,
    10_125,
    15_187,
    15_187,
  ]);
  assert.equal(policy.maxAttempts, 5);
  const linear = exponentialBackoff({
    multiplier: 1,
    jitter: 0,
    initial: "10s",
  });
  assert.equal(linear.delay(9, 0), 10_000);
  const endless = exponentialBackoff({ maxAttempts: Infinity, max: "1h" });
  assert.ok(endless.delay(1e9, 0.5) <= 3_600_000);
  assert.equal(noRetry.maxAttempts, 0);
});

test("exponentialBackoff by default doubles from 1 s to 5 min for ever", () => {
  const policy = exponentialBackoff();
  const pauses = [1, 2, 3, 9, 10, 1e6].map((n) => policy.delay(n, 0.5));
  assert.deepEqual(pauses, [1_000, 2_000, 4_000, 256_000, 300_000, 300_000]);
  assert.ok(Math.abs(policy.delay(1, 0) - 900) < 1e-6);
  assert.equal(policy.maxAttempts, Infinity);
  assert.equal(exponentialBackoff({ initial: "1h" }).delay(9, 0.5), 3_600_000);
});

test("exponentialBackoff varies delays by its jitter", () => {
  fc.assert(fc.property(
    fc.integer({ min: 1, max: 50 }),
    fc.double({ min: 0, max: 0.999, noNaN: true }),
    (attempt, random) => {
      const exact = exponentialBackoff({ jitter: 0 }).delay(attempt, random);
      const spread = exponentialBackoff({ jitter: 0.2 }).delay(attempt, random);
      assert.ok(spread >= exact * 0.8 - 1e-6 && spread <= exact * 1.2);
    },
  ));
});

test("exponentialBackoff rejects invalid options by name", () => {
  const bad = [
    [{ multiplier: 0.5 }, /retry\.multiplier/],
    [{ jitter: 2 }, /retry\.jitter/],
    [{ maxAttempts: -1 }, /retry\.maxAttempts/],
    [{ maxAttempts: 1.5 }, /retry\.maxAttempts/],
    [{ initial: "soon" as "1s" }, /retry: "initial"/],
    [{ initial: "10s", max: "1s" }, /retry\.max/],
  ] as const;
  for (const [options, message] of bad) {
    assert.throws(() => exponentialBackoff(options), message);
  }
});

/** Queue with a limit of runs, and a function that runs a key if it may. */
function limited(limiter: RateLimitWindow) {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({
    clock,
    limiter,
    causes: QUEUE_CAUSES,
  });
  const runs = (key: string) => {
    queue.add(key, ADDED);
    const item = queue.take();
    if (item !== undefined) queue.done(item);
    return item !== undefined;
  };
  return { clock, queue, runs };
}

test("SchedulingQueue admits the limit of runs per period [LinearRateLimiterTest]", async () => {
  const { clock, queue, runs } = limited({ limit: 2, period: "1s" });
  assert.deepEqual([runs("a"), runs("a"), runs("a")], [true, true, false]);
  assert.equal(runs("b"), true, "keys do not disturb each other");
  await clock.advance(999);
  assert.equal(queue.waiting, 0);
  await clock.advance(1);
  assert.equal(queue.waiting, 1, "at the end of the period");
  assert.equal(runs("a"), true, "one run for both adds");
  queue.remove("a");
  assert.deepEqual([runs("a"), runs("a")], [true, false]);
  await clock.advance(980);
  queue.remove("a");
  assert.equal(runs("a"), false, "a period outlives the object");
  await clock.advance(49);
  assert.equal(queue.waiting, 0, "a wait is never less than 50 ms");
  await clock.advance(1);
  assert.equal(queue.waiting, 1);
});

test("SchedulingQueue removes periods that are over [J36]", async () => {
  const { clock, queue, runs } = limited({ limit: 1, period: 1_000 });
  for (let index = 0; index < 1_000; index++) runs(`key-${index}`);
  assert.equal(queue.size, 1_000);
  await clock.advance(1_000);
  runs("other");
  assert.equal(queue.size, 1);
});

test("TokenBucket observes rate and burst for any sequence of takes", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: 10 }),
      fc.array(fc.nat(300), { maxLength: 200 }),
      (limit, burst, gaps) => {
        const bucket = tokenBucket({ limit, burst });
        let now = 0;
        const taken: number[] = [];
        for (const gap of gaps) {
          now += gap;
          const wait = bucket.take(now);
          if (wait === 0) taken.push(now);
          else {
            now += wait;
            assert.equal(
              bucket.take(now),
              0,
              "after the wait there is a token",
            );
            taken.push(now);
          }
        }
        taken.forEach((end, last) => {
          taken.slice(0, last + 1).forEach((start, first) => {
            const allowed = burst + (end - start) / 1_000 * limit;
            assert.ok(last - first + 1 <= allowed + 1e-3);
          });
        });
      },
    ),
    { numRuns: 50 },
  );
  assert.throws(() => tokenBucket({ limit: 0 }), RangeError);
  assert.throws(() => tokenBucket({ limit: 1, burst: 0.5 }), RangeError);
});

test("TokenBucket and exponentialBackoff accept the least that makes sense", () => {
  const slow = tokenBucket({ limit: 0.5 });
  assert.equal(slow.take(0), 0);
  assert.equal(slow.take(0), 2_000);
  assert.equal(exponentialBackoff({ maxAttempts: 0 }).maxAttempts, 0);
});
