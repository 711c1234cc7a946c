import { checkOptions, type OptionRules } from "../../core/api/option_rules.ts";
import type { NextRun } from "./cadence.ts";
import {
  type Condition,
  type ConditionMoment,
  findCondition,
  isReconciling,
  isStalled,
  isTrue,
  isUnknown,
  markReconciling,
  READY,
  RECONCILING,
  removeCondition,
  setCondition,
  STALLED,
} from "./condition.ts";
import { summarize } from "./condition_merge.ts";
import type { Roll, Settled } from "./settle.ts";

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

const RULES: OptionRules<FinalizeOptions> = {
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
  checkOptions(options, RULES, "finalizeResult()");
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
