import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { RunningClock } from "../../dev/testing/running_clock.ts";

test("A running clock goes on as the machine's does", async () => {
  const machine = new VirtualClock();
  const clock = new RunningClock(machine);
  const fired: string[] = [];
  clock.setTimer(() => fired.push("second"), 20);
  clock.setTimer(() => fired.push("first"), 10);
  clock.setTimer(() => fired.push("never"), 15).cancel();
  await machine.advance(10);
  assert.deepEqual(fired, ["first"]);
  await machine.advance(10);
  assert.deepEqual(fired, ["first", "second"]);
  assert.equal(clock.now(), machine.now());
  assert.equal(machine.pendingTimers, 0);
});

test("A running clock advances from timer to timer, and runs on", async () => {
  const machine = new VirtualClock();
  const clock = new RunningClock(machine);
  const started = clock.wallTime();
  const fired: number[] = [];
  const every = (): void => {
    fired.push(clock.wallTime() - started);
    clock.setTimer(every, 60_000);
  };
  clock.setTimer(every, 60_000);
  await Promise.all([clock.advance("2m"), clock.advance("90s")]);
  assert.deepEqual(fired, [60_000, 120_000, 180_000]);
  assert.equal(machine.now(), 0);
  await machine.advance("30s");
  assert.deepEqual(fired, [60_000, 120_000, 180_000, 240_000]);
});

test("A running clock that jumps fires each timer once, late", async () => {
  const machine = new VirtualClock();
  const clock = new RunningClock(machine);
  let fired = 0;
  const every = (): void => {
    fired++;
    clock.setTimer(every, 1_000);
  };
  clock.setTimer(every, 1_000);
  await clock.jump("8760h");
  assert.equal(fired, 1);
  assert.equal(clock.now(), 8760 * 3_600_000);
});

test("A running clock refuses what is no duration, and works on", async () => {
  const clock = new RunningClock(new VirtualClock());
  assert.throws(
    () => clock.advance("soon" as "1s"),
    /^SyntaxError: Cannot read "/,
  );
  assert.throws(() => clock.jump(-1), /^RangeError: Cannot read "/);
  clock.setTimer(() => undefined, 1);
  await clock.advance(1);
  assert.equal(clock.now(), 1);
});
