import assert from "node:assert/strict";
import { test } from "node:test";
import {
  scheduleProblem,
  timeZoneProblem,
} from "../../../core/api/cron_schedule.ts";
import { cronTimes } from "../../../core/api/cron_times.ts";

test("time zones are the names that Kubernetes knows, on every runtime", () => {
  for (
    const name of [
      "UTC",
      "Europe/Berlin",
      "Asia/Kolkata",
      "America/Port_of_Spain",
      "America/Coyhaique",
      "US/Pacific",
      "Etc/GMT+5",
      "EST5EDT",
      "GB-Eire",
      "Zulu",
      ..."CET EET EST GMT HST MET MST PRC ROC ROK UCT WET".split(" "),
    ]
  ) assert.equal(timeZoneProblem(name), undefined, name);
});

test("time zones that only a runtime knows are refused, as Kubernetes does", () => {
  for (
    const name of [
      "+05:00",
      "-08",
      "europe/berlin",
      "EUROPE/BERLIN",
      "utc",
      "us/pacific",
      // Runtimes take these for Dhaka, Los Angeles and Tokyo.
      ..."BST PST JST".split(" "),
      "SystemV/PST8",
      "Mars/Olympus",
    ]
  ) assert.equal(timeZoneProblem(name), `unknown time zone ${name}`);
});

test("empty entries of a list in a schedule are passed over, as Kubernetes does", () => {
  for (const schedule of ["0 0 1,,2 * *", "0 0 1,2, * *", ",0 0 * * mon,"]) {
    assert.equal(scheduleProblem(schedule), undefined, schedule);
  }
  const [from, to] = [Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 2)];
  assert.equal(cronTimes("0 0 1,,2, * *").next(from), to);
});
