import assert from "node:assert/strict";
import { test } from "node:test";
import { RelistQueue } from "../../../../core/cache/watch/relist_queue.ts";
import { inTime } from "../../../support/in_time.ts";

const never = new AbortController().signal;

/** Enters a queue; a place that is lost fails a test quickly. */
function entered(
  queue: RelistQueue,
  signal: AbortSignal = never,
): Promise<() => void> {
  return inTime("a relist has entered", queue.enter(signal), 5_000);
}

test("RelistQueue admits up to its limit, and the others in order", async () => {
  const queue = new RelistQueue(2);
  const order: string[] = [];
  const leave = new Map<string, () => void>();
  const enter = async (name: string) => {
    leave.set(name, await entered(queue));
    order.push(name);
  };
  const all = ["a", "b", "c", "d"].map(enter);
  await Promise.all(all.slice(0, 2));
  assert.deepEqual(order, ["a", "b"]);
  assert.equal(queue.waiting, 2);
  leave.get("b")?.();
  leave.get("b")?.();
  await all[2];
  assert.deepEqual(order, ["a", "b", "c"], "leaving twice counts once");
  leave.get("a")?.();
  await all[3];
  leave.get("c")?.();
  leave.get("d")?.();
  await enter("e");
  assert.equal(queue.waiting, 0);
});

test("RelistQueue drops a relist that stops waiting", async () => {
  const queue = new RelistQueue(1);
  const leave = await entered(queue);
  const stop = new AbortController();
  const stopped = entered(queue, stop.signal);
  const next = entered(queue);
  stop.abort(new Error("stopped"));
  await assert.rejects(stopped, /stopped/);
  await assert.rejects(entered(queue, stop.signal), /stopped/);
  leave();
  (await next)();
  (await entered(queue))();
});

test("RelistQueue keeps those that wait when a relist in progress is stopped", async () => {
  const queue = new RelistQueue(1);
  const leave = await entered(queue);
  const stop = new AbortController();
  const second = entered(queue, stop.signal);
  const third = entered(queue);
  leave();
  const leaveSecond = await second;
  stop.abort();
  assert.equal(queue.waiting, 1);
  leaveSecond();
  (await third)();
});

test("RelistQueue rejects a limit below one", () => {
  for (const most of [0, -1, 1.5, NaN]) {
    assert.throws(() => new RelistQueue(most), RangeError);
  }
});

test("RelistQueue admits no more than its limit after a relist has left", async () => {
  const queue = new RelistQueue(1);
  const leave = await entered(queue);
  const second = entered(queue);
  leave();
  const leaveSecond = await second;
  const third = entered(queue);
  assert.equal(queue.waiting, 1, "the second is in progress");
  leaveSecond();
  const leaveThird = await third;
  leaveThird();
  leaveThird();
  const leaveLast = await entered(queue);
  const waiting = entered(queue);
  assert.equal(queue.waiting, 1, "leaving twice counts once");
  leaveLast();
  (await waiting)();
});
