import assert from "node:assert/strict";
import { test } from "node:test";
import { timeZoneProblem } from "../../../core/api/cron_schedule.ts";

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
