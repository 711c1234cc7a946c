import assert from "node:assert/strict";
import { test } from "node:test";
import {
  jsonLogger,
  type KubernetesObject,
  type LogLevel,
  noMetrics,
} from "@coracle/operator/client";
import type { Run, RunResult } from "../../../../core/controller/run/run.ts";
import type { RunPlan } from "../../../../core/controller/run/run_state.ts";
import { RunReporter } from "../../../../core/controller/run/run_observers.ts";

/** Log levels and messages of a failed run that is retried. */
function failedRun(successLevel: LogLevel): readonly string[] {
  const plan = { failure: "retry", state: { attempt: 1 }, timerAt: 2_000 };
  const result: RunResult = {
    end: { type: "failed", final: false },
    error: new Error("Not yet"),
  };
  return reported({}, result, plan as RunPlan, successLevel);
}

/** Log levels, messages and hints of a run. */
function reported(
  parts: Partial<Run<KubernetesObject>>,
  result: RunResult,
  plan: RunPlan | undefined,
  successLevel: LogLevel = "debug",
): readonly string[] {
  const lines: string[] = [];
  const reporter = new RunReporter({
    controller: "gadget",
    log: jsonLogger({ level: "debug", write: (line) => lines.push(line) }),
    metrics: noMetrics,
    successLevel,
  });
  const run = {
    key: "default/a",
    cause: { type: "modified", events: 1 },
    retry: { attempt: 2, last: false },
    startedAt: 0,
    endedAt: 0,
    ...parts,
  };
  reporter.ended(run as unknown as Run<KubernetesObject>, result, plan);
  return lines.map((line) => {
    const { level, message, attempt } = JSON.parse(line);
    const isFailure = message.startsWith("Run failed");
    assert.equal(attempt, isFailure ? 3 : undefined, message);
    return `${level}: ${message}`;
  });
}

test("RunReporter logs each failure as a warning, with the number of its run", () => {
  for (const successLevel of ["debug", "info"] as const) {
    assert.deepEqual(
      failedRun(successLevel),
      ["warn: Run failed, it is retried"],
    );
  }
});

const DONE: RunResult = { end: { type: "done" } };
const REMOVED: RunResult = { end: { type: "finalizerRemoved" } };
const FAILED: RunResult = { end: { type: "failed", final: false } };

const ENDS: readonly (readonly [
  Partial<Run<KubernetesObject>>,
  RunResult,
  RunPlan["failure"] | "aborted",
  readonly string[],
])[] = [
  [{ step: "reconcile" }, DONE, undefined, ["debug: Reconciled"]],
  [{ step: "paused" }, DONE, undefined, ["debug: Paused by its annotation"]],
  [{ step: "cleanup" }, DONE, undefined, ["debug: Cleaning up"]],
  [{ step: "cleanup" }, REMOVED, undefined, ["debug: Cleaned up"]],
  [{ step: "nothing" }, REMOVED, undefined, []],
  [{ step: "reconcile", deleted: true }, DONE, undefined, [
    "debug: Reconciled the deletion",
  ]],
  [{ step: "reconcile" }, FAILED, "aborted", ["info: Run aborted"]],
  [{ step: "reconcile", aborted: "shutdown" }, DONE, "aborted", [
    "info: Run aborted",
  ]],
  [{ step: "reconcile" }, FAILED, "retry", ["warn: Run failed, it is retried"]],
  [{ step: "reconcile" }, FAILED, "final", [
    "warn: Run failed, onError has ruled out a retry",
  ]],
];

test("RunReporter says what became of a run", () => {
  for (const [parts, result, failure, lines] of ENDS) {
    const state = { failures: 1 };
    const plan = failure === "aborted"
      ? undefined
      : { failure, state } as RunPlan;
    assert.deepEqual(reported(parts, result, plan), lines);
    const shown = lines.map((line) => line.replace("debug:", "info:"));
    assert.deepEqual(reported(parts, result, plan, "info"), shown);
  }
  const planned = { failure: "final", rescheduleAt: 9, state: { failures: 1 } };
  assert.deepEqual(reported({}, FAILED, planned as RunPlan), [
    "warn: Run failed, onError has planned the next run",
  ]);
});
