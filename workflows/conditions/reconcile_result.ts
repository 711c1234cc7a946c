import { type Duration, milliseconds } from "../../core/api/duration.ts";
import { checkOptions, type OptionRules } from "../../core/api/options.ts";
import { isOutcome, type PassResult } from "./outcome.ts";
import {
  type Condition,
  type ConditionMoment,
  findCondition,
  isReconciling,
  isStalled,
  isTrue,
  isUnknown,
  markReconciling,
  markStalled,
  READY,
  RECONCILING,
  removeCondition,
  setCondition,
  STALLED,
} from "./condition.ts";
import {
  MERGE_RULES,
  type MergeOptions,
  summarize,
} from "./condition_merge.ts";

/** When to come back, and whether that is because all is well. */
export interface NextRun {
  /** Milliseconds; zero for at once, undefined for not before an event. */
  readonly after: number | undefined;
  /** Whether the pass has reached the desired state. */
  readonly success: boolean;
}

/** Decides when an object is looked at again. */
export interface Cadence {
  /** When to come back after a pass that ended so. */
  next(result: PassResult, error: unknown): NextRun;
  /**
   * Whether a pass that calls itself a success while the object is not Ready
   * has failed, and is retried.
   */
  readonly retryUntilReady: boolean;
}

/**
 * Looks again at a fixed interval, for what tells nobody when it changes.
 *
 * @param interval How long after a success, and after a wait that names no time.
 * @throws {RangeError} If the interval is not a positive duration.
 *
 * @example Every minute, give or take five per cent
 * ```ts
 * import { every, jittered } from "@coracle/operator/workflows";
 *
 * const cadence = every(jittered("1m", { random: () => 0.5 }));
 * if (cadence.next("success", undefined).after !== 60_000) {
 *   throw new Error("Unexpected interval");
 * }
 * ```
 */
export function every(interval: Duration): Cadence {
  const period = milliseconds(interval, "interval");
  if (!(period > 0)) {
    throw new RangeError(
      `Cannot make a cadence: the interval must be longer than zero: received ${interval}`,
    );
  }
  return {
    retryUntilReady: true,
    next(result, error) {
      if (isOutcome(error, "waiting")) {
        return { after: error.after || period, success: false };
      }
      if (isOutcome(error, "failed") && error.harmless) {
        return { after: period, success: true };
      }
      if (result === "requeue") return { after: 0, success: false };
      return result === "success"
        ? { after: period, success: error === undefined }
        : { after: undefined, success: false };
    },
  };
}

/** Looks again only when an event comes, or a wait names a time. */
export function onEvents(): Cadence {
  return {
    retryUntilReady: false,
    next(result, error) {
      if (isOutcome(error, "waiting")) {
        return { after: error.after, success: false };
      }
      if (isOutcome(error, "failed") && error.harmless) {
        return { after: undefined, success: true };
      }
      if (result === "requeue") return { after: 0, success: false };
      return {
        after: undefined,
        success: result === "success" && error === undefined,
      };
    },
  };
}

/** Options of {@linkcode jittered}. */
export interface JitterOptions {
  /**
   * How far the result may be off, in per cent of the duration; less than 100.
   * The default is that of Flux' controllers.
   *
   * @default {5}
   */
  readonly percentage?: number | undefined;
  /**
   * Gives a number from 0 to below 1.
   *
   * @default {Math.random}
   */
  readonly random?: (() => number) | undefined;
}

const JITTER_RULES: OptionRules<JitterOptions> = {
  percentage: "number?",
  random: "function?",
};

/**
 * A duration that is a little longer or shorter, so that many objects do not
 * come due at once. Zero stays zero.
 *
 * @returns Milliseconds.
 * @throws {TypeError} If an option is unknown or of another type.
 * @throws {RangeError} If the percentage is negative, or 100 or more.
 */
export function jittered(
  duration: Duration,
  options: JitterOptions = {},
): number {
  checkOptions(options, JITTER_RULES, "jittered()");
  const { percentage = 5, random = Math.random } = options;
  if (!(percentage >= 0 && percentage < 100)) {
    throw new RangeError(
      `Cannot jitter a duration: "percentage" must be from 0 to below 100: received ${percentage}`,
    );
  }
  return milliseconds(duration) *
    (1 + (percentage / 100) * (2 * random() - 1));
}

/** How a pass ended, as its steps say it. */
export interface PassEnd {
  /** What its steps came to. */
  readonly result: PassResult;
  /** What a step threw; undefined if none did. */
  readonly error?: unknown;
}

/** What follows from the end of a pass. */
export interface Settled {
  /** The conditions to write. */
  readonly conditions: Condition[];
  /** Whether `status.observedGeneration` becomes the generation seen. */
  readonly observed: boolean;
  /** When to come back, if there is no error. */
  readonly next: NextRun;
  /** What the run fails with; undefined if it does not. */
  readonly error?: unknown;
}

/** The reason that Reconciling has after a pass that did not get there. */
export const PROGRESSING_WITH_RETRY = "ProgressingWithRetry";

/**
 * Decides what the end of a pass means: for Reconciling and Stalled, for the
 * generation that counts as observed, for the next run and for the error.
 * Ready is left alone.
 *
 * | error | Reconciling | Stalled | observed | run |
 * | --- | --- | --- | --- | --- |
 * | none, success | removed | removed | yes | the cadence |
 * | none, otherwise | kept | removed | not on requeue | the cadence |
 * | `Stalled` | removed | set | yes | never |
 * | `Waiting` | kept | removed | no | when it says |
 * | `Failed`, harmless | removed | removed | yes | the cadence |
 * | any other | kept | removed | no | fails with it |
 *
 * The rules are those of Flux' source-controller (`ComputeReconcileResult`). A
 * `Stalled` beside a result other than empty is a mistake of the caller and
 * fails the run. Nothing counts as observed while there is no condition at all.
 *
 * @param conditions What the pass has left.
 * @param end Its result and error.
 * @param context How often to look, and the moment.
 */
export function settle(
  conditions: readonly Condition[],
  end: PassEnd,
  context: { readonly cadence: Cadence; readonly moment: ConditionMoment },
): Settled {
  const { result, error } = end;
  const { cadence, moment } = context;
  const next = cadence.next(result, error);
  let list = [...conditions];
  if (error === undefined && result === "success") {
    list = removeCondition(list, RECONCILING);
  }
  if (isReconciling(list)) {
    const { message } = findCondition(list, RECONCILING)!;
    list = setCondition(list, {
      type: RECONCILING,
      status: "True",
      reason: PROGRESSING_WITH_RETRY,
      message,
    }, moment);
  }
  if (isOutcome(error, "stalled")) {
    if (result !== "empty") {
      return { conditions: list, observed: false, next, error };
    }
    const { reason, message } = error;
    return {
      conditions: markStalled(list, { reason, message }, moment),
      observed: true,
      next,
    };
  }
  const any = list.length > 0;
  list = removeCondition(list, STALLED);
  if (isOutcome(error, "waiting")) {
    return { conditions: list, observed: false, next };
  }
  if (isOutcome(error, "failed") && error.harmless) {
    return {
      conditions: removeCondition(list, RECONCILING),
      observed: any,
      next,
    };
  }
  return error === undefined
    ? { conditions: list, observed: any && result !== "requeue", next }
    : { conditions: list, observed: false, next, error };
}

/** One condition that sums up others at the end of a pass. */
export interface Roll extends MergeOptions {
  /** The type to make, such as Ready. */
  readonly target: string;
}

/** What a roll must be. */
export const ROLL_RULES: OptionRules<Roll> = { ...MERGE_RULES, target: "name" };

/** What {@linkcode finish} works with. */
export interface FinishOptions {
  /** How often to look. */
  readonly cadence: Cadence;
  /** When, and which generation the pass has seen. */
  readonly moment: ConditionMoment;
  /**
   * The conditions that sum up others.
   *
   * @default {none}
   */
  readonly rolls?: readonly Roll[] | undefined;
  /**
   * Types which, when False, make Ready False with their words, the earlier
   * ones first; when True they say nothing.
   *
   * @default {none}
   */
  readonly gates?: readonly string[] | undefined;
  /**
   * What Ready says after a success for which nothing else has set it.
   *
   * @default {Ready is not set}
   */
  readonly succeeded?:
    | { readonly reason: string; readonly message: string }
    | undefined;
}

const FINISH_RULES: OptionRules<FinishOptions> = {
  cadence: "object",
  moment: "object",
  rolls: "array?",
  gates: "strings?",
  succeeded: "object?",
};

/**
 * Ends a pass: {@linkcode settle}, then the summaries, then the gates. A
 * success that leaves Ready other than True is turned into an error where the
 * cadence retries until ready, so that such a pass never ends silently.
 *
 * @param conditions What the pass has left.
 * @param end Its result and error.
 * @param options How often to look, the moment, and what is summed up.
 * @throws {TypeError} If an option is unknown, missing or of another type.
 *
 * @example A failure that Ready tells
 * ```ts
 * import { finish, onEvents, setCondition } from "@coracle/operator/workflows";
 *
 * const moment = { now: 0, generation: 3 };
 * const conditions = setCondition(
 *   [],
 *   { type: "FetchFailed", status: "True", reason: "Unreachable" },
 *   moment,
 * );
 * const end = finish(
 *   conditions,
 *   { result: "empty", error: new Error("no route") },
 *   {
 *     cadence: onEvents(),
 *     moment,
 *     rolls: [{ target: "Ready", abnormal: ["FetchFailed"] }],
 *   },
 * );
 * if (end.conditions[0]?.reason !== "Unreachable") throw new Error("Unexpected");
 * ```
 */
export function finish(
  conditions: readonly Condition[],
  end: PassEnd,
  options: FinishOptions,
): Settled {
  checkOptions(options, FINISH_RULES, "finish()");
  const { cadence, moment, rolls = [], gates = [], succeeded } = options;
  const settled = settle(conditions, end, { cadence, moment });
  let list = settled.conditions;
  for (const { target, ...sources } of rolls) {
    const summary = summarize(list, target, sources);
    if (summary !== undefined) list = setCondition(list, summary, moment);
  }
  const gate = gates
    .map((type) => findCondition(list, type))
    .find((condition) => condition?.status === "False");
  if (gate !== undefined) {
    const { reason, message } = gate;
    list = setCondition(
      list,
      { type: READY, status: "False", reason, message },
      moment,
    );
  }
  const done = settled.error === undefined && settled.next.success &&
    findCondition(list, STALLED)?.status !== "True";
  if (done && succeeded !== undefined && !findCondition(list, READY)) {
    list = setCondition(
      list,
      { ...succeeded, type: READY, status: "True" },
      moment,
    );
  }
  const observed = settled.observed ||
    (done && list.length > 0);
  const notReady = done && cadence.retryUntilReady ? unready(list) : undefined;
  const error = settled.error ?? notReady;
  return {
    conditions: list,
    observed,
    next: settled.next,
    ...(error === undefined ? {} : { error }),
  };
}

function unready(conditions: readonly Condition[]): Error | undefined {
  const ready = findCondition(conditions, READY);
  if (ready === undefined || ready.status === "True") return undefined;
  return new Error(
    `Cannot call the pass a success: the object is not Ready: received ${ready.reason}: ${ready.message}`,
  );
}

/**
 * Whether a pass has recovered: one of these types was there before, and none
 * is now.
 */
export function recovered(
  before: readonly Condition[],
  after: readonly Condition[],
  failures: readonly string[],
): boolean {
  const failing = (list: readonly Condition[]) =>
    failures.some((type) => findCondition(list, type) !== undefined);
  return failing(before) && !failing(after);
}

/** What {@linkcode finalizeResult} works with. */
export interface FinalizeOptions {
  /** When, and which generation the pass has seen. */
  readonly moment: ConditionMoment;
  /**
   * Whether the controller runs on events alone, so that even a success asks
   * for no further run.
   *
   * @default {false}
   */
  readonly eventDriven?: boolean | undefined;
  /** What Ready says after a success for which nothing else has set it. */
  readonly succeeded: string;
  /**
   * The conditions that sum up others.
   *
   * @default {none}
   */
  readonly rolls?: readonly Roll[] | undefined;
}

const FINALIZE_RULES: OptionRules<FinalizeOptions> = {
  moment: "object",
  eventDriven: "boolean?",
  succeeded: "string",
  rolls: "array?",
};

/**
 * Ends the pass of a reconciler that speaks in times and errors instead of
 * results: Ready, Reconciling and Stalled are made consistent with them. The
 * rules are those of Flux' `ResultFinalizer`.
 *
 * - An error makes Ready False (`Failed`) unless it is already False, whose
 *   words are kept; a success makes it True (`Succeeded`) if nobody has said
 *   otherwise.
 * - What is retried is not stalled; what is done or stalled is not reconciling.
 * - A success that leaves Ready False is an error, unless the controller runs on
 *   events alone.
 *
 * @param conditions What the pass has left.
 * @param next When it wants to come back, and whether that means success.
 * @param error What it threw; undefined if nothing.
 * @throws {TypeError | RangeError} If an option is unknown or of another type.
 */
export function finalizeResult(
  conditions: readonly Condition[],
  { next, error }: { readonly next: NextRun; readonly error?: unknown },
  options: FinalizeOptions,
): Settled {
  checkOptions(options, FINALIZE_RULES, "finalizeResult()");
  const { moment, eventDriven = false, succeeded, rolls = [] } = options;
  const ok = next.success && error === undefined;
  let list = [...conditions];
  const unready = (words: { reason: string; message: string }) => {
    if (findCondition(list, READY)?.status === "False") return;
    list = setCondition(
      list,
      { ...words, type: READY, status: "False" },
      moment,
    );
  };
  if (error !== undefined) list = removeCondition(list, STALLED);
  if (!ok || eventDriven) {
    if (next.after !== undefined && !next.success) {
      list = removeCondition(list, STALLED);
    }
    const stalled = findCondition(list, STALLED);
    if (stalled?.status === "True") unready(stalled);
  }
  if (ok || isTrue(list, STALLED)) list = removeCondition(list, RECONCILING);
  if (error !== undefined) {
    const message = error instanceof Error ? error.message : String(error);
    unready({ reason: "Failed", message });
  }
  for (const { target, ...sources } of rolls) {
    const summary = summarize(list, target, sources);
    if (summary !== undefined) list = setCondition(list, summary, moment);
  }
  let failure = error;
  const ready = findCondition(list, READY);
  if (ok && !eventDriven && ready?.status === "False" && !isStalled(list)) {
    failure = new Error(
      `Cannot call the pass a success: the object is not Ready: received ${ready.reason}: ${ready.message}`,
    );
  }
  if (
    ok && failure === undefined && isUnknown(list, READY) &&
    !isReconciling(list) && !isStalled(list)
  ) {
    list = setCondition(list, {
      type: READY,
      status: "True",
      reason: "Succeeded",
      message: succeeded,
    }, moment);
  }
  return {
    conditions: list,
    observed: isStalled(list) || isTrue(list, READY),
    next,
    ...(failure === undefined ? {} : { error: failure }),
  };
}

/**
 * Says that work on the present generation goes on. Ready becomes Unknown when
 * it is not known any more: after drift, or when nobody has said it yet.
 *
 * @param conditions What is there.
 * @param words Why work goes on; `drift` tells that the world has moved.
 * @param moment When, and of which generation.
 */
export function progressiveStatus(
  conditions: readonly Condition[],
  { reason, message, drift = false }: {
    readonly reason: string;
    readonly message: string;
    readonly drift?: boolean | undefined;
  },
  moment: ConditionMoment,
): Condition[] {
  const list = markReconciling(conditions, { reason, message }, moment);
  return drift || isUnknown(list, READY)
    ? setCondition(
      list,
      { type: READY, status: "Unknown", reason, message },
      moment,
    )
    : list;
}
