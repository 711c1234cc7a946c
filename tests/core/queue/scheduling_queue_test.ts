import assert from "node:assert/strict";
import { test } from "node:test";
import { Priority } from "../../../core/queue/priority.ts";
import { SchedulingQueue } from "../../../core/queue/scheduling_queue.ts";
import { VirtualClock } from "../../../testing/virtual_clock.ts";

function takeAll(queue: SchedulingQueue): string[] {
  const keys: string[] = [];
  for (let slot; (slot = queue.take()) >= 0;) {
    keys.push(queue.key(slot));
    queue.done(slot);
  }
  return keys;
}

/** Takes the next key; fails where none waits. */
function taken(queue: SchedulingQueue): number {
  const slot = queue.take();
  assert.ok(slot >= 0, "a key waits");
  return slot;
}

test("SchedulingQueue makes one run of many adds and counts them", () => {
  const queue = new SchedulingQueue();
  queue.add("a", { cause: 3, detail: "first" });
  queue.add("a", { cause: 4, detail: "second" });
  assert.equal(queue.waiting, 1);
  const slot = taken(queue);
  assert.equal(queue.key(slot), "a");
  assert.equal(queue.events(slot), 2);
  assert.equal(queue.cause(slot), 3);
  assert.equal(queue.detail(slot), "first");
  queue.done(slot);
  assert.equal(queue.take(), -1);
  assert.equal(queue.size, 0);
});

test("SchedulingQueue runs a key once more when it is added during its run", () => {
  const queue = new SchedulingQueue();
  queue.add("a");
  const first = taken(queue);
  assert.equal(queue.isDirty(first), false);
  queue.add("a");
  queue.add("a");
  assert.equal(queue.isDirty(first), true);
  assert.equal(queue.take(), -1, "a key never runs twice at once");
  queue.done(first);
  const second = taken(queue);
  assert.equal(queue.events(second), 2);
  queue.done(second);
  assert.equal(queue.take(), -1);
});

test("SchedulingQueue takes keys in order of arrival within a priority", () => {
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
  const slot = taken(queue);
  assert.equal(queue.key(slot), "live");
  assert.equal(queue.priority(slot), Priority.live);
  queue.done(slot);
  const moved = taken(queue);
  assert.equal(queue.key(moved), "moved");
  assert.equal(queue.cause(moved), 2, "the most urgent cause is told");
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
    const slot = taken(queue);
    order.push(queue.priority(slot));
    queue.done(slot);
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

test("SchedulingQueue keeps deadlines by one timer of the clock [J74]", async () => {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock });
  for (const [key, delay] of [["a", 300], ["b", 100], ["c", 200]] as const) {
    queue.add(key);
    const slot = taken(queue);
    queue.setTimer(slot, clock.now() + delay, { cause: 7 });
    queue.done(slot);
  }
  assert.equal(clock.pendingTimers <= 2, true);
  assert.equal(queue.delayed, 3);
  await clock.advance(99);
  assert.equal(queue.waiting, 0);
  await clock.advance(1);
  const slot = taken(queue);
  assert.equal(queue.key(slot), "b");
  assert.equal(queue.cause(slot), 7);
  assert.equal(queue.priority(slot), Priority.timer);
  queue.done(slot);
  await clock.advance(200);
  assert.deepEqual(takeAll(queue), ["c", "a"]);
  assert.equal(clock.pendingTimers, 0);
  assert.equal(queue.size, 0);
});

test("SchedulingQueue frees a cancelled deadline at once [3.9.8]", () => {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock });
  for (let run = 0; run < 10_000; run++) {
    queue.add("a");
    const slot = taken(queue);
    queue.setTimer(slot, clock.now() + 36_000_000);
    queue.done(slot);
  }
  assert.equal(queue.delayed, 1);
  assert.equal(clock.pendingTimers, 1);
  queue.remove("a");
  assert.equal(queue.delayed, 0);
  assert.equal(clock.pendingTimers, 0);
  assert.equal(queue.size, 0);
});

test("SchedulingQueue keeps a visit over runs that do not replace it [3.9.5]", async () => {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock });
  queue.add("a");
  const first = taken(queue);
  queue.setVisit(first, 1_000, { cause: 5 });
  queue.add("a");
  queue.done(first);
  const second = taken(queue);
  queue.setTimer(second, 5_000, { cause: 6 });
  queue.done(second);
  await clock.advance(1_000);
  const visit = taken(queue);
  assert.equal(queue.cause(visit), 5);
  assert.equal(queue.visitAt(visit), Infinity);
  queue.done(visit);
  await clock.advance(4_000);
  assert.equal(queue.cause(taken(queue)), 6);
});

test("SchedulingQueue collects adds of a key that is held", async () => {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock });
  queue.add("a");
  const slot = taken(queue);
  queue.add("a");
  queue.hold(slot, 100);
  queue.done(slot);
  queue.add("a");
  assert.equal(queue.take(), -1);
  await clock.advance(100);
  const next = taken(queue);
  assert.equal(queue.events(next), 2);
  queue.hold(next, 200);
  queue.done(next);
  await clock.advance(100);
  assert.equal(queue.size, 0, "a hold without adds ends quietly");
});

test("SchedulingQueue asks its limiter and makes a key wait", async () => {
  const clock = new VirtualClock();
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
  assert.equal(queue.take(), -1);
  queue.add("a");
  assert.equal(queue.take(), -1);
  await clock.advance(50);
  const slot = taken(queue);
  assert.equal(queue.cause(slot), 9, "the cause outlives the wait");
  assert.equal(queue.events(slot), 2);
  assert.deepEqual(asked, [["a", 0], ["a", 50]]);
});

test("SchedulingQueue tells a late run that its key was removed [3.9.0]", () => {
  const queue = new SchedulingQueue();
  queue.add("a");
  const old = taken(queue);
  queue.remove("a");
  assert.equal(queue.isCurrent(old), false);
  queue.add("a");
  assert.equal(queue.take(), -1, "two incarnations never run at once");
  assert.equal(queue.isCurrent(old), false);
  queue.done(old);
  const next = taken(queue);
  assert.equal(queue.isCurrent(next), true);
  assert.equal(queue.events(next), 1);
  queue.done(next);
  assert.equal(queue.size, 0);
});

test("SchedulingQueue drops what waits for a removed key [3.9.10]", () => {
  const queue = new SchedulingQueue();
  queue.add("a");
  queue.add("b", { priority: Priority.resync });
  queue.remove("a");
  queue.remove("b");
  queue.remove("never-seen");
  assert.equal(queue.take(), -1);
  assert.equal(queue.size, 0);
});

test("SchedulingQueue gives memory back after a burst", () => {
  const queue = new SchedulingQueue();
  for (let round = 0; round < 2; round++) {
    for (let index = 0; index < 10_000; index++) queue.add(`key-${index}`);
    assert.equal(queue.size, 10_000);
    assert.equal(takeAll(queue).length, 10_000);
    assert.equal(queue.size, 0);
  }
});

test("SchedulingQueue says when keys begin to wait", () => {
  let ready = 0;
  const queue: SchedulingQueue = new SchedulingQueue({
    onReady: () => ready++,
  });
  queue.add("a");
  queue.add("b");
  assert.equal(ready, 1);
  const slot = taken(queue);
  queue.take();
  queue.add("a");
  queue.done(slot);
  assert.equal(ready, 2);
});

test("SchedulingQueue drains when it is closed [J75]", async () => {
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock });
  queue.add("delayed");
  const delayed = taken(queue);
  queue.setTimer(delayed, 1_000);
  queue.done(delayed);
  queue.add("held");
  const held = taken(queue);
  queue.hold(held, 1_000);
  queue.done(held);
  queue.add("held");
  queue.add("a");
  const slot = taken(queue);
  queue.add("b");
  let drained = false;
  const closed = queue.close().then(() => drained = true);
  queue.add("late");
  queue.setTimer(slot, 10);
  assert.equal(clock.pendingTimers, 0);
  assert.deepEqual(takeAll(queue), ["b", "held"]);
  await clock.settle();
  assert.equal(drained, false, "a run goes on");
  queue.done(slot);
  await closed;
  assert.equal(queue.size, 0);
});

test("SchedulingQueue refuses to end a run twice", () => {
  const queue = new SchedulingQueue();
  queue.add("a");
  const slot = taken(queue);
  queue.done(slot);
  assert.throws(() => queue.done(slot), RangeError);
});
