import assert from "node:assert/strict";
import { test } from "node:test";
import { cronTimes } from "../../../core/api/cron_times.ts";

/** First times of a schedule after a moment, as text. */
function times(
  schedule: string,
  { zone, after, count = 3 }: {
    readonly zone?: string;
    readonly after: string;
    readonly count?: number;
  },
): readonly string[] {
  const cron = cronTimes(schedule, zone);
  const found: string[] = [];
  for (let time = Date.parse(after); found.length < count;) {
    const next = cron.next(time);
    if (next === undefined) break;
    found.push(new Date(time = next).toISOString().slice(0, 16));
  }
  return found;
}

test("cron times follow the five fields", () => {
  const after = "2026-01-01T00:00:00Z";
  assert.deepEqual(times("*/20 8-9 * * *", { after, count: 4 }), [
    "2026-01-01T08:00",
    "2026-01-01T08:20",
    "2026-01-01T08:40",
    "2026-01-01T09:00",
  ]);
  assert.deepEqual(times("@monthly", { after }), [
    "2026-02-01T00:00",
    "2026-03-01T00:00",
    "2026-04-01T00:00",
  ]);
  assert.deepEqual(times("0 0 29 feb *", { after, count: 2 }), [
    "2028-02-29T00:00",
    "2032-02-29T00:00",
  ]);
  assert.deepEqual(times("0 0 30 2 *", { after }), []);
});

test("a cron day matches either field if both are restricted", () => {
  const after = "2026-01-01T00:00:00Z";
  // 5 January 2026 is a Monday.
  assert.deepEqual(times("0 0 8 * mon", { after }), [
    "2026-01-05T00:00",
    "2026-01-08T00:00",
    "2026-01-12T00:00",
  ]);
  assert.deepEqual(times("0 0 */10 * mon", { after }), [
    "2026-01-05T00:00",
    "2026-01-11T00:00",
    "2026-01-12T00:00",
  ]);
  assert.deepEqual(times("0 0 * * mon", { after, count: 2 }), [
    "2026-01-05T00:00",
    "2026-01-12T00:00",
  ]);
});

test("a cron time that the clock skips in spring has no run", () => {
  const spring = { zone: "Europe/Berlin", after: "2026-03-27T12:00:00Z" };
  assert.deepEqual(times("30 2 * * *", spring), [
    "2026-03-28T01:30",
    "2026-03-30T00:30",
    "2026-03-31T00:30",
  ]);
  const night = { zone: "Europe/Berlin", after: "2026-03-29T00:00:00Z" };
  assert.deepEqual(times("*/30 * * * *", night), [
    "2026-03-29T00:30",
    "2026-03-29T01:00",
    "2026-03-29T01:30",
  ]);
});

test("a cron time that the clock repeats in autumn has two runs", () => {
  const autumn = { zone: "America/New_York", after: "2026-10-31T12:00:00Z" };
  assert.deepEqual(times("30 1 * * *", autumn), [
    "2026-11-01T05:30",
    "2026-11-01T06:30",
    "2026-11-02T06:30",
  ]);
  const night = { zone: "America/New_York", after: "2026-11-01T05:00:00Z" };
  assert.deepEqual(times("*/30 * * * *", { ...night, count: 4 }), [
    "2026-11-01T05:30",
    "2026-11-01T06:00",
    "2026-11-01T06:30",
    "2026-11-01T07:00",
  ]);
  // Cuba puts its clocks back from one o'clock to midnight.
  const havana = { zone: "America/Havana", after: "2026-11-01T03:00:00Z" };
  assert.deepEqual(times("15 0 * * *", havana), [
    "2026-11-01T04:15",
    "2026-11-01T05:15",
    "2026-11-02T05:15",
  ]);
});

test("a cron schedule in a zone without midnight begins the day at one", () => {
  const santiago = { zone: "America/Santiago", after: "2026-09-05T12:00:00Z" };
  assert.deepEqual(times("0 0-1 * * *", { ...santiago, count: 2 }), [
    "2026-09-06T04:00",
    "2026-09-07T03:00",
  ]);
});
