import assert from "node:assert/strict";
import { test } from "node:test";
import { WorldClock } from "../../../dev/testing/check/world_clock.ts";

test("WorldClock fires the next timer up to a time, and moves to it", () => {
  const clock = new WorldClock();
  const fired: number[] = [];
  const { setTimer } = clock.view();
  for (const delay of [20, 10, NaN, -5]) {
    setTimer(() => fired.push(delay), delay);
  }
  assert.equal(clock.nextDue, 0);
  const seen: number[] = [];
  while (clock.fireNext(20)) seen.push(clock.now());
  assert.deepEqual(fired, [NaN, -5, 10, 20]);
  assert.deepEqual(seen, [0, 0, 10, 20]);
  setTimer(() => fired.push(0), 1);
  assert.equal(clock.fireNext(20), false);
  assert.equal(clock.now(), 20);
});

test("WorldClock never moves back, and jumps by the wall time alone", () => {
  const clock = new WorldClock();
  const start = clock.wallTime();
  assert.equal(start, Date.UTC(2026, 0, 1));
  clock.moveTo(100);
  clock.moveTo(50);
  assert.equal(clock.now(), 100);
  clock.jump(-1_000);
  clock.jump(500);
  assert.deepEqual([clock.now(), clock.wallTime() - start], [100, -400]);
  // A timer that was due before fires late.
  const { setTimer } = clock.view();
  setTimer(() => {}, 10);
  clock.moveTo(500);
  assert.equal(clock.fireNext(500), true);
  assert.equal(clock.now(), 500);
});

test("A view of a WorldClock drops its timers, and takes no others", () => {
  const clock = new WorldClock();
  const [one, other] = [clock.view(), clock.view()];
  const fired: string[] = [];
  one.setTimer(() => fired.push("one"), 1);
  other.setTimer(() => fired.push("other"), 2);
  one.drop();
  one.setTimer(() => fired.push("late"), 1);
  assert.equal(clock.nextDue, 2);
  assert.equal(clock.fireNext(10), true);
  assert.equal(clock.fireNext(10), false);
  assert.deepEqual(fired, ["other"]);
});

test("WorldClock counts what happens to its timers as activity", () => {
  const clock = new WorldClock();
  const { setTimer } = clock.view();
  const timer = setTimer(() => {}, 1);
  assert.equal(clock.activity, 1);
  timer.cancel();
  assert.equal(clock.activity, 2);
  timer.cancel();
  assert.equal(clock.activity, 2);
  const fired = setTimer(() => {}, 1);
  clock.fireNext(1);
  assert.equal(clock.activity, 4);
  fired.cancel();
  assert.equal(clock.activity, 4);
});
