import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { JobSchedule } from "../../../core/controller/job/job_schedule.ts";
import { recordedContext } from "../../support/source_context.ts";

const HOUR = 3_600_000;

/** A schedule at three o'clock, and the clock of a machine, which may be set. */
async function schedule() {
  const clock = new VirtualClock({ start: new Date("2026-01-01T20:00:00Z") });
  const wallTime = clock.wallTime.bind(clock);
  let ahead = 0;
  clock.wallTime = () => wallTime() + ahead;
  const source = new JobSchedule({
    ...{ name: "nightly", every: undefined, cron: "0 3 * * *" },
    ...{ timeZone: "UTC", state: undefined, debounce: 0 },
    ...{ leaderOnly: true, runsAtStart: false },
  });
  const context = recordedContext(clock);
  await source.start(context);
  const set = (hours: number) => ahead += hours * HOUR;
  return { clock, source, set, runs: context.triggered };
}

test("JobSchedule runs within an hour of a time that the clock was set beyond", async () => {
  const { clock, source, set, runs } = await schedule();
  await clock.advance(HOUR / 2);
  // As after the machine has slept until the morning.
  set(12);
  await clock.advance(HOUR);
  assert.equal(runs.length, 1);
  assert.equal(
    new Date(source.next ?? 0).toISOString(),
    "2026-01-03T03:00:00.000Z",
  );
  await clock.advance(15 * HOUR);
  assert.equal(runs.length, 1);
  await clock.advance(3 * HOUR);
  assert.equal(runs.length, 2);
  await source.stop();
  assert.equal(clock.pendingTimers, 0);
});

test("JobSchedule waits for a time that comes later since the clock was put back", async () => {
  const { clock, source, set, runs } = await schedule();
  await clock.advance(6 * HOUR);
  set(-2);
  await clock.advance(2 * HOUR);
  assert.equal(runs.length, 0);
  await clock.advance(HOUR);
  assert.equal(runs.length, 1);
  await source.stop();
  assert.equal(clock.pendingTimers, 0);
});
