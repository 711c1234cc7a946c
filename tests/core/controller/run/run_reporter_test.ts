import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubernetesObject } from "../../../../core/api/object.ts";
import type { Run, RunResult } from "../../../../core/controller/run/run.ts";
import type { RunPlan } from "../../../../core/controller/run/run_state.ts";
import { RunReporter } from "../../../../core/controller/run/run_observers.ts";
import { jsonLogger, type LogLevel } from "../../../../core/logger.ts";
import { noMetrics } from "../../../../core/metrics.ts";
import { VirtualClock } from "../../../../dev/testing/virtual_clock.ts";

/** Log levels and messages of a failed run that is retried. */
function failedRun(
  options: { readonly successLevel: LogLevel; readonly handled: boolean },
): readonly string[] {
  const plan = { failure: "retry", state: { attempt: 1 }, timerAt: 2_000 };
  const result: RunResult = {
    end: { type: "failed", final: false },
    error: new Error("Not yet"),
    handled: options.handled,
  };
  return reported({}, result, plan as RunPlan, options.successLevel);
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
    clock: new VirtualClock(),
    log: jsonLogger({ level: "debug", write: (line) => lines.push(line) }),
    metrics: noMetrics,
    successLevel,
  });
  const run = {
    key: "default/a",
    cause: { type: "modified", events: 1 },
    startedAt: 0,
    ...parts,
  };
  reporter.ended(run as unknown as Run<KubernetesObject>, result, plan);
  return lines.map((line) => {
    const { level, message } = JSON.parse(line);
    return `${level}: ${message}`;
  });
}

test("RunReporter logs a failure as a warning, unless onError has handled it", () => {
  for (const successLevel of ["debug", "info"] as const) {
    assert.deepEqual(
      failedRun({ successLevel, handled: false }),
      ["warn: Run failed, it is retried"],
    );
  }
  assert.deepEqual(
    failedRun({ successLevel: "debug", handled: true }),
    ["debug: Run failed, it is retried"],
  );
});

test("RunReporter logs a handled failure at the level of successful runs", () => {
  assert.deepEqual(
    failedRun({ successLevel: "info", handled: true }),
    ["info: Run failed, it is retried"],
  );
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
  [{ step: "reconcile" }, FAILED, "final", [
    "warn: Run failed, onError has ruled out a retry",
  ]],
];

test("RunReporter says what became of a run", () => {
  for (const [parts, result, failure, lines] of ENDS) {
    const plan = failure === "aborted" ? undefined : { failure } as RunPlan;
    assert.deepEqual(reported(parts, result, plan), lines);
  }
});
