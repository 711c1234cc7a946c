import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubernetesObject } from "../../../../core/api/object.ts";
import type { Run } from "../../../../core/controller/run/run.ts";
import type { RunPlan } from "../../../../core/controller/run/run_state.ts";
import { RunReporter } from "../../../../core/controller/run/run_observers.ts";
import { jsonLogger, type LogLevel } from "../../../../core/logger.ts";
import { noMetrics } from "../../../../core/metrics.ts";
import { VirtualClock } from "../../../../testing/virtual_clock.ts";

/** Log levels and messages of a failed run that is retried. */
function failedRun(
  options: { readonly successLevel: LogLevel; readonly handled: boolean },
): readonly string[] {
  const lines: string[] = [];
  const reporter = new RunReporter({
    controller: "gadget",
    clock: new VirtualClock(),
    log: jsonLogger({ level: "debug", write: (line) => lines.push(line) }),
    metrics: noMetrics,
    successLevel: options.successLevel,
  });
  reporter.ended(
    {
      key: "default/a",
      cause: { type: "modified", events: 1 },
      startedAt: 0,
    } as unknown as Run<KubernetesObject>,
    {
      end: { type: "failed", final: false },
      error: new Error("Not yet"),
      handled: options.handled,
    },
    { failure: "retry", state: { attempt: 1 }, timerAt: 2_000 } as RunPlan,
  );
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
