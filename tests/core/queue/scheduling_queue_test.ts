import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Priority,
  type QueueItem,
  SchedulingQueue,
} from "../../../core/queue/scheduling_queue.ts";
import { VirtualClock } from "../../../dev/testing/virtual_clock.ts";

function takeAll(queue: SchedulingQueue): string[] {
  const keys: string[] = [];
  for (let item; (item = queue.take()) !== undefined;) {
    keys.push(item.key);
    queue.done(item);
  }
  return keys;
}

/** Takes the next key, which must exist. */
function take(queue: SchedulingQueue): QueueItem {
  return queue.take() ?? assert.fail("no key waits");
}

test("SchedulingQueue merges several adds into one run and counts them", () => {
  const queue = new SchedulingQueue();
  queue.add("a", { cause: 3, detail: "first" });
  queue.add("a", { cause: 4, detail: "second" });
  assert.equal(queue.waiting, 1);
  const item = take(queue);
  assert.equal(item.key, "a");
  assert.equal(item.events, 2);
  assert.equal(item.cause, 3);
  assert.equal(item.detail, "first");
  queue.done(item);
  assert.equal(queue.take(), undefined);
  assert.equal(queue.size, 0);
});

test("SchedulingQueue runs a key once more if it is added during its run", () => {
  const queue = new SchedulingQueue();
  queue.add("a");
  const first = take(queue);
  assert.equal(first.isDirty, false);
  queue.add("a");
  queue.add("a");
  assert.equal(first.isDirty, true);
  assert.equal(queue.take(), undefined, "a key never has two concurrent runs");
  queue.done(first);
  const second = take(queue);
  assert.equal(second.events, 2);
  queue.done(second);
  assert.equal(queue.take(), undefined);
});

test("SchedulingQueue takes keys in order of their adds within a priority", () => {
  const queue = new SchedulingQueue();
  for (const key of ["c", "a", "b"]) queue.add(key);
  queue.add("a");
  assert.deepEqual(takeAll(queue), ["c", "a", "b"]);
});

test("SchedulingQueue takes urgent keys first and moves keys up", () => {
  const queue = new SchedulingQueue();
  queue.add("resync", { priority: Priority.resync });
  queue.add("moved", { priority: Priority.resync, cause: 1 });
  queue.add("timer", { priority: Priority.timer });
  queue.add("live", { priority: Priority.live });
  queue.add("moved", { priority: Priority.live, cause: 2 });
  queue.add("live", { priority: Priority.resync });
  const item = take(queue);
  assert.equal(item.key, "live");
  assert.equal(item.priority, Priority.live);
  queue.done(item);
  const moved = take(queue);
  assert.equal(moved.key, "moved");
  assert.equal(moved.cause, 2, "the most urgent cause counts");
  queue.done(moved);
  assert.deepEqual(takeAll(queue), ["timer", "resync"]);
});

test("SchedulingQueue lets no priority starve", () => {
  const queue = new SchedulingQueue();
  const order: Priority[] = [];
  for (let index = 0; index < 100; index++) {
    queue.add(`resync-${index}`, { priority: Priority.resync });
    queue.add(`timer-${index}`, { priority: Priority.timer });
  }
  for (let index = 0; index < 1_000; index++) {
    queue.add(`live-${index}`);
    const item = take(queue);
    order.push(item.priority);
    queue.done(item);
  }
  const gaps = (priority: Priority) => {
    const taken = order.flatMap((value, index) =>
      value === priority ? [index] : []
    );
    return Math.max(...taken.map((index, n) => index - (taken[n - 1] ?? -1)));
  };
  assert.ok(
    gaps(Priority.timer) <= 17,
    `timer waited ${gaps(Priority.timer)} takes`,
  );
  assert.ok(
    gaps(Priority.resync) <= 65,
    `resync waited ${gaps(Priority.resync)} takes`,
  );
  const live = order.filter((priority) => priority === Priority.live).length;
  assert.ok(live > 900, `live changes had ${live} of 1000 takes`);
});

test("SchedulingQueue sets one timer of the clock for all deadlines [J74]", async () => {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock });
  for (const [key, delay] of [["a", 300], ["b", 100], ["c", 200]] as const) {
    queue.add(key);
    const item = take(queue);
    queue.setTimer(item, clock.now() + delay, { cause: 7 });
    queue.done(item);
  }
  assert.equal(clock.pendingTimers <= 2, true);
  assert.equal(queue.delayed, 3);
  await clock.advance(99);
  assert.equal(queue.waiting, 0);
  await clock.advance(1);
  const item = take(queue);
  assert.equal(item.key, "b");
  assert.equal(item.cause, 7);
  assert.equal(item.priority, Priority.timer);
  queue.done(item);
  await clock.advance(200);
  assert.deepEqual(takeAll(queue), ["c", "a"]);
  assert.equal(clock.pendingTimers, 0);
  assert.equal(queue.size, 0);
});

test("SchedulingQueue frees a cancelled deadline immediately [3.9.8]", () => {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock });
  for (let run = 0; run < 10_000; run++) {
    queue.add("a");
    const item = take(queue);
    queue.setTimer(item, clock.now() + 36_000_000);
    queue.done(item);
  }
  assert.equal(queue.delayed, 1);
  assert.equal(clock.pendingTimers, 1);
  queue.remove("a");
  assert.equal(queue.delayed, 0);
  assert.equal(clock.pendingTimers, 0);
  assert.equal(queue.size, 0);
});

test("SchedulingQueue keeps a reschedule over runs that do not replace it [3.9.5]", async () => {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock });
  queue.add("a");
  const first = take(queue);
  queue.reschedule(first, 1_000, { cause: 5 });
  queue.add("a");
  queue.done(first);
  const second = take(queue);
  queue.setTimer(second, 5_000, { cause: 6 });
  queue.done(second);
  await clock.advance(1_000);
  const rescheduled = take(queue);
  assert.equal(rescheduled.cause, 5);
  assert.equal(rescheduled.rescheduleAt, Infinity);
  queue.done(rescheduled);
  await clock.advance(4_000);
  assert.equal(take(queue).cause, 6);
});

test("SchedulingQueue collects the adds of a held key", async () => {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock });
  queue.add("a");
  const item = take(queue);
  queue.add("a");
  queue.hold(item, 100);
  queue.done(item);
  queue.add("a");
  assert.equal(queue.take(), undefined);
  await clock.advance(100);
  const next = take(queue);
  assert.equal(next.events, 2);
  queue.hold(next, 200);
  queue.done(next);
  await clock.advance(100);
  assert.equal(queue.size, 0, "a hold without adds ends quietly");
});

test("SchedulingQueue delays a key as its limiter decides", async () => {
  const clock = new VirtualClock();
  await clock.advance(1_000);
  const waits = [50, 0];
  const asked: [string, number][] = [];
  const queue = new SchedulingQueue({
    clock,
    limiter: {
      admit(key, now) {
        asked.push([key, now]);
        return waits.shift() ?? 0;
      },
    },
  });
  queue.add("a", { cause: 9 });
  assert.equal(queue.take(), undefined);
  queue.add("a");
  assert.equal(queue.take(), undefined);
  await clock.advance(50);
  const item = take(queue);
  assert.equal(item.cause, 9, "the cause outlives the wait");
  assert.equal(item.events, 2);
  assert.deepEqual(asked, [["a", 1_000], ["a", 1_050]]);
});

test("SchedulingQueue marks a running key as removed [3.9.0]", () => {
  const queue = new SchedulingQueue();
  queue.add("a");
  const old = take(queue);
  queue.remove("a");
  assert.equal(old.isRemoved, true);
  queue.add("a");
  assert.equal(
    queue.take(),
    undefined,
    "two incarnations never run concurrently",
  );
  assert.equal(old.isRemoved, true);
  queue.done(old);
  const next = take(queue);
  assert.equal(next.isRemoved, false);
  assert.equal(next.events, 1);
  queue.done(next);
  assert.equal(queue.size, 0);
});

test("SchedulingQueue drops the waiting run of a removed key [3.9.10]", () => {
  const queue = new SchedulingQueue();
  queue.add("a");
  queue.add("b", { priority: Priority.resync });
  queue.remove("a");
  queue.remove("b");
  queue.remove("never-seen");
  assert.equal(queue.take(), undefined);
  assert.equal(queue.size, 0);
});

test("SchedulingQueue stores nothing after a burst", () => {
  const queue = new SchedulingQueue();
  for (let round = 0; round < 2; round++) {
    for (let index = 0; index < 10_000; index++) queue.add(`key-${index}`);
    assert.equal(queue.size, 10_000);
    assert.equal(takeAll(queue).length, 10_000);
    assert.equal(queue.size, 0);
  }
});

test("SchedulingQueue calls onReady when the first key starts to wait", () => {
  let ready = 0;
  const queue: SchedulingQueue = new SchedulingQueue({
    onReady: () => ready++,
  });
  queue.add("a");
  queue.add("b");
  assert.equal(ready, 1);
  const item = take(queue);
  queue.take();
  queue.add("a");
  queue.done(item);
  assert.equal(ready, 2);
});

test("SchedulingQueue drains when it is closed [J75]", async () => {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock });
  queue.add("delayed");
  const delayed = take(queue);
  queue.setTimer(delayed, 1_000);
  queue.done(delayed);
  queue.add("held");
  const held = take(queue);
  queue.hold(held, 1_000);
  queue.done(held);
  queue.add("held");
  queue.add("a");
  const item = take(queue);
  queue.add("b");
  let drained = false;
  const closed = queue.close().then(() => drained = true);
  queue.add("late");
  queue.setTimer(item, 10);
  assert.equal(clock.pendingTimers, 0);
  assert.deepEqual(takeAll(queue), ["b", "held"]);
  await clock.settle();
  assert.equal(drained, false, "a run goes on");
  queue.done(item);
  await closed;
  assert.equal(queue.size, 0);
});

test("SchedulingQueue loses no key that its limiter delays when it is closed", async () => {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock, limiter: { admit: () => 50 } });
  queue.add("delayed");
  assert.equal(queue.take(), undefined);
  queue.add("waiting");
  let drained = false;
  const closed = queue.close().then(() => drained = true);
  const items = [take(queue), take(queue)];
  assert.deepEqual(items.map(({ key }) => key), ["waiting", "delayed"]);
  assert.equal(queue.take(), undefined);
  assert.equal(clock.pendingTimers, 0);
  for (const item of items) {
    await clock.settle();
    assert.equal(drained, false, "a run goes on");
    queue.done(item);
  }
  await closed;
  assert.equal(queue.size, 0);
});

test("SchedulingQueue rejects ending a run twice", () => {
  const queue = new SchedulingQueue();
  queue.add("a");
  const item = take(queue);
  queue.done(item);
  assert.throws(() => queue.done(item), RangeError);
});

test("SchedulingQueue keeps no details of runs that are over or removed", () => {
  const queue = new SchedulingQueue({ clock: new VirtualClock() });
  const details = (item: QueueItem) => [
    item.detail,
    Reflect.get(item, "nextDetail"),
  ];
  queue.add("a", { detail: "first" });
  const item = take(queue);
  assert.deepEqual(details(item), ["first", undefined]);
  // A deadline keeps the key.
  queue.setTimer(item, 60_000);
  queue.add("a", { detail: "second" });
  queue.done(item);
  queue.remove("a");
  assert.deepEqual(details(item), [undefined, undefined]);
  queue.add("b", { detail: "third" });
  const other = take(queue);
  queue.setTimer(other, 60_000);
  queue.done(other);
  assert.equal(queue.delayed, 1);
  assert.deepEqual(details(other), [undefined, undefined]);
});

test("SchedulingQueue handles many deadlines in turns, with one timer", () => {
  const fires: (() => void)[] = [];
  let now = 0;
  let cancelled = 0;
  const queue = new SchedulingQueue({
    clock: Object.assign(new VirtualClock(), {
      now: () => now,
      setTimer(fire: () => void) {
        fires.push(fire);
        return { cancel: () => void cancelled++ };
      },
    }),
  });
  for (let i = 0; i < 5_001; i++) queue.addAt(`${i}`, 1_000 + i, { cause: 1 });
  queue.addAt("0", 1_000, { cause: 2 });
  assert.equal(fires.length, 1, "for the earliest");
  now = 10_000;
  fires.shift()?.();
  assert.equal(queue.waiting, 5_000);
  assert.equal(take(queue).cause, 1, "the first of two that are due together");
  assert.equal(fires.length, 1, "for the rest");
  fires.shift()?.();
  assert.equal(queue.waiting, 5_000);
  assert.deepEqual([fires.length, cancelled], [0, 0]);
});

test("SchedulingQueue prefers no priority for a time in which it was empty", () => {
  const queue = new SchedulingQueue();
  for (let i = 0; i < 100; i++) queue.add(`live-${i}`);
  takeAll(queue);
  queue.add("timer", { priority: Priority.timer });
  queue.add("resync", { priority: Priority.resync });
  queue.add("live");
  assert.deepEqual(takeAll(queue), ["live", "timer", "resync"]);
});

test("SchedulingQueue that is closed drains when the last key is removed", async () => {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock });
  queue.add("a");
  let drained = false;
  void queue.close().then(() => drained = true);
  await clock.settle();
  assert.equal(drained, false, "a key waits");
  queue.remove("a");
  await clock.settle();
  assert.equal(drained, true);
  await new SchedulingQueue({ clock }).close();
});

test("SchedulingQueue that is closed takes no deadline for a run that goes on", () => {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock });
  queue.add("a");
  const item = take(queue);
  void queue.close();
  queue.setTimer(item, 1_000);
  queue.reschedule(item, 1_000);
  queue.hold(item, 1_000);
  queue.addAt("b", 1_000);
  queue.done(item);
  assert.deepEqual([queue.delayed, queue.size, clock.pendingTimers], [0, 0, 0]);
});

test("SchedulingQueue releases a held key, but not from a later hold", () => {
  const queue = new SchedulingQueue({ clock: new VirtualClock() });
  queue.add("a");
  const item = take(queue);
  queue.hold(item, 10);
  queue.done(item);
  queue.add("a");
  assert.equal(queue.waiting, 0);
  queue.release(item, 10);
  assert.deepEqual([queue.waiting, queue.delayed], [1, 0]);
  const again = take(queue);
  queue.hold(again, 20);
  queue.add("a");
  queue.done(again);
  queue.release(item, 10);
  assert.equal(queue.waiting, 0, "held until 20");
});

test("SchedulingQueue forgets a key that is released without an add", () => {
  const queue = new SchedulingQueue({ clock: new VirtualClock() });
  queue.add("a");
  const item = take(queue);
  queue.hold(item, 10);
  queue.done(item);
  queue.release(item, 10);
  assert.equal(queue.size, 0);
  queue.add("a");
  queue.release(item, 10);
  assert.equal(queue.waiting, 1);
});

test("SchedulingQueue knows since when a key waits for its run", async () => {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock });
  await clock.advance(100);
  queue.add("a");
  await clock.advance(20);
  const item = take(queue);
  assert.equal(item.addedAt, 100);
  queue.add("a");
  await clock.advance(30);
  queue.done(item);
  assert.equal(take(queue).addedAt, 150);
});

test("SchedulingQueue starts no second run when a hold ends during the first", () => {
  const queue = new SchedulingQueue({ clock: new VirtualClock() });
  queue.add("a");
  const item = take(queue);
  queue.hold(item, 50);
  queue.release(item, 50);
  assert.equal(queue.waiting, 0);
  assert.equal(queue.take(), undefined);
});

test("SchedulingQueue adds a running key at a later time as a timer", () => {
  const queue = new SchedulingQueue({ clock: new VirtualClock() });
  queue.add("a");
  const item = take(queue);
  queue.addAt("a", 10);
  queue.add("b", { priority: Priority.live });
  queue.done(item);
  queue.add("c", { priority: Priority.live });
  assert.deepEqual(takeAll(queue), ["b", "c", "a"]);
});
