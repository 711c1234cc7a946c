import assert from "node:assert/strict";
import { test } from "node:test";
import { RelistQueue } from "../../../../core/cache/watch/relist_queue.ts";

const never = new AbortController().signal;

test("RelistQueue admits up to its limit, and the others in order", async () => {
  const queue = new RelistQueue(2);
  const entered: string[] = [];
  const leave = new Map<string, () => void>();
  const enter = async (name: string) => {
    leave.set(name, await queue.enter(never));
    entered.push(name);
  };
  const all = ["a", "b", "c", "d"].map(enter);
  await Promise.all(all.slice(0, 2));
  assert.deepEqual(entered, ["a", "b"]);
  assert.equal(queue.waiting, 2);
  leave.get("b")?.();
  leave.get("b")?.();
  await all[2];
  assert.deepEqual(entered, ["a", "b", "c"], "leaving twice counts once");
  leave.get("a")?.();
  await all[3];
  leave.get("c")?.();
  leave.get("d")?.();
  await enter("e");
  assert.equal(queue.waiting, 0);
});

test("RelistQueue drops a relist that stops waiting", async () => {
  const queue = new RelistQueue(1);
  const leave = await queue.enter(never);
  const stop = new AbortController();
  const stopped = queue.enter(stop.signal);
  const next = queue.enter(never);
  stop.abort(new Error("stopped"));
  await assert.rejects(stopped, /stopped/);
  await assert.rejects(queue.enter(stop.signal), /stopped/);
  leave();
  (await next)();
  (await queue.enter(never))();
});

test("RelistQueue keeps those that wait when a relist in progress is stopped", async () => {
  const queue = new RelistQueue(1);
  const leave = await queue.enter(never);
  const stop = new AbortController();
  const second = queue.enter(stop.signal);
  const third = queue.enter(never);
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
  const leave = await queue.enter(never);
  const second = queue.enter(never);
  leave();
  const leaveSecond = await second;
  const third = queue.enter(never);
  assert.equal(queue.waiting, 1, "the second is in progress");
  leaveSecond();
  const leaveThird = await third;
  leaveThird();
  leaveThird();
  const leaveLast = await queue.enter(never);
  const waiting = queue.enter(never);
  assert.equal(queue.waiting, 1, "leaving twice counts once");
  leaveLast();
  (await waiting)();
});
