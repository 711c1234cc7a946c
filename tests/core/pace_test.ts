import assert from "node:assert/strict";
import { test } from "node:test";
import { ConcurrencyLimit, pauseAfter, TokenBucket } from "../../core/pace.ts";
import { inTime } from "../support/in_time.ts";

test("pauseAfter grows by its factor up to its maximum, and stays finite", () => {
  const pauses = [1, 2, 3, 4, 9_999].map((failures) =>
    pauseAfter(failures, { initial: 100, max: 350 })
  );
  assert.deepEqual(pauses, [100, 200, 350, 350, 350]);
  const slower = { initial: 100, max: Infinity, multiplier: 1.5 };
  assert.equal(pauseAfter(2, slower), 150);
  assert.ok(Number.isFinite(pauseAfter(9_999, slower)));
});

test("TokenBucket allows a burst, then one token an interval", () => {
  const bucket = new TokenBucket(100, 2);
  assert.deepEqual([0, 0, 0, 50].map((now) => bucket.take(now)), [
    0,
    0,
    100,
    50,
  ]);
  assert.deepEqual([100, 100].map((now) => bucket.take(now)), [0, 100]);
  // A quiet period fills it, but no further.
  assert.deepEqual([9_000, 9_000, 9_000].map((now) => bucket.take(now)), [
    0,
    0,
    100,
  ]);
});

test("TokenBucket reserves tokens that are to come, and takes them back", () => {
  const bucket = new TokenBucket(100, 1);
  assert.deepEqual([0, 0, 0].map((now) => bucket.reserve(now)), [0, 100, 200]);
  bucket.giveBack();
  assert.equal(bucket.reserve(0), 200);
  assert.equal(bucket.take(300), 0);
});

const never = new AbortController().signal;

/** Enters a limit; a slot that is lost fails a test quickly. */
async function entered(
  limit: ConcurrencyLimit,
  signal: AbortSignal = never,
): Promise<void> {
  const turn = Promise.resolve(limit.enter(signal));
  await inTime("a task has entered", turn);
}

test("ConcurrencyLimit admits up to its limit, and the others in order", async () => {
  const limit = new ConcurrencyLimit(2);
  const order: string[] = [];
  const all = ["a", "b", "c", "d"].map(async (name) => {
    await entered(limit);
    order.push(name);
  });
  await Promise.all(all.slice(0, 2));
  assert.deepEqual(order, ["a", "b"]);
  assert.equal(limit.waiting, 2);
  limit.leave();
  await all[2];
  assert.deepEqual(order, ["a", "b", "c"]);
  limit.leave();
  await all[3];
  limit.leave();
  limit.leave();
  assert.equal(limit.enter(), undefined);
  assert.equal(limit.enter(), undefined);
  assert.notEqual(limit.enter(), undefined, "two at most");
  assert.equal(limit.waiting, 1);
});

test("ConcurrencyLimit drops a task that stops waiting", async () => {
  const limit = new ConcurrencyLimit(1);
  await entered(limit);
  const stop = new AbortController();
  const stopped = entered(limit, stop.signal);
  const next = entered(limit);
  stop.abort(new Error("stopped"));
  await assert.rejects(stopped, /stopped/);
  await assert.rejects(entered(limit, stop.signal), /stopped/);
  assert.equal(limit.waiting, 1);
  limit.leave();
  await next;
});

test("ConcurrencyLimit keeps those that wait when a task in progress is stopped", async () => {
  const limit = new ConcurrencyLimit(1);
  await entered(limit);
  const stop = new AbortController();
  const second = entered(limit, stop.signal);
  const third = entered(limit);
  limit.leave();
  await second;
  stop.abort();
  assert.equal(limit.waiting, 1);
  limit.leave();
  await third;
});
