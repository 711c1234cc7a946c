import assert from "node:assert/strict";
import { test } from "node:test";
import { Operator } from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { byFunction, watch } from "@coracle/operator/sources";
import { jobSettings } from "../../../core/controller/job/job_options.ts";
import { testRefusals } from "../../support/refusals.ts";

const run = () => {};

testRefusals([{
  what: "operator.job()",
  make: (options) => new Operator().job("sync", options, run),
  good: { cron: "0 3 * * *" },
  bad: {
    every: ["0s", "longer than zero"],
    cron: ["61 * * * *", "end of range (61) above maximum (59)"],
    timeZone: ["Mars/Olympus", "Europe/Berlin"],
    watches: [3, "array"],
    sources: ["a", "array"],
    debounce: [-1, "duration"],
    leaderOnly: ["yes", "true or false"],
    timeout: ["soon", "duration"],
    state: [3, "object"],
    retry: [true, "retry"],
  },
}]);

test("a job refuses a wrong name, two schedules and what belongs to none", () => {
  const refused = (name: unknown, options: object, words: RegExp) =>
    assert.throws(() => jobSettings(name as string, options), words);
  for (const name of ["", "a/b", "x".repeat(64), 3, "with space"]) {
    refused(name, {}, /its name must be of up to 63/);
  }
  refused("a", { every: "1m", cron: "@daily" }, /two schedules/);
  refused("a", { cron: "TZ=UTC @daily" }, /the option "timeZone"/);
  refused("a", { cron: "0 0 31 2 *" }, /no day of any year matches it/);
  refused("a", { cron: "@every 1hour" }, /unrecognized descriptor/);
  refused("a", { every: 1e300 }, /at most 36500d: received 1e\+300$/);
  refused("a", { every: "1m", timeZone: "UTC" }, /"cron", which is missing/);
  refused(
    "a",
    { namespaces: [] },
    /^TypeError: Cannot watch namespaces for job/,
  );
  const state = { kind: ConfigMap, name: "kept" };
  refused("a", { state }, /"state" is that of "every" or "cron"/);
  refused("a", { every: "1m", state: { name: "kept" } }, /state/);
  const mapper = byFunction(() => []);
  refused("a", { watches: [watch(ConfigMap, { mapper })] }, /neither mapper/);
});

test("a job quotes no more than the beginning of what it refuses", () => {
  for (
    const [name, options] of [
      ["a", { cron: "*".repeat(100_000) }],
      ["a".repeat(100_000), {}],
    ] as const
  ) {
    assert.throws(
      () => jobSettings(name, options),
      ({ message }: Error) => message.length < 400,
    );
  }
  // A leap day comes, and an hour that a zone skips on some days comes on others.
  jobSettings("a", { cron: "0 0 29 2 *" });
  jobSettings("a", { cron: "30 2 * * *", timeZone: "Europe/Berlin" });
  jobSettings("a", { cron: "@every 1h30m" });
});

test("a job refuses a name that is taken, and a run that is no function", () => {
  const operator = new Operator();
  operator.job("sync", {}, run);
  assert.throws(() => operator.job("sync", {}, run), /the name is taken/);
  assert.throws(
    () => operator.job("other", {}, undefined as never),
    /"run" must be a function/,
  );
});
