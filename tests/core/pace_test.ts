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

/** Enters a limit; a place that is lost fails a test quickly. */
async function entered(
  limit: ConcurrencyLimit,
  bytes: number,
  signal: AbortSignal = never,
): Promise<void> {
  const turn = Promise.resolve(limit.enter(signal, bytes));
  await inTime("a task has entered", turn);
}

test("ConcurrencyLimit admits up to its limit by weight, and the others in order", async () => {
  const limit = new ConcurrencyLimit(10);
  const order: string[] = [];
  const tasks = { a: 4, b: 6, c: 5, d: 2, e: 3 };
  const all = Object.entries(tasks).map(async ([name, bytes]) => {
    await entered(limit, bytes);
    order.push(name);
  });
  await Promise.all(all.slice(0, 2));
  assert.deepEqual(order, ["a", "b"]);
  assert.equal(limit.waiting, 3);
  limit.leave(4);
  assert.equal(limit.waiting, 3, "d would fit, but c is before it");
  limit.leave(6);
  await Promise.all(all);
  assert.deepEqual(order, ["a", "b", "c", "d", "e"]);
  assert.notEqual(limit.enter(), undefined, "ten bytes at most");
});

test("ConcurrencyLimit admits a task beyond it alone", async () => {
  const limit = new ConcurrencyLimit(10);
  await entered(limit, 1_000);
  const small = entered(limit, 1);
  assert.equal(limit.waiting, 1);
  limit.leave(1_000);
  await small;
  const large = entered(limit, 1_000);
  assert.equal(limit.waiting, 1);
  limit.leave(1);
  await large;
});

test("ConcurrencyLimit drops a task that stops waiting, and admits those behind it", async () => {
  const limit = new ConcurrencyLimit(10);
  await entered(limit, 4);
  const stop = new AbortController();
  const stopped = entered(limit, 10, stop.signal);
  const next = entered(limit, 6);
  stop.abort(new Error("stopped"));
  await assert.rejects(stopped, /stopped/);
  await next;
  await assert.rejects(entered(limit, 1, stop.signal), /stopped/);
  assert.equal(limit.waiting, 0);
});

test("ConcurrencyLimit keeps those that wait when a task in progress is stopped", async () => {
  const limit = new ConcurrencyLimit(1);
  await entered(limit, 1);
  const stop = new AbortController();
  const second = entered(limit, 1, stop.signal);
  const third = entered(limit, 1);
  limit.leave(1);
  await second;
  stop.abort();
  assert.equal(limit.waiting, 1);
  limit.leave(1);
  await third;
});
