import assert from "node:assert/strict";
import { test } from "node:test";
import { LeaseClock } from "../../../dev/testing/check/lease_clock.ts";
import { WorldClock } from "../../../dev/testing/check/world_clock.ts";

test("LeaseClock goes on where it stood still, with the timers that are left", () => {
  const world = new WorldClock();
  const clock = new LeaseClock(world.view());
  const fired: string[] = [];
  const timer = (name: string, delay: number) =>
    clock.setTimer(() => fired.push(`${name} at ${clock.now()}`), delay);
  const advance = (until: number) => {
    while (world.fireNext(until));
    world.moveTo(until);
  };
  timer("first", 100);
  const cancelled = timer("cancelled", 200);
  timer("second", 300);
  advance(150);
  clock.rest();
  clock.rest();
  timer("set at rest", 400);
  cancelled.cancel();
  advance(10_000);
  assert.deepEqual(fired, ["first at 100"]);
  assert.equal(clock.now(), 150);
  assert.equal(clock.wallTime(), world.wallTime());
  clock.wake();
  clock.wake();
  assert.equal(clock.now(), 150);
  advance(20_000);
  assert.deepEqual(fired, [
    "first at 100",
    "second at 300",
    "set at rest at 550",
  ]);
  assert.equal(clock.now(), 10_150);
});
