/**
 * Observers of the runs of a controller: logs and metrics, the history for
 * `coracle why`, and warnings about runs that do not heed their signal.
 *
 * @module
 */
import { ApiError } from "../../api/api_error.ts";
import type { KubernetesObject } from "../../api/object.ts";
import type { Clock, Timer } from "../../clock.ts";
import { type Logger, type LogLevel, unfailingLogger } from "../../logger.ts";
import type {
  Counter,
  Histogram,
  MetricLabels,
  Metrics,
} from "../../metrics.ts";
import { spanFields } from "../../tracing.ts";
import { causeText, type CauseType, type RunCause } from "../cause.ts";
import type { AbortCause, Run, RunResult } from "./run.ts";
import type { RunPlan } from "./run_state.ts";

/** Observer of the runs of a controller; a method that throws is reported. */
export interface RunObserver<P extends KubernetesObject> {
  /** Called before a run is executed. */
  started?(run: Run<P>): void;
  /**
   * Called when a run has ended.
   *
   * @param plan What follows; undefined if the run was aborted, or its object
   * was deleted in the meantime.
   */
  ended?(run: Run<P>, result: RunResult, plan: RunPlan | undefined): void;
}

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

/** One run as it is remembered. */
export interface RecordedRun {
  /** When it began, as the calendar tells it. */
  readonly at: string;
  /** Why it happened. */
  readonly cause: string;
  /** What it did: `reconcile`, `cleanup`, … */
  readonly step: string;
  /** Zero for a run that was no retry. */
  readonly attempt: number;
  /** How it ended. */
  readonly outcome: "success" | "failure" | "aborted";
  /** How long it waited for its turn, in milliseconds. */
  readonly waited: number;
  /** How long it took, in milliseconds. */
  readonly duration: number;
  /** What it wrote, for people: `apply v1 ConfigMap default/web`. */
  readonly writes: readonly string[];
  /** The nodes of its workflow and what became of them, for people. */
  readonly workflow?: string | undefined;
  /** What failed. */
  readonly error?: string | undefined;
  /** What comes next, if nothing happens before: `retry in 2000 ms`. */
  readonly next?: string | undefined;
}

/** Options of a {@linkcode RunHistory}. */
export interface RunHistoryOptions {
  readonly clock: Clock;
  /**
   * How many runs of an object are remembered.
   *
   * @default {10}
   */
  readonly runs?: number | undefined;
  /**
   * Of how many objects runs are remembered, those that ran last.
   *
   * @default {1_000}
   */
  readonly objects?: number | undefined;
}

/** The longest error text that is kept, in UTF-16 code units. */
const LONGEST_ERROR = 500;

/** A run as it is kept: what is for people is made when it is asked for. */
interface KeptRun extends
  Pick<
    RecordedRun,
    | "attempt"
    | "duration"
    | "error"
    | "outcome"
    | "waited"
    | "workflow"
    | "writes"
  > {
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly cause: RunCause;
  readonly step: string | undefined;
  /** What comes next, and in how many milliseconds. */
  readonly next: string | undefined;
  readonly nextIn: number;
}

/** Remembers the last runs of the objects that ran last. */
export class RunHistory<P extends KubernetesObject> implements RunObserver<P> {
  readonly #clock: Clock;
  readonly #runs: number;
  readonly #objects: number;
  /** In the order in which the objects ran last. */
  readonly #byKey: Map<string, KeptRun[]> = new Map();

  /** @param options How much is remembered. */
  constructor(options: RunHistoryOptions) {
    const { clock, runs = 10, objects = 1_000 } = options;
    this.#clock = clock;
    this.#runs = runs;
    this.#objects = objects;
  }

  /** The last runs of an object, the latest last; empty if there are none. */
  of(key: string): readonly RecordedRun[] {
    return (this.#byKey.get(key) ?? []).map(recorded);
  }

  ended(
    run: Run<P>,
    { end, error }: RunResult,
    plan: RunPlan | undefined,
  ): void {
    const now = this.#clock.now();
    const duration = now - run.startedAt;
    const { rescheduleAt = Infinity, timerAt = Infinity } = plan ?? {};
    const runs = this.#byKey.get(run.key) ?? [];
    if (runs.length === this.#runs) runs.shift();
    runs.push({
      at: this.#clock.wallTime() - duration,
      cause: run.cause,
      step: run.step,
      attempt: run.retry.attempt,
      outcome: end.type !== "failed"
        ? "success"
        : plan === undefined
        ? "aborted"
        : "failure",
      waited: run.waited,
      duration,
      writes: run.writes,
      workflow: run.workflow?.summary,
      error: error === undefined
        ? undefined
        : String(error).slice(0, LONGEST_ERROR),
      next: plan?.failure === "event"
        ? "event"
        : rescheduleAt < timerAt
        ? "reschedule"
        : plan?.timerCause,
      nextIn: Math.min(rescheduleAt, timerAt) - now,
    });
    this.#byKey.delete(run.key);
    this.#byKey.set(run.key, runs);
    if (this.#byKey.size > this.#objects) {
      const [oldest] = this.#byKey.keys();
      this.#byKey.delete(oldest as string);
    }
  }
}

function recorded(run: KeptRun): RecordedRun {
  const { next, nextIn, error, workflow, ...kept } = run;
  return {
    ...kept,
    at: new Date(run.at).toISOString(),
    cause: causeText(run.cause),
    step: run.step ?? "reconcile",
    ...(workflow !== undefined && { workflow }),
    ...(error !== undefined && { error }),
    ...(next === "event" && { next }),
    ...(nextIn < Infinity && { next: `${next} in ${Math.round(nextIn)} ms` }),
  };
}

/** What is known of a run that was asked to end and has not ended. */
export interface AbortedRun {
  /** Why it was asked to end. */
  readonly because: AbortCause;
  /** How long ago, in milliseconds. */
  readonly ago: number;
}

/** What {@linkcode OverdueRuns} works with. */
export interface OverdueRunsOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * How long after its abort a run is overdue, in milliseconds. Code that heeds
   * the signal ends within moments, and a last write or a closing connection
   * takes a few seconds: what goes on after ten does not listen.
   *
   * @default {10_000}
   */
  readonly grace?: number | undefined;
}

/**
 * The longest pause between two warnings of one run, in milliseconds. The pauses
 * double, so that a run that hangs for a night costs some ten lines; they stop
 * growing at an hour, so that whoever looks later still finds one.
 */
const LONGEST_PAUSE = 3_600_000;

/** A run that was asked to end. */
interface Waited {
  readonly because: AbortCause;
  /** By the clock. */
  readonly since: number;
  timer: Timer | undefined;
}

/**
 * Tells of runs that go on although their signal has fired. Such a run cannot be
 * ended from outside, and a second one of its object must not begin beside it:
 * it keeps its place for as long as it lasts, and its object is left as it is.
 * Only its owner can mend that, who would otherwise see nothing but silence.
 */
export class OverdueRuns<P extends KubernetesObject> implements RunObserver<P> {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #grace: number;
  readonly #aborted: Map<string, Waited> = new Map();
  #closed = false;

  /** @param options What it works with. */
  constructor(options: OverdueRunsOptions) {
    const { clock, log, grace = 10_000 } = options;
    this.#clock = clock;
    this.#log = unfailingLogger(log);
    this.#grace = grace;
  }

  /** How many runs are overdue. */
  get size(): number {
    const latest = this.#clock.now() - this.#grace;
    let count = 0;
    for (const { since } of this.#aborted.values()) {
      if (since <= latest) count++;
    }
    return count;
  }

  /** The run of an object, if it was asked to end and has not ended. */
  of(key: string): AbortedRun | undefined {
    const waited = this.#aborted.get(key);
    return waited && {
      because: waited.because,
      ago: this.#clock.now() - waited.since,
    };
  }

  started(run: Run<P>): void {
    run.onAbort = this.#onAbort;
  }

  ended(run: Run<P>, _result: RunResult): void {
    const waited = this.#aborted.get(run.key);
    if (waited === undefined) return;
    this.#aborted.delete(run.key);
    waited.timer?.cancel();
  }

  /** Warns no more: a timer would keep a program from its end. */
  close(): void {
    this.#closed = true;
    for (const { timer } of this.#aborted.values()) timer?.cancel();
  }

  /** One function for all runs, of which hardly any is aborted. */
  readonly #onAbort = (run: Run<P>, because: AbortCause): void => {
    const since = this.#clock.now();
    const waited: Waited = { because, since, timer: undefined };
    this.#aborted.set(run.key, waited);
    if (!this.#closed) this.#warnAfter(this.#grace, run, waited);
  };

  #warnAfter(pause: number, run: Run<P>, waited: Waited): void {
    waited.timer = this.#clock.setTimer(() => {
      const now = this.#clock.now();
      this.#log.warn(
        "A run goes on although its signal has fired: it keeps its place, and its object waits",
        {
          object: run.key,
          because: waited.because,
          abortedFor: Math.round(now - waited.since),
          runningFor: Math.round(now - run.startedAt),
        },
      );
      this.#warnAfter(Math.min(2 * pause, LONGEST_PAUSE), run, waited);
    }, pause);
  }
}
