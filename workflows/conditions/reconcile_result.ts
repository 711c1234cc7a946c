/**
 * Result of a reconciliation for the object: its conditions, whether the
 * generation counts as observed, and when the next run takes place. All
 * functions are pure; the rules are those of Flux.
 *
 * @module
 */
import { type Duration, milliseconds } from "../../core/api/duration.ts";
import { checkOptions, type OptionRules } from "../../core/api/options.ts";
import { immediate } from "../../core/callback.ts";
import {
  compareConditions,
  type Condition,
  type ConditionMoment,
  findCondition,
  isReconciling,
  markAs,
  type NewCondition,
  READY,
  RECONCILING,
  removeCondition,
  setCondition,
  STALLED,
  wordsOf,
} from "./condition.ts";
import { isOutcome, type StepsResult } from "./outcome.ts";

/** Schedule that decides when an object is reconciled again. */
export interface ReconcileSchedule {
  /**
   * Computes the next run.
   *
   * @param result The result of the steps.
   * @param error The error that a step threw; undefined if none did.
   * @returns `after` is the delay in milliseconds: zero for an immediate run,
   * undefined to wait for the next event. `success` says whether the desired
   * state was reached.
   */
  next(
    result: "empty" | "requeue" | "success",
    error: unknown,
  ): { readonly after: number | undefined; readonly success: boolean };
  /**
   * Whether a run that reports success while the object is not Ready counts as
   * failed, and is retried.
   */
  readonly retryUntilReady: boolean;
}

/**
 * Schedule with a fixed interval, for state whose changes cause no events.
 *
 * @param interval The delay after a success, and after a wait that names no
 * delay of its own.
 * @throws {RangeError} If the interval is not a positive duration.
 *
 * @example Every minute, plus or minus five percent
 * ```ts
 * import { intervalSchedule, jittered } from "@coracle/operator/workflows";
 *
 * const schedule = intervalSchedule(jittered("1m", { random: () => 0.5 }));
 * if (schedule.next("success", undefined).after !== 60_000) {
 *   throw new Error("Unexpected interval");
 * }
 * ```
 */
export function intervalSchedule(
  interval: Duration | string,
): ReconcileSchedule {
  const period = milliseconds(interval, "interval");
  if (!(period > 0)) {
    throw new RangeError(
      `Cannot create a schedule: the interval must be longer than zero: received ${interval}`,
    );
  }
  return scheduleOf(period);
}

/** Schedule for runs after events, and after waits with an explicit delay. */
export function eventSchedule(): ReconcileSchedule {
  return scheduleOf(undefined);
}

function scheduleOf(period: number | undefined): ReconcileSchedule {
  return {
    retryUntilReady: period !== undefined,
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

const JITTER_RULES: OptionRules<NonNullable<Parameters<typeof jittered>[1]>> = {
  percentage: "number?",
  random: "function?",
};

/**
 * Makes a duration randomly longer or shorter, so that many objects are not
 * due at the same time. Zero stays zero.
 *
 * @param options `percentage` is the largest deviation in percent of the
 * duration, less than 100 (5 by default, as in Flux' controllers); `random`
 * returns a number from 0 to below 1 (`Math.random` by default).
 * @returns Milliseconds.
 * @throws {TypeError} If an option is unknown or of another type.
 * @throws {RangeError} If the percentage is negative, or 100 or more.
 */
export function jittered(
  duration: Duration | string,
  options: {
    readonly percentage?: number | undefined;
    readonly random?: (() => number) | undefined;
  } = {},
): number {
  checkOptions(options, JITTER_RULES, "jittered()");
  const { percentage = 5, random = Math.random } = options;
  if (!(percentage >= 0 && percentage < 100)) {
    throw new RangeError(
      `Cannot jitter a duration: "percentage" must be from 0 to below 100: received ${percentage}`,
    );
  }
  return milliseconds(duration) *
    (1 + (percentage / 100) * (2 * immediate(random(), "random()") - 1));
}

/** Result of a reconciliation, computed from its steps and conditions. */
export interface ComputedResult {
  readonly conditions: Condition[];
  /** Whether `status.observedGeneration` is set to the reconciled generation. */
  readonly observed: boolean;
  /**
   * Next run, unless there is an error: its delay in milliseconds (zero for an
   * immediate run, undefined for the next event), and whether this run was a
   * success.
   */
  readonly next: {
    readonly after: number | undefined;
    readonly success: boolean;
  };
  /** Error that fails the run; undefined if it succeeds. */
  readonly error?: unknown;
}

/** Reason of Reconciling after a run that has not reached the desired state. */
export const PROGRESSING_WITH_RETRY = "ProgressingWithRetry";

/**
 * Computes Reconciling and Stalled, whether the generation counts as observed,
 * the next run and the error from the result of the steps. Ready is not
 * changed.
 *
 * | error | Reconciling | Stalled | observed | next run |
 * | --- | --- | --- | --- | --- |
 * | none, success | removed | removed | yes | by the schedule |
 * | none, otherwise | kept | removed | unless `"requeue"` | by the schedule |
 * | `Stalled` | removed | set | yes | none |
 * | `Waiting` | kept | removed | no | after its delay |
 * | `Failed`, harmless | removed | removed | yes | by the schedule |
 * | any other | kept | removed | no | the run fails |
 *
 * The rules are those of Flux' source-controller (`ComputeReconcileResult`). A
 * `Stalled` beside a result other than empty is a mistake of the caller and
 * fails the run. Without any condition no generation counts as observed.
 */
export function computeReconcileResult(
  conditions: readonly Condition[],
  steps: StepsResult,
  context: {
    readonly schedule: ReconcileSchedule;
    readonly moment: ConditionMoment;
  },
): ComputedResult {
  const { result, error } = steps;
  const { schedule, moment } = context;
  const next = immediate(schedule.next(result, error), "schedule.next()");
  let list = error === undefined && result === "success"
    ? removeCondition(conditions, RECONCILING)
    : [...conditions];
  if (isReconciling(list)) {
    const reconciling = findCondition(list, RECONCILING)!;
    const retrying = { ...reconciling, reason: PROGRESSING_WITH_RETRY };
    list = setCondition(list, retrying, moment);
  }
  if (isOutcome(error, "stalled")) {
    if (result !== "empty") {
      return { conditions: list, observed: false, next, error };
    }
    const { reason, message } = error;
    return {
      conditions: markAs(list, { type: STALLED, reason, message }, moment),
      observed: true,
      next,
    };
  }
  const isHarmless = isOutcome(error, "failed") && error.harmless;
  const isWaiting = isOutcome(error, "waiting");
  const isFailed = error !== undefined && !isHarmless && !isWaiting;
  const isDone = !isWaiting && !isFailed && result !== "requeue";
  const observed = isDone && list.length > 0;
  list = removeCondition(list, STALLED);
  if (isHarmless) list = removeCondition(list, RECONCILING);
  return { conditions: list, observed, next, ...(isFailed && { error }) };
}

/** Options of {@linkcode summarizeResult}; see `SummarizedDefinition`. */
export interface SummarizeOptions {
  readonly gates?: readonly string[] | undefined;
  readonly summaries?: readonly ConditionSummary[] | undefined;
  readonly schedule: ReconcileSchedule;
  readonly moment: ConditionMoment;
  /**
   * Reason and message of Ready after a success for which no step or summary
   * has set Ready. By default Ready is not set.
   */
  readonly succeeded?:
    | { readonly reason: string; readonly message: string }
    | undefined;
}

/**
 * Computes the final result of a run: {@linkcode computeReconcileResult}, then
 * the summaries, then the gates. A success that leaves Ready other than True
 * becomes an error if the schedule retries until ready, so that such a run
 * never ends silently.
 */
export function summarizeResult(
  conditions: readonly Condition[],
  steps: StepsResult,
  options: SummarizeOptions,
): ComputedResult {
  const { schedule, moment, summaries = [], gates = [], succeeded } = options;
  const context = { schedule, moment };
  const computed = computeReconcileResult(conditions, steps, context);
  let list = computed.conditions;
  const set = (condition: NewCondition | undefined) => {
    if (condition !== undefined) list = setCondition(list, condition, moment);
  };
  for (const summary of summaries) set(summarizeConditions(list, summary));
  const gate = gates
    .map((type) => findCondition(list, type))
    .find((condition) => condition?.status === "False");
  if (gate !== undefined) {
    set({ type: READY, status: "False", ...wordsOf(gate) });
  }
  const isDone = computed.error === undefined && computed.next.success &&
    findCondition(list, STALLED)?.status !== "True";
  if (isDone && succeeded !== undefined && !findCondition(list, READY)) {
    set({ ...succeeded, type: READY, status: "True" });
  }
  const ready = findCondition(list, READY);
  const isUnready = isDone && schedule.retryUntilReady &&
    ready !== undefined && ready.status !== "True";
  const error = computed.error ??
    (isUnready ? unready(wordsOf(ready)) : undefined);
  return {
    conditions: list,
    observed: computed.observed || (isDone && list.length > 0),
    next: computed.next,
    ...(error === undefined ? {} : { error }),
  };
}

function unready({ reason, message }: ReturnType<typeof wordsOf>): Error {
  return new Error(
    `Cannot report success: the object is not Ready: received ${reason}: ${message}`,
  );
}

/**
 * Whether a run has recovered from a failure: one of the failure conditions was
 * present before, and none is present now.
 */
export function hasRecovered(
  before: readonly Condition[],
  after: readonly Condition[],
  failures: readonly string[],
): boolean {
  const isFailing = (list: readonly Condition[]) =>
    failures.some((type) => findCondition(list, type) !== undefined);
  return isFailing(before) && !isFailing(after);
}

/**
 * Sets Reconciling, for a run that is in progress. Ready becomes Unknown after
 * drift, or if it was not set before.
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
  const reconciling = { type: RECONCILING, reason, message } as const;
  const list = markAs(conditions, reconciling, moment);
  const { status = "Unknown" } = findCondition(list, READY) ?? {};
  if (!drift && status !== "Unknown") return list;
  const unknown = { type: READY, status: "Unknown", reason, message } as const;
  return setCondition(list, unknown, moment);
}

/** Condition that summarizes others. */
export interface ConditionSummary {
  /** Type of the summary, such as Ready. */
  readonly target: string;
  /**
   * Types to merge; among conditions of equal severity the first in this list
   * wins. By default all types are merged.
   */
  readonly of?: readonly string[] | undefined;
  /**
   * Abnormal types: those that report a problem while True, such as Stalled.
   *
   * @default {[]}
   */
  readonly abnormal?: readonly string[] | undefined;
  /**
   * Whether only conditions of the newest observed generation are merged.
   *
   * @default {false}
   */
  readonly latestGenerationOnly?: boolean | undefined;
  /**
   * Whether the message counts the completed steps: `2 of 3 completed`.
   *
   * @default {false}
   */
  readonly stepCounter?: boolean | undefined;
  /**
   * Types to which the counts are restricted: the message only has a count
   * while all merged conditions are of these types. By default any type counts.
   */
  readonly countOnlyIf?: readonly string[] | undefined;
}

export const SUMMARY_RULES: OptionRules<ConditionSummary> = {
  target: "name",
  of: "strings?",
  abnormal: "strings?",
  latestGenerationOnly: "boolean?",
  stepCounter: "boolean?",
  countOnlyIf: "strings?",
};

/**
 * Merges the conditions of an object into one of the target type. A condition
 * of the target type itself is ignored.
 *
 * The most severe condition wins: an abnormal one that is True, then a normal
 * one that is False, then those without a problem, and Unknown last.
 *
 * @returns The summary, or undefined if there is no condition to merge.
 */
export function summarizeConditions(
  conditions: readonly Condition[],
  summary: ConditionSummary,
): NewCondition | undefined {
  const { target, of, abnormal = [], latestGenerationOnly } = summary;
  let members = conditions.filter(({ type }) =>
    type !== target && (of?.includes(type) ?? true)
  );
  if (latestGenerationOnly) {
    const newest = Math.max(...members.map(generationOf));
    members = members.filter((member) => generationOf(member) === newest);
  }
  const severities = members.map((member) => severity(member, abnormal));
  const worst = Math.min(...severities);
  const group = members.filter((_, index) => severities[index] === worst)
    .sort(compareConditions);
  const first = of?.find((type) => findCondition(group, type) !== undefined);
  const lead = group.find(({ type }) => type === first) ?? group[0];
  if (lead === undefined) return undefined;
  const { type, status } = lead;
  const { reason, message } = wordsOf(lead);
  const isInverted = abnormal.includes(type) !== abnormal.includes(target);
  return {
    type: target,
    status: isInverted ? INVERTED[status] : status,
    reason,
    message: countText(members, summary) ?? message,
  };
}

function generationOf({ observedGeneration = 0 }: Condition): number {
  return observedGeneration;
}

/** Severity of a condition; 0 is the most severe. */
function severity(
  { type, status }: Condition,
  abnormal: readonly string[],
): number {
  if (status === "Unknown") return 4;
  if (status === "True") return abnormal.includes(type) ? 0 : 2;
  return abnormal.includes(type) ? 3 : 1;
}

const INVERTED = { True: "False", False: "True", Unknown: "Unknown" } as const;

/** Text with the number of completed steps, if the definition requests it. */
function countText(
  members: readonly Condition[],
  { of, abnormal = [], stepCounter, countOnlyIf }: ConditionSummary,
): string | undefined {
  const isCounted = countOnlyIf === undefined ||
    members.every(({ type }) => countOnlyIf.includes(type));
  if (!stepCounter || !isCounted) return undefined;
  const done = members.filter((member) => severity(member, abnormal) === 2);
  const steps = of ?? countOnlyIf ?? members;
  return `${done.length} of ${steps.length} completed`;
}
