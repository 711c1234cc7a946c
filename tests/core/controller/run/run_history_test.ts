import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  ApiError,
  jsonLogger,
  type KubernetesObject,
  MetricsRegistry,
} from "@coracle/operator/core";
import type {
  Run,
  RunResult,
  RunWrite,
} from "../../../../core/controller/run/run.ts";
import {
  FailureEvents,
  historyLimit,
  RunHistory,
  RunReporter,
} from "../../../../core/controller/run/run_observers.ts";
import type { RunPlan } from "../../../../core/controller/run/run_state.ts";

/** A run of three seconds that began at this time of the clock. */
function runOf(startedAt: number, writes: readonly RunWrite[] = []) {
  return {
    key: "default/a",
    primary: { metadata: { name: "a", uid: "1" } },
    cause: { type: "retry", events: 3 },
    retry: { attempt: 1, last: false },
    startedAt,
    endedAt: startedAt + 3_000,
    waited: 2_000,
    writes,
  } as unknown as Run<KubernetesObject>;
}

const DONE: RunResult = { end: { type: "done" } };
const FAILED: RunResult = {
  end: { type: "failed", final: false },
  error: new Error("down"),
};

test("RunHistory tells when a run began, what came out and what follows", async () => {
  const clock = new VirtualClock({ start: new Date("2026-01-01T00:00:00Z") });
  const history = new RunHistory({ clock });
  await clock.advance(10_000);
  const ended = (result: RunResult, plan?: Partial<RunPlan>) => {
    history.ended(runOf(7_000), result, plan as RunPlan | undefined);
    return history.of("default/a").at(-1)!;
  };
  const { at, duration, waited, outcome, next } = ended(DONE, {
    timerAt: 70_000,
    timerCause: "interval",
    rescheduleAt: 40_000,
  });
  assert.deepEqual([at, duration, waited, outcome, next], [
    "2026-01-01T00:00:07.000Z",
    3_000,
    2_000,
    "success",
    "reschedule in 30s",
  ]);
  const later = { timerAt: 12_000, timerCause: "retry", rescheduleAt: 40_000 };
  assert.equal(ended(FAILED, later as RunPlan).next, "retry in 2s");
  assert.equal(ended(FAILED, { failure: "event" }).next, "event");
  assert.equal(ended(FAILED, { failure: "event" }).outcome, "failure");
  assert.deepEqual(
    [ended(FAILED).outcome, ended(FAILED).next, ended(FAILED).error],
    ["aborted", undefined, "Error: down"],
  );
});

test("RunHistory keeps the ten latest runs of an object", () => {
  const history = new RunHistory({ clock: new VirtualClock() });
  const kind = { group: "", version: "v1", kind: "Pod" };
  for (let number = 0; number < 13; number++) {
    const write = { verb: "apply", kind, key: `p${number}` };
    history.ended(runOf(0, [write]), DONE, undefined);
  }
  const writes = history.of("default/a").map(({ writes }) => writes[0]);
  assert.deepEqual(
    writes,
    Array.from({ length: 10 }, (_, index) => `apply v1 Pod p${index + 3}`),
  );
});

test("RunHistory keeps fewer objects each, the more controllers there are", () => {
  assert.deepEqual([1, 20, 100, 1_000, 9_000].map(historyLimit), [
    500,
    500,
    100,
    10,
    10,
  ]);
  let limit = 10;
  const history = new RunHistory({
    clock: new VirtualClock(),
    limit: () => limit,
  });
  const run = (number: number) =>
    history.ended(
      { ...runOf(number), key: `default/${number}` } as Run<KubernetesObject>,
      DONE,
      undefined,
    );
  for (let number = 0; number < 10; number++) run(number);
  assert.equal(history.latest(100).length, 10);
  limit = 2;
  for (let number = 10; number < 14; number++) run(number);
  assert.deepEqual(history.latest(2), ["default/13", "default/12"]);
  assert.ok(history.latest(100).length <= 4);
});

test("RunHistory has what writes changed at the positions of the writes", () => {
  const history = new RunHistory({ clock: new VirtualClock() });
  const kind = { group: "", version: "v1", kind: "Pod" };
  const changesOf = (
    ...changes: readonly (readonly string[] | undefined)[]
  ) => {
    const writes = changes.map((changes) => ({
      verb: "apply",
      kind,
      key: "p",
      changes,
    }));
    history.ended(runOf(0, writes), DONE, undefined);
    return history.of("default/a").at(-1)?.changes;
  };
  assert.equal(changesOf(undefined, undefined), undefined);
  const changed = [undefined, ["spec.a"], undefined, ["spec.b", "spec.c"]];
  assert.deepEqual(changesOf(...changed), changed);
});

test("RunReporter measures in seconds, and counts a used-up series once", () => {
  const metrics = new MetricsRegistry();
  const lines: string[] = [];
  const reporter = new RunReporter<KubernetesObject>({
    controller: "gadget",
    log: jsonLogger({ write: (line) => lines.push(line) }),
    metrics,
    successLevel: "debug",
  });
  const run = runOf(7_000);
  reporter.started(run);
  for (const alarm of [true, false, false]) {
    const state = { failures: 1 };
    const plan = { failure: "exhausted", alarm, state };
    reporter.ended(run, FAILED, plan as RunPlan);
  }
  const retry = {
    failure: "retry",
    timerAt: 12_500,
    state: { attempt: 2, failures: 7 },
  };
  reporter.ended(run, FAILED, retry as RunPlan);
  const value = (name: string) =>
    Number(new RegExp(`^${name}\\{.*\\} (.+)$`, "m").exec(metrics.text())?.[1]);
  assert.equal(value("coracle_queue_wait_seconds_sum"), 2);
  assert.equal(value("coracle_reconciliation_duration_seconds_sum"), 12);
  assert.equal(value("coracle_reconciliation_events_total"), 3);
  assert.equal(value("coracle_retries_exhausted"), 1);
  assert.equal(value("coracle_reconciliation_retries_total"), 1);
  assert.match(lines.at(-1) ?? "", /"failures":7,"attempt":2,"retryIn":2500/);
  reporter.ended(run, FAILED, undefined);
  for (const aborted of ["deletion", "leadership", "timeout"]) {
    const cut = { ...run, aborted } as unknown as Run<KubernetesObject>;
    reporter.ended(cut, DONE, undefined);
    reporter.ended(cut, { end: { type: "finalizerRemoved" } }, undefined);
  }
  const results = metrics.text().matchAll(
    /^coracle_reconciliations_total\{.*result="(\w+)".*\} (\d+)$/gm,
  );
  assert.deepEqual(
    new Map(Array.from(results, ([, name, count]) => [name, Number(count)])),
    new Map([["failure", 4], ["aborted", 3], ["success", 4]]),
  );
});

test("FailureEvents tells of a conflict only when it goes on", () => {
  const reasons: string[] = [];
  const events = new FailureEvents<KubernetesObject>({
    record: (_object, _kind, { reason }) => reasons.push(reason),
  }, {} as never);
  const conflict: RunResult = {
    ...FAILED,
    error: new ApiError("Changed", { status: 409, reason: "Conflict" }),
  };
  const ended = (result: RunResult, failure: string, alarm: boolean) =>
    events.ended(runOf(0), result, { failure, alarm } as RunPlan);
  ended(conflict, "retry", false);
  const run = { ...runOf(0), deleted: true } as Run<KubernetesObject>;
  events.ended(run, FAILED, { failure: "retry", alarm: true } as RunPlan);
  assert.deepEqual(reasons.splice(0), []);
  ended(conflict, "retry", true);
  ended(FAILED, "retry", false);
  ended(FAILED, "final", false);
  ended(FAILED, "exhausted", true);
  const failed = ["RunFailed", "RunFailed", "RunFailed"];
  assert.deepEqual(reasons, [...failed, "RetriesExhausted"]);
});
