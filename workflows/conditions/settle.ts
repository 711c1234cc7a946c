import { checkOptions, type OptionRules } from "../../core/api/option_rules.ts";
import type { Cadence, NextRun } from "./cadence.ts";
import {
  type Condition,
  type ConditionMoment,
  findCondition,
  isReconciling,
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
import { isOutcome, type PassResult } from "./outcome.ts";

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

const RULES: OptionRules<FinishOptions> = {
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
  checkOptions(options, RULES, "finish()");
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
