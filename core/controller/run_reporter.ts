import { ApiError } from "../api/api_error.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { Clock } from "../clock.ts";
import type { Logger, LogLevel } from "../logger.ts";
import type { Counter, Histogram, MetricLabels, Metrics } from "../metrics.ts";
import { spanFields } from "../tracing.ts";
import { causeText, type CauseType } from "./cause.ts";
import type { RunObserver } from "./run_observer.ts";
import type { Run, RunResult } from "./run.ts";
import type { RunPlan } from "./run_state.ts";

/** What a {@linkcode RunReporter} works with. */
export interface RunReporterOptions {
  readonly controller: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** At which level runs are logged that went well, or that `onError` handled. */
  readonly successLevel: LogLevel;
}

const DURATIONS: readonly number[] = [
  0.001,
  0.01,
  0.05,
  0.1,
  0.25,
  0.5,
  1,
  2,
  5,
  10,
  30,
  60,
  300,
];

/**
 * Logs and counts the runs of a controller. A failure counts as one, whether it
 * is retried or not; a run that was aborted, or whose object is gone, counts as
 * neither.
 */
export class RunReporter<P extends KubernetesObject> implements RunObserver<P> {
  readonly #options: RunReporterOptions;
  readonly #labels: MetricLabels;
  readonly #duration: Histogram;
  readonly #waited: Histogram;
  readonly #ended: Counter;
  readonly #caused: Counter;
  readonly #events: Counter;
  readonly #retries: Counter;
  readonly #exhausted: Counter;
  /** One object of labels for each value, so that none is made for each run. */
  readonly #byResult: ReadonlyMap<string, MetricLabels>;
  readonly #byCause: Map<CauseType, MetricLabels> = new Map();

  /** @param options What it works with. */
  constructor(options: RunReporterOptions) {
    const { controller, metrics } = options;
    this.#options = options;
    this.#labels = Object.freeze({ controller });
    this.#byResult = new Map(
      ["success", "failure", "aborted"].map((
        result,
      ) => [result, Object.freeze({ controller, result })]),
    );
    this.#duration = metrics.histogram({
      name: "coracle_reconciliation_duration_seconds",
      help: "How long runs took.",
      buckets: DURATIONS,
    });
    this.#waited = metrics.histogram({
      name: "coracle_queue_wait_seconds",
      help: "How long objects waited for their run since they were ready.",
      buckets: DURATIONS,
    });
    this.#ended = metrics.counter({
      name: "coracle_reconciliations_total",
      help: "Runs that ended, by result: success, failure or aborted.",
    });
    this.#caused = metrics.counter({
      name: "coracle_reconciliation_causes_total",
      help: "Runs that began, by cause.",
    });
    this.#events = metrics.counter({
      name: "coracle_reconciliation_events_total",
      help: "Events that runs answered; one run may answer many.",
    });
    this.#retries = metrics.counter({
      name: "coracle_reconciliation_retries_total",
      help: "Runs that were retries.",
    });
    this.#exhausted = metrics.counter({
      name: "coracle_reconciliation_retries_exhausted_total",
      help: "Failures after which no retry was planned.",
    });
  }

  started(run: Run<P>): void {
    const { type } = run.cause;
    let labels = this.#byCause.get(type);
    if (labels === undefined) {
      const { controller } = this.#options;
      labels = Object.freeze({ controller, cause: type });
      this.#byCause.set(type, labels);
    }
    this.#caused.add(1, labels);
    this.#events.add(run.cause.events, this.#labels);
    this.#waited.observe(run.waited / 1_000, this.#labels);
    if (type === "retry") this.#retries.add(1, this.#labels);
  }

  ended(
    run: Run<P>,
    { end, error, handled }: RunResult,
    plan: RunPlan | undefined,
  ): void {
    const duration = this.#options.clock.now() - run.startedAt;
    this.#duration.observe(duration / 1_000, this.#labels);
    const result = end.type !== "failed"
      ? "success"
      : plan === undefined
      ? "aborted"
      : "failure";
    this.#ended.add(1, this.#byResult.get(result));
    if (plan?.failure === "exhausted") this.#exhausted.add(1, this.#labels);
    const { log, successLevel } = this.#options;
    const fields: Record<string, unknown> = {
      object: run.key,
      cause: causeText(run.cause),
      duration: Math.round(duration * 10) / 10,
    };
    if (run.span !== undefined) Object.assign(fields, spanFields(run.span));
    const summary = run.workflow?.summary;
    if (summary) fields["workflow"] = summary;
    if (result === "success") {
      const done = run.deleted
        ? "Reconciled the deletion"
        : run.step === "cleanup"
        ? end.type === "finalizerRemoved" ? "Cleaned up" : "Cleaning up"
        : run.step === "paused"
        ? "Paused by its annotation"
        : "Reconciled";
      if (run.step !== "nothing") log[successLevel](done, fields);
    } else if (plan === undefined) {
      log.info("Run aborted", { ...fields, because: run.aborted, error });
    } else {
      const level = failureLevel(error, handled ? successLevel : "warn", plan);
      log[level](FAILURES[plan.failure ?? "final"], {
        ...fields,
        ...(plan.failure === "retry" && {
          attempt: plan.state.attempt,
          retryIn: Math.round(plan.timerAt - this.#options.clock.now()),
        }),
        error,
      });
    }
  }
}

const FAILURES: Readonly<Record<NonNullable<RunPlan["failure"]>, string>> = {
  retry: "Run failed, it is retried",
  event: "Run failed, it is repeated for an event that came meanwhile",
  kept: "Run failed, the planned retry stays",
  exhausted: "Run failed, no retry is left: it waits for an event",
  final: "Run failed for good, as its reconciler decided",
};

/**
 * How much a failure matters: a conflict is part of life, what the reconciler
 * dealt with is its business, and the last attempt should be looked at.
 */
function failureLevel(
  error: unknown,
  usual: LogLevel,
  plan: RunPlan,
): LogLevel {
  if (plan.failure === "exhausted") return "error";
  if (ApiError.is(error) && error.isConflict) return "info";
  return usual;
}
