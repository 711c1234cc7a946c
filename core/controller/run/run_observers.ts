/**
 * Observers of the runs of a controller: logs and metrics, Events about
 * failures, the history for `coracle why`, and warnings about runs that ignore
 * aborts or follow one another.
 *
 * @module
 */
import { ApiError } from "../../api/api_error.ts";
import { durationText } from "../../api/duration.ts";
import type { ResolvedKind } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import type { Clock, Timer } from "../../clock.ts";
import {
  messageWithCause,
  shortText,
  textWithCause,
} from "../../error_text.ts";
import {
  type Logger,
  type LogLevel,
  stackText,
  unfailingLogger,
} from "../../logger.ts";
import type {
  Counter,
  Histogram,
  MetricLabels,
  Metrics,
} from "../../metrics.ts";
import { spanFields } from "../../tracing.ts";
import { causeText, type RunCause } from "../cause.ts";
import type { EventRecorder } from "../event_recorder.ts";
import { LatestMap } from "../latest_map.ts";
import {
  type AbortCause,
  type Run,
  type RunResult,
  type RunWrite,
  wasCutShort,
  writeText,
} from "./run.ts";
import type { RunPlan } from "./run_state.ts";

/** Observer of the runs of a controller; errors of its methods are reported. */
export interface RunObserver<P extends KubernetesObject> {
  /** Handles the start of a run, before it is executed. */
  started?(run: Run<P>): void;
  /**
   * Handles the end of a run.
   *
   * @param plan The next step for the object; undefined if the run was aborted,
   * or its object was deleted in the meantime.
   */
  ended?(run: Run<P>, result: RunResult, plan: RunPlan | undefined): void;
  /** Handles the deletion of an object. */
  deleted?(key: string): void;
}

export interface RunReporterDeps {
  readonly controller: string;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Log level of successful runs. */
  readonly successLevel: LogLevel;
}

/** Buckets of the histograms, in seconds. */
const BUCKETS = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300];

/** Outcome of a run: success, failure, or neither if it was aborted. */
function outcomeOf<P extends KubernetesObject>(
  run: Run<P>,
  { end }: RunResult,
  plan: RunPlan | undefined,
): "success" | "failure" | "aborted" {
  if (wasCutShort(run, end)) return "aborted";
  if (end.type !== "failed") return "success";
  return plan === undefined ? "aborted" : "failure";
}

/**
 * Logs and metrics of the runs of a controller. A failed run counts as a
 * failure, whether it is retried or not. A run that was aborted, or whose
 * object was deleted, counts as neither success nor failure, also if it returns.
 */
export class RunReporter<P extends KubernetesObject> implements RunObserver<P> {
  readonly #deps: RunReporterDeps;
  readonly #labels: MetricLabels;
  readonly #duration: Histogram;
  readonly #waited: Histogram;
  readonly #ended: Counter;
  readonly #caused: Counter;
  readonly #events: Counter;
  readonly #retries: Counter;
  readonly #exhausted: Counter;
  /** Labels by result, shared by all runs. */
  readonly #byResult: ReadonlyMap<string, MetricLabels>;
  readonly #byCause: Map<RunCause["type"], MetricLabels> = new Map();

  constructor(deps: RunReporterDeps) {
    const { controller, metrics } = deps;
    this.#deps = deps;
    this.#labels = Object.freeze({ controller });
    const results = ["success", "failure", "aborted"];
    this.#byResult = new Map(
      results.map((result) => [result, Object.freeze({ controller, result })]),
    );
    this.#duration = metrics.histogram({
      name: "coracle_reconciliation_duration_seconds",
      help: "Duration of runs.",
      labels: ["controller"],
      buckets: BUCKETS,
    });
    this.#waited = metrics.histogram({
      name: "coracle_queue_wait_seconds",
      help: "Time in the queue of objects that were ready to run.",
      labels: ["controller"],
      buckets: BUCKETS,
    });
    this.#ended = metrics.counter({
      name: "coracle_reconciliations_total",
      help: "Runs that ended, by result: success, failure or aborted.",
      labels: ["controller", "result"],
    });
    this.#caused = metrics.counter({
      name: "coracle_reconciliation_causes_total",
      help: "Runs that began, by cause.",
      labels: ["controller", "cause"],
    });
    this.#events = metrics.counter({
      name: "coracle_reconciliation_events_total",
      help: "Events that were answered by runs; one run may answer many.",
      labels: ["controller"],
    });
    this.#retries = metrics.counter({
      name: "coracle_reconciliation_retries_total",
      help: "Runs that were retries.",
      labels: ["controller"],
    });
    this.#exhausted = metrics.counter({
      name: "coracle_retries_exhausted",
      help: "Series of failures that have used up all retries.",
      labels: ["controller"],
    });
    this.#exhausted.add(0, this.#labels); // An alert sees no growth of a new series.
  }

  deleted(key: string): void {
    const { log, successLevel } = this.#deps;
    log[successLevel]("Deleted", { object: key });
  }

  started(run: Run<P>): void {
    const { type } = run.cause;
    let labels = this.#byCause.get(type);
    if (labels === undefined) {
      const { controller } = this.#deps;
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
    runResult: RunResult,
    plan: RunPlan | undefined,
  ): void {
    const { end, error } = runResult;
    const duration = run.endedAt - run.startedAt;
    this.#duration.observe(duration / 1_000, this.#labels);
    const result = outcomeOf(run, runResult, plan);
    this.#ended.add(1, this.#byResult.get(result));
    if (plan?.failure === "exhausted" && plan.alarm) {
      this.#exhausted.add(1, this.#labels);
    }
    const { log, successLevel } = this.#deps;
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
    } else if (result === "aborted" || plan === undefined) {
      log.info("Run aborted", { ...fields, because: run.aborted, error });
    } else {
      const level = plan.alarm ? "error" : isConflict(error) ? "info" : "warn";
      const isPlanned = plan.failure === "final" &&
        plan.rescheduleAt !== undefined;
      log[level](FAILURES[isPlanned ? "planned" : plan.failure ?? "final"], {
        ...fields,
        failures: plan.state.failures,
        attempt: run.retry.attempt + 1,
        ...(plan.failure === "retry" && {
          retryIn: Math.round(plan.timerAt - run.endedAt),
        }),
        // A field that is undefined would be left out of the line.
        error: error ?? `the run has thrown ${error}`,
        ...(isWriteOfFrozen(error) && {
          hint:
            "what ctx reads from a cache is frozen: change a copy by structuredClone(), or use ctx.modify()",
        }),
        // At level error, loggers write the stack themselves.
        ...(error instanceof Error && level === "warn" &&
          plan.state.failures <= 1 && { stack: stackText(error) }),
      });
    }
  }
}

/** Whether an error is that of V8 or JavaScriptCore for a write to a frozen object. */
function isWriteOfFrozen(error: unknown): boolean {
  return error instanceof TypeError &&
    /read ?only property|not extensible|delete property/.test(error.message);
}

const FAILURES: Readonly<
  Record<NonNullable<RunPlan["failure"]> | "planned", string>
> = {
  retry: "Run failed, it is retried",
  event: "Run failed, an event causes the next run",
  kept: "Run failed, the planned retry is kept",
  exhausted: "Run failed, no retry is left: the object waits for an event",
  final: "Run failed, onError has ruled out a retry",
  planned: "Run failed, onError has planned the next run",
};

/** Whether an error is a conflict with another writer, which is normal. */
function isConflict(error: unknown): boolean {
  return ApiError.is(error) && error.isConflict;
}

/**
 * Kubernetes Events about failing objects: one for each object, whose count grows
 * with its failures, and one when all retries of the object are used up.
 */
export class FailureEvents<P extends KubernetesObject>
  implements RunObserver<P> {
  readonly #recorder: Pick<EventRecorder, "record">;
  readonly #kind: ResolvedKind;

  constructor(recorder: Pick<EventRecorder, "record">, kind: ResolvedKind) {
    this.#recorder = recorder;
    this.#kind = kind;
  }

  ended(run: Run<P>, { error }: RunResult, plan: RunPlan | undefined): void {
    const { failure, alarm } = plan ?? {};
    if (failure === undefined) return;
    if (run.deleted || run.primary.metadata.uid === undefined) return;
    if (isConflict(error) && !alarm) return;
    const reason = failure === "exhausted" && alarm
      ? "RetriesExhausted"
      : "RunFailed";
    this.#recorder.record(run.primary, this.#kind, {
      type: "Warning",
      reason,
      message: messageWithCause(error),
      options: { key: reason },
    });
  }
}

/** Record of a past run. */
export interface RecordedRun {
  /** Start of the run, as an RFC 3339 timestamp. */
  readonly at: string;
  /** Cause of the run, such as `source pods: Pod default/web`. */
  readonly cause: string;
  /** Step that the run took: `reconcile`, `cleanup` and so on. */
  readonly step: string;
  /** Number of the retry; 0 for a run that was not a retry. */
  readonly attempt: number;
  /** How the run ended; one whose signal was aborted counts as `aborted`. */
  readonly outcome: "success" | "failure" | "aborted";
  /** Time in the queue, in milliseconds. */
  readonly waited: number;
  /** Duration of the run, in milliseconds. */
  readonly duration: number;
  /** Writes as texts such as `apply v1 ConfigMap default/web`. */
  readonly writes: readonly string[];
  /**
   * Fields that each of the writes changed; only under `coracle dev`, and only
   * where the object was in a cache.
   */
  readonly changes?:
    | readonly (readonly string[] | undefined)[]
    | undefined;
  /** Nodes of the workflow and their results on one line. */
  readonly workflow?: string | undefined;
  /** Message of the error of a failed run. */
  readonly error?: string | undefined;
  /**
   * Cause and time of the next run, such as `retry in 2s`, or `event` if an event
   * came during this one; absent if none is planned.
   */
  readonly next?: string | undefined;
}

/** Maximum number of recent runs that are kept for each object. */
const MAX_RUNS = 10;
/** Minimum number of observed objects: those that ran most recently. */
const MIN_OBJECTS = 500;
/** The same for the histories of many controllers together, and for each of them. */
const MANY_HISTORIES = { all: 10_000, each: 10 } as const;

/** Number of objects with a history, at least, in each of some controllers. */
export function historyLimit(controllers: number): number {
  const { all, each } = MANY_HISTORIES;
  return Math.max(each, Math.min(MIN_OBJECTS, Math.floor(all / controllers)));
}
/** Maximum length of an error message that is kept, in UTF-16 code units. */
const MAX_ERROR_LENGTH = 500;

/**
 * Past run in memory; its texts are formatted on request. Durations are whole
 * microseconds: V8 keeps fractions outside their object.
 */
interface KeptRun extends
  Pick<
    RecordedRun,
    "attempt" | "duration" | "error" | "outcome" | "waited" | "workflow"
  > {
  readonly writes: readonly RunWrite[];
  /** Start of the run by the clock of the controller, in milliseconds. */
  readonly at: number;
  readonly cause: RunCause;
  readonly step: string | undefined;
  /** Cause of the next run. */
  readonly next: string | undefined;
  /** Time until the next run, in milliseconds. */
  readonly nextIn: number;
}

/** Recent runs of the objects that ran most recently, for `coracle why`. */
export class RunHistory<P extends KubernetesObject> implements RunObserver<P> {
  readonly #clock: Clock;
  readonly #byKey: LatestMap<KeptRun[]>;

  /** @param deps `limit` returns the number of objects that are kept at least. */
  constructor({ clock, limit = () => MIN_OBJECTS }: {
    readonly clock: Clock;
    readonly limit?: (() => number) | undefined;
  }) {
    this.#clock = clock;
    this.#byKey = new LatestMap(limit);
  }

  /** Keys of the objects that ran most recently, the latest first. */
  latest(limit: number): readonly string[] {
    const last = (runs: readonly KeptRun[]) => runs.at(-1)?.at ?? 0;
    return this.#byKey.entries().reverse()
      .sort(([, a], [, b]) => last(b) - last(a))
      .slice(0, limit).map(([key]) => key);
  }

  /** Recent runs of an object, the latest last. */
  of(key: string): readonly RecordedRun[] {
    const epoch = this.#clock.wallTime() - this.#clock.now();
    return (this.#byKey.get(key) ?? []).map((run) => recorded(run, epoch));
  }

  ended(
    run: Run<P>,
    result: RunResult,
    plan: RunPlan | undefined,
  ): void {
    const { error } = result;
    const { startedAt, endedAt } = run;
    const duration = endedAt - startedAt;
    const { rescheduleAt = Infinity, timerAt = Infinity } = plan ?? {};
    const kept: KeptRun = {
      at: startedAt,
      cause: run.cause,
      step: run.step,
      attempt: run.retry.attempt,
      outcome: outcomeOf(run, result, plan),
      waited: Math.round(1_000 * run.waited),
      duration: Math.round(1_000 * duration),
      writes: run.writes,
      workflow: run.workflow?.summary,
      error: error === undefined
        ? undefined
        : shortText(textWithCause(error), MAX_ERROR_LENGTH),
      next: plan?.failure === "event"
        ? "event"
        : rescheduleAt < timerAt
        ? "reschedule"
        : plan?.timerCause,
      nextIn: Math.round(Math.min(rescheduleAt, timerAt) - endedAt),
    };
    const runs = this.#byKey.get(run.key);
    // A literal has no spare capacity, unlike an array that grows.
    if (runs === undefined) return this.#byKey.set(run.key, [kept]);
    if (runs.length === MAX_RUNS) runs.shift();
    runs.push(kept);
    this.#byKey.set(run.key, runs);
  }
}

function recorded(run: KeptRun, epoch: number): RecordedRun {
  const { next, nextIn, error, workflow, writes, ...kept } = run;
  const changes = writes.map(({ changes }) => changes);
  return {
    ...kept,
    at: new Date(epoch + run.at).toISOString(),
    cause: causeText(run.cause),
    step: run.step ?? "reconcile",
    waited: run.waited / 1_000,
    duration: run.duration / 1_000,
    writes: writes.map(writeText),
    ...(changes.some((fields) => fields !== undefined) && { changes }),
    ...(workflow !== undefined && { workflow }),
    ...(error !== undefined && { error }),
    ...(next === "event" && { next }),
    ...(nextIn < Infinity && { next: `${next} in ${durationText(nextIn)}` }),
  };
}

/**
 * Time from its abort until a run is overdue. Code that reacts to the signal
 * ends within moments, and a last write or the end of a connection within
 * seconds.
 */
const OVERDUE_MS = 10_000;

/**
 * Longest pause between two warnings about one run. The pauses double up to
 * this limit, so that a run that hangs for a night causes about ten log lines.
 */
const LONGEST_WARNING_PAUSE_MS = 3_600_000;

/** Abort of a run that has not ended. */
interface Abort {
  readonly because: AbortCause;
  /** Time of the abort by the clock of the controller. */
  readonly since: number;
  timer: Timer | undefined;
}

/**
 * Warnings about runs that continue although their signal was aborted. Such a
 * run cannot be ended from outside, and no other run of its object may begin
 * before it ends, so its object waits. No other sign would reveal this.
 */
export class OverdueRuns<P extends KubernetesObject> implements RunObserver<P> {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #aborted: Map<string, Abort> = new Map();
  #closed = false;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Logger }) {
    this.#clock = clock;
    this.#log = unfailingLogger(log);
  }

  get size(): number {
    const latest = this.#clock.now() - OVERDUE_MS;
    return [...this.#aborted.values()].filter(({ since }) => since <= latest)
      .length;
  }

  /** Abort of the run of an object, and the milliseconds since; or undefined. */
  of(key: string): { because: AbortCause; ago: number } | undefined {
    const { because, since } = this.#aborted.get(key) ?? {};
    if (because === undefined || since === undefined) return undefined;
    return { because, ago: this.#clock.now() - since };
  }

  started(run: Run<P>): void {
    run.onAbort = this.#onAbort;
  }

  ended(run: Run<P>, _result: RunResult): void {
    const abort = this.#aborted.get(run.key);
    if (abort === undefined) return;
    this.#aborted.delete(run.key);
    abort.timer?.cancel();
  }

  /** Stops all warnings, whose timers would keep the process alive. */
  close(): void {
    this.#closed = true;
    for (const { timer } of this.#aborted.values()) timer?.cancel();
  }

  /** Handler of aborts, shared by all runs. */
  readonly #onAbort = (run: Run<P>, because: AbortCause): void => {
    const since = this.#clock.now();
    const abort: Abort = { because, since, timer: undefined };
    this.#aborted.set(run.key, abort);
    if (!this.#closed) this.#warnAfter(OVERDUE_MS, run, abort);
  };

  #warnAfter(pause: number, run: Run<P>, abort: Abort): void {
    abort.timer = this.#clock.setTimer(() => {
      const now = this.#clock.now();
      this.#log.warn(
        "A run continues although its signal was aborted: its object waits until it ends",
        {
          object: run.key,
          because: abort.because,
          abortedFor: Math.round(now - abort.since),
          runningFor: Math.round(now - run.startedAt),
        },
      );
      this.#warnAfter(
        Math.min(2 * pause, LONGEST_WARNING_PAUSE_MS),
        run,
        abort,
      );
    }, pause);
  }
}

/**
 * Longest pause between two runs of a sequence, in milliseconds, without the wait
 * in the queue, which is long if very many objects run again and again.
 */
const SEQUENCE_PAUSE_MS = 1_000;
/** Number of runs, and their least time in milliseconds, that cause a warning. */
const MANY_RUNS = 100;
const LONG_MS = 5_000;
/** Number of runs that cause a warning in any time. */
const VERY_MANY_RUNS = 1_000;
/** Shortest time between two warnings of a controller, in milliseconds. */
const WARNING_PAUSE_MS = 3_600_000;

/** Runs of an object that follow one another. */
interface Sequence {
  /** Start of the first run by the clock of the controller. */
  since: number;
  /** End of the last run. */
  last: number;
  runs: number;
}

/**
 * Warning about an object that runs again and again without a pause: its own
 * writes trigger it, or it is rescheduled after milliseconds that were meant as
 * seconds. Each run succeeds, so nothing else would indicate the problem.
 */
export class EndlessRuns<P extends KubernetesObject> implements RunObserver<P> {
  readonly #log: Logger;
  readonly #sequences: LatestMap<Sequence>;
  #warnedAt = -Infinity;

  /** @param deps `limit` returns the number of objects that are observed at least. */
  constructor({ log, limit = () => MIN_OBJECTS }: {
    readonly log: Logger;
    readonly limit?: (() => number) | undefined;
  }) {
    this.#log = unfailingLogger(log);
    this.#sequences = new LatestMap(limit, limit());
  }

  ended(run: Run<P>): void {
    const now = run.endedAt;
    const sequence = this.#sequences.get(run.key);
    if (
      sequence === undefined ||
      run.startedAt - run.waited - sequence.last > SEQUENCE_PAUSE_MS
    ) {
      const first = { since: run.startedAt, last: now, runs: 1 };
      return this.#sequences.set(run.key, first);
    }
    sequence.last = now;
    sequence.runs++;
    // A long sequence stays in the map, though new ones are set.
    if (sequence.runs % 16 === 0) this.#sequences.set(run.key, sequence);
    const duration = now - sequence.since;
    if (
      sequence.runs < VERY_MANY_RUNS &&
      (sequence.runs < MANY_RUNS || duration < LONG_MS)
    ) return;
    if (now - this.#warnedAt < WARNING_PAUSE_MS) return;
    this.#warnedAt = now;
    this.#log.warn("The runs of an object follow one another without a pause", {
      object: run.key,
      cause: causeText(run.cause),
      runs: sequence.runs,
      within: Math.round(duration),
      hint: run.cause.type === "reschedule"
        ? 'numbers are milliseconds: write rescheduleAfter("10s") for seconds'
        : "writes by ctx trigger no run, but those by ctx.client do; rateLimit limits the runs of an object",
    });
  }

  deleted(key: string): void {
    this.#sequences.delete(key);
  }
}
