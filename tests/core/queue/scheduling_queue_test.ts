import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import {
  Priority,
  type QueueItem,
  SchedulingQueue,
} from "../../../core/queue/scheduling_queue.ts";
import { ADDED, QUEUE_CAUSES } from "../../../core/controller/cause.ts";
import { VirtualClock } from "../../../dev/testing/virtual_clock.ts";

const causes = QUEUE_CAUSES;
/** Adds of each priority. */
const adds = { live: ADDED, timer: causes.retry, resync: causes.first };

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
  const queue = new SchedulingQueue({ causes });
  queue.add("a", { ...ADDED, cause: "first" });
  queue.add("a", { ...ADDED, cause: "second" });
  assert.equal(queue.waiting, 1);
  const item = take(queue);
  assert.equal(item.key, "a");
  assert.equal(item.events, 2);
  assert.equal(item.add.cause, "first");
  queue.done(item);
  assert.equal(queue.take(), undefined);
  assert.equal(queue.size, 0);
});

test("SchedulingQueue runs a key once more if it is added during its run", () => {
  const queue = new SchedulingQueue({ causes });
  queue.add("a", ADDED);
  const first = take(queue);
  assert.equal(first.added > 0, false);
  queue.add("a", ADDED);
  queue.add("a", ADDED);
  assert.equal(first.added > 0, true);
  assert.equal(queue.take(), undefined, "a key never has two concurrent runs");
  queue.done(first);
  const second = take(queue);
  assert.equal(second.events, 2);
  queue.done(second);
  assert.equal(queue.take(), undefined);
});

test("SchedulingQueue takes keys in order of their adds within a priority", () => {
  const queue = new SchedulingQueue({ causes });
  for (const key of ["c", "a", "b"]) queue.add(key, ADDED);
  queue.add("a", ADDED);
  assert.deepEqual(takeAll(queue), ["c", "a", "b"]);
});

test("SchedulingQueue takes urgent keys first and moves keys up", () => {
  const queue = new SchedulingQueue({ causes });
  queue.add("resync", adds.resync);
  queue.add("moved", { ...adds.resync, cause: 1 });
  queue.add("timer", adds.timer);
  queue.add("live", adds.live);
  queue.add("moved", { ...adds.live, cause: 2 });
  queue.add("live", adds.resync);
  const item = take(queue);
  assert.equal(item.key, "live");
  assert.equal(item.add.priority, Priority.live);
  queue.done(item);
  const moved = take(queue);
  assert.equal(moved.key, "moved");
  assert.equal(moved.add.cause, 2, "the most urgent cause counts");
  queue.done(moved);
  assert.deepEqual(takeAll(queue), ["timer", "resync"]);
});

test("SchedulingQueue lets no priority starve", () => {
  const queue = new SchedulingQueue({ causes });
  const order: Priority[] = [];
  for (let index = 0; index < 100; index++) {
    queue.add(`resync-${index}`, adds.resync);
    queue.add(`timer-${index}`, adds.timer);
  }
  for (let index = 0; index < 1_000; index++) {
    queue.add(`live-${index}`, ADDED);
    const item = take(queue);
    order.push(item.add.priority);
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
  const queue = new SchedulingQueue({ clock, causes });
  for (const [key, delay] of [["a", 300], ["b", 100], ["c", 200]] as const) {
    queue.add(key, ADDED);
    const item = take(queue);
    queue.setTimer(item, clock.now() + delay, "retry");
    queue.done(item);
  }
  assert.equal(clock.pendingTimers <= 2, true);
  assert.equal(queue.delayed, 3);
  await clock.advance(99);
  assert.equal(queue.waiting, 0);
  await clock.advance(1);
  const item = take(queue);
  assert.equal(item.key, "b");
  assert.equal(item.add, causes.retry);
  queue.done(item);
  await clock.advance(200);
  assert.deepEqual(takeAll(queue), ["c", "a"]);
  assert.equal(clock.pendingTimers, 0);
  assert.equal(queue.size, 0);
});

test("SchedulingQueue frees a cancelled deadline immediately [3.9.8]", () => {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock, causes });
  for (let run = 0; run < 10_000; run++) {
    queue.add("a", ADDED);
    const item = take(queue);
    queue.setTimer(item, clock.now() + 36_000_000, "interval");
    queue.done(item);
  }
  assert.equal(queue.delayed, 1);
  assert.equal(clock.pendingTimers, 1);
  queue.add("a", ADDED);
  const item = take(queue);
  queue.setTimer(item, Infinity, "retry");
  assert.equal(queue.delayed, 0);
  queue.setTimer(item, clock.now() + 36_000_000, "interval");
  queue.done(item);
  assert.equal(queue.delayed, 1);
  queue.remove("a");
  assert.equal(queue.delayed, 0);
  assert.equal(clock.pendingTimers, 0);
  assert.equal(queue.size, 0);
});

test("SchedulingQueue keeps a reschedule over runs that do not replace it [3.9.5]", async () => {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock, causes });
  queue.add("a", ADDED);
  const first = take(queue);
  queue.reschedule(first, 1_000);
  queue.add("a", ADDED);
  queue.done(first);
  const second = take(queue);
  queue.setTimer(second, 5_000, "retry");
  queue.done(second);
  await clock.advance(1_000);
  const rescheduled = take(queue);
  assert.equal(rescheduled.add, causes.reschedule);
  queue.done(rescheduled);
  await clock.advance(4_000);
  assert.equal(take(queue).add, causes.retry);
});

test("SchedulingQueue collects the adds of a held key", async () => {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock, causes });
  queue.add("a", ADDED);
  const item = take(queue);
  queue.add("a", ADDED);
  queue.hold(item, 100);
  queue.done(item);
  queue.add("a", ADDED);
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
    causes,
    limiter: {
      admit(key, now) {
        asked.push([key, now]);
        return waits.shift() ?? 0;
      },
    },
  });
  queue.add("a", { ...ADDED, cause: 9 });
  assert.equal(queue.take(), undefined);
  queue.add("a", ADDED);
  assert.equal(queue.take(), undefined);
  await clock.advance(50);
  const item = take(queue);
  assert.equal(item.add.cause, 9, "the cause outlives the wait");
  assert.equal(item.events, 2);
  assert.deepEqual(asked, [["a", 1_000], ["a", 1_050]]);
});

test("SchedulingQueue marks a running key as removed [3.9.0]", () => {
  const queue = new SchedulingQueue({ causes });
  queue.add("a", ADDED);
  const old = take(queue);
  queue.remove("a");
  assert.equal(old.isRemoved, true);
  queue.add("a", ADDED);
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
  const queue = new SchedulingQueue({ causes });
  queue.add("a", ADDED);
  queue.add("b", adds.resync);
  queue.remove("a");
  queue.remove("b");
  queue.remove("never-seen");
  assert.equal(queue.take(), undefined);
  assert.equal(queue.size, 0);
});

test("SchedulingQueue stores nothing after a burst", () => {
  const queue = new SchedulingQueue({ causes });
  for (let round = 0; round < 2; round++) {
    for (let index = 0; index < 10_000; index++) {
      queue.add(`key-${index}`, ADDED);
    }
    assert.equal(queue.size, 10_000);
    assert.equal(takeAll(queue).length, 10_000);
    assert.equal(queue.size, 0);
  }
});

test("SchedulingQueue calls onReady when the first key starts to wait", () => {
  let ready = 0;
  const queue: SchedulingQueue = new SchedulingQueue({
    causes,
    onReady: () => ready++,
  });
  queue.add("a", ADDED);
  queue.add("b", ADDED);
  assert.equal(ready, 1);
  const item = take(queue);
  queue.take();
  queue.add("a", ADDED);
  queue.done(item);
  assert.equal(ready, 2);
});

test("SchedulingQueue rejects ending a run twice", () => {
  const queue = new SchedulingQueue({ causes });
  queue.add("a", ADDED);
  const item = take(queue);
  queue.done(item);
  assert.throws(() => queue.done(item), RangeError);
});

test("SchedulingQueue keeps no details of runs that were taken or removed", () => {
  const queue = new SchedulingQueue({ clock: new VirtualClock(), causes });
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < 300; i++) {
    queue.add(`${i}`, { ...ADDED, cause: new Array(250_000).fill(i) });
    if (i % 2 === 0) {
      queue.remove(`${i}`);
      continue;
    }
    const item = take(queue);
    assert.equal((item.add.cause as number[])[0], i);
    // A deadline keeps the key.
    queue.setTimer(item, 60_000, "retry");
    queue.done(item);
  }
  assert.equal(queue.delayed, 150);
  const mebibytes = (process.memoryUsage().heapUsed - before) / 2 ** 20;
  assert.ok(mebibytes < 250, `${mebibytes} MiB of 572 MiB are still held`);
});

test("SchedulingQueue handles many deadlines in turns, with one timer", () => {
  const fires: (() => void)[] = [];
  let now = 0;
  let cancelled = 0;
  const queue = new SchedulingQueue({
    causes,
    clock: Object.assign(new VirtualClock(), {
      now: () => now,
      setTimer(fire: () => void) {
        fires.push(fire);
        return { cancel: () => void cancelled++ };
      },
    }),
  });
  for (let i = 0; i < 5_001; i++) queue.addAt(`${i}`, 1_000 + i, "retry");
  queue.addAt("0", 1_000, "interval");
  assert.equal(fires.length, 1, "for the earliest");
  now = 10_000;
  fires.shift()?.();
  assert.equal(queue.waiting, 5_000);
  assert.equal(take(queue).add, causes.retry, "the first of two due together");
  assert.equal(fires.length, 1, "for the rest");
  fires.shift()?.();
  assert.equal(queue.waiting, 5_000);
  assert.deepEqual([fires.length, cancelled], [0, 0]);
});

test("SchedulingQueue prefers no priority for a time in which it was empty", () => {
  const queue = new SchedulingQueue({ causes });
  for (let i = 0; i < 100; i++) queue.add(`live-${i}`, ADDED);
  takeAll(queue);
  queue.add("timer", adds.timer);
  queue.add("resync", adds.resync);
  queue.add("live", ADDED);
  assert.deepEqual(takeAll(queue), ["live", "timer", "resync"]);
});

test("SchedulingQueue releases a held key, but not from a later hold", () => {
  const queue = new SchedulingQueue({ clock: new VirtualClock(), causes });
  queue.add("a", ADDED);
  const item = take(queue);
  queue.hold(item, 10);
  queue.done(item);
  queue.add("a", ADDED);
  assert.equal(queue.waiting, 0);
  queue.release(item, 10);
  assert.deepEqual([queue.waiting, queue.delayed], [1, 0]);
  const again = take(queue);
  queue.hold(again, 20);
  queue.add("a", ADDED);
  queue.done(again);
  queue.release(item, 10);
  assert.equal(queue.waiting, 0, "held until 20");
});

test("SchedulingQueue forgets a key that is released without an add", () => {
  const queue = new SchedulingQueue({ clock: new VirtualClock(), causes });
  queue.add("a", ADDED);
  const item = take(queue);
  queue.hold(item, 10);
  queue.done(item);
  queue.release(item, 10);
  assert.equal(queue.size, 0);
  queue.add("a", ADDED);
  queue.release(item, 10);
  assert.equal(queue.waiting, 1);
});

test("SchedulingQueue knows since when a key waits for its run", async () => {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock, causes });
  await clock.advance(100);
  queue.add("a", ADDED);
  await clock.advance(20);
  const item = take(queue);
  assert.equal(item.addedAt, 100);
  queue.add("a", ADDED);
  await clock.advance(30);
  queue.done(item);
  assert.equal(take(queue).addedAt, 150);
});

test("SchedulingQueue starts no second run when a hold ends during the first", () => {
  const queue = new SchedulingQueue({ clock: new VirtualClock(), causes });
  queue.add("a", ADDED);
  const item = take(queue);
  queue.hold(item, 50);
  queue.release(item, 50);
  assert.equal(queue.waiting, 0);
  assert.equal(queue.take(), undefined);
});

test("SchedulingQueue adds a running key at a later time as a timer", () => {
  const queue = new SchedulingQueue({ clock: new VirtualClock(), causes });
  queue.add("a", ADDED);
  const item = take(queue);
  queue.addAt("a", 10, "retry");
  queue.add("b", adds.live);
  queue.done(item);
  queue.add("c", adds.live);
  assert.deepEqual(takeAll(queue), ["b", "c", "a"]);
});

/** Queue of keys whose place is their number. */
function placedQueue() {
  const clock = new VirtualClock();
  const gone = new Set<number>();
  const keyAt = (place: number) => gone.has(place) ? undefined : `k${place}`;
  let ready = 0;
  const queue = new SchedulingQueue({
    clock,
    onReady: () => ready++,
    keyAt,
    causes,
  });
  return { clock, gone, queue, ready: () => ready };
}

test("SchedulingQueue takes first runs last, but one of 64 keys, in turn with a list", () => {
  const { queue, ready } = placedQueue();
  for (let place = 0; place < 4; place++) {
    queue.add(`k${place}`, causes.first, place);
  }
  assert.equal(ready(), 1);
  queue.add("listed-1", causes.first);
  queue.add("listed-2", causes.first);
  for (let i = 0; i < 130; i++) queue.add(`live-${i}`, ADDED);
  assert.equal(queue.waiting, 136);
  const low: [number, string][] = [];
  let turn = 0;
  for (let item; (item = queue.take()) !== undefined; turn++) {
    if (item.add.priority === Priority.resync) low.push([turn, item.key]);
    queue.done(item);
  }
  assert.deepEqual(low, [
    [63, "listed-1"],
    [127, "k0"],
    [132, "listed-2"],
    [133, "k1"],
    [134, "k2"],
    [135, "k3"],
  ]);
  assert.deepEqual([queue.waiting, queue.size, queue.delayed], [0, 0, 0]);
});

test("SchedulingQueue runs a key once that an event added before its first run", () => {
  const { queue } = placedQueue();
  queue.add("k1", causes.first, 1);
  queue.add("k1", causes.first, 1);
  queue.add("k1", { ...ADDED, cause: 7 }, 1);
  assert.equal(queue.waiting, 1);
  const item = queue.take();
  assert.deepEqual([item?.key, item?.add.cause, item?.events], ["k1", 7, 2]);
  queue.add("k1", causes.first, 1);
  assert.equal(item?.added, 1);
  queue.done(item as QueueItem);
  assert.equal(queue.take()?.add, causes.first);
  assert.equal(queue.take(), undefined);
});

test("SchedulingQueue skips the place of a key that is gone", () => {
  const { queue, gone } = placedQueue();
  queue.add("k1", causes.first, 1);
  queue.add("k2", causes.first, 2);
  gone.add(1);
  assert.equal(queue.take()?.key, "k2");
  assert.equal(queue.take(), undefined);
  assert.equal(queue.waiting, 0);
});

test("SchedulingQueue keeps an interval by its place, exactly, and with one timer", async () => {
  const { queue, clock } = placedQueue();
  const run = (at: number) => {
    const item = queue.take() as QueueItem;
    queue.setTimer(item, at, "interval", Number(item.key.slice(1)));
    queue.done(item);
  };
  for (const place of [1, 2]) queue.add(`k${place}`, causes.first, place);
  run(5_000);
  run(6_000);
  assert.deepEqual([queue.size, queue.delayed], [0, 2]);
  assert.equal(clock.pendingTimers, 1);
  await clock.advance(4_999);
  assert.equal(queue.waiting, 0);
  await clock.advance(1);
  const item = queue.take() as QueueItem;
  assert.deepEqual([item.key, item.add], ["k1", causes.interval]);
  queue.done(item);
  queue.move(2, 9);
  await clock.advance(999);
  assert.equal(queue.waiting, 0);
  await clock.advance(1);
  assert.equal(queue.take()?.key, "k9");
});

test("SchedulingQueue drops the interval of a removed key with its timer", () => {
  const { queue, clock } = placedQueue();
  queue.add("k1", causes.first, 1);
  const item = queue.take() as QueueItem;
  queue.setTimer(item, 5_000, "interval", 1);
  queue.done(item);
  queue.remove("k1", 1);
  assert.deepEqual([queue.delayed, clock.pendingTimers], [0, 0]);
});

test("SchedulingQueue ends many intervals within half a second, a few thousand a turn", async () => {
  const { queue, clock } = placedQueue();
  const count = 30_000;
  for (let place = 0; place < count; place++) {
    queue.add(`k${place}`, causes.first, place);
    const item = queue.take() as QueueItem;
    queue.setTimer(item, 60_000 + place, "interval", place);
    queue.done(item);
  }
  let ended = 0;
  for (let step = 0; step < 400 && ended < count; step++) {
    await clock.advance(step === 0 ? 60_000 : 250);
    const due = Math.min(count, clock.now() - 60_000 - 500);
    for (let item; (item = queue.take()) !== undefined; ended++) {
      queue.done(item);
    }
    assert.ok(ended >= due, `${ended} of ${due}`);
  }
  assert.equal(ended, count);
});

test("SchedulingQueue keeps the value of a key until it is unset or the key is removed", () => {
  const queue = new SchedulingQueue<number>({
    clock: new VirtualClock(),
    causes,
  });
  queue.setValue("idle", 1);
  queue.add("run", ADDED);
  const item = queue.take() as QueueItem<number>;
  item.value = 2;
  assert.equal(queue.valueOf("run"), 2);
  queue.remove("run");
  assert.deepEqual([...queue.values()], [["idle", 1], ["run", 2]]);
  queue.done(item);
  assert.deepEqual([queue.valueOf("run"), queue.size], [2, 2]);
  queue.add("run", ADDED);
  const again = queue.take() as QueueItem<number>;
  again.value = undefined;
  queue.done(again);
  assert.deepEqual([queue.valueOf("run"), queue.size], [undefined, 1]);
  queue.add("idle", ADDED);
  assert.equal(queue.valueOf("idle"), 1);
  queue.remove("idle");
  assert.deepEqual([queue.valueOf("idle"), queue.size], [undefined, 0]);
});

test("SchedulingQueue collects adds until they pause, or for the longest time", async () => {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock, causes });
  const add = () => {
    queue.collect("a", 10, 25);
    queue.add("a", ADDED);
  };
  add();
  await clock.advance(8);
  add();
  await clock.advance(8);
  add();
  await clock.advance(8);
  assert.equal(queue.waiting, 0);
  add();
  await clock.advance(1);
  const item = queue.take();
  assert.equal(item?.events, 4);
  // An add during the run is collected after it.
  add();
  queue.done(item as QueueItem);
  assert.equal(queue.waiting, 0);
  await clock.advance(10);
  // A key that is ready is not held any more.
  add();
  assert.equal(queue.take()?.events, 2);
});
