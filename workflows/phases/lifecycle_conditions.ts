import {
  type Condition,
  type ConditionMoment,
  findCondition,
  markReconciling,
  markStalled,
  READY,
  RECONCILING,
  removeCondition,
  setCondition,
  STALLED,
} from "../conditions/condition.ts";
import type { Lifecycle, RolloutError } from "./phased_status.ts";

/** What Ready, Reconciling and Stalled say in a state of life. */
interface Words {
  readonly ready: "True" | "False" | "Unknown";
  readonly also?: "Reconciling" | "Stalled";
  readonly message: string;
}

const WORDS: Readonly<Record<Lifecycle, Words>> = {
  Created: {
    ready: "Unknown",
    also: "Reconciling",
    message: "Nothing is deployed yet",
  },
  Upgrading: {
    ready: "False",
    also: "Reconciling",
    message: "A deployment is under way",
  },
  RollingBack: {
    ready: "False",
    also: "Reconciling",
    message: "The last stable spec is being restored",
  },
  Deployed: {
    ready: "False",
    also: "Reconciling",
    message: "Deployed, not stable yet",
  },
  Stable: { ready: "True", message: "Deployed and stable" },
  Suspended: { ready: "False", message: "Suspended, as the spec asks for" },
  // What was asked for will not come before somebody changes it.
  RolledBack: {
    ready: "False",
    also: "Stalled",
    message: "The last stable spec runs instead of the present one",
  },
  Failed: { ready: "False", also: "Stalled", message: "Failed" },
  Deleting: {
    ready: "False",
    also: "Reconciling",
    message: "The object is being deleted",
  },
};

/** Why an object is as it is: one word for programs, and one sentence. */
export interface Reasons {
  /** One word for programs. */
  readonly reason: string;
  /** One sentence for people. */
  readonly message: string;
}

/** What is pending; without a reason, that is the state of life. */
export interface Pending {
  /**
   * One word for programs.
   *
   * @default {the state of life}
   */
  readonly reason?: string | undefined;
  /** One sentence for people. */
  readonly message: string;
}

/** What the conditions of a phased object are made from. */
export interface LifecycleFacts {
  /** Where the object is in its life. */
  readonly lifecycle: Lifecycle;
  /** What went wrong. It is why the object is not Ready, whatever its state. */
  readonly error?: RolloutError | undefined;
  /** What is still to be done, or waited for, before it can be Ready. */
  readonly pending?: Pending | undefined;
  /**
   * What is to be said of the state.
   *
   * @default {the same for every object}
   */
  readonly message?: string | undefined;
}

/**
 * The conditions of a state of life, as kstatus wants them: Ready always,
 * Reconciling and Stalled where they hold. Other conditions are left alone.
 *
 * Ready is True only for an object that is stable, without an error and with
 * nothing pending; an error that is tried again is Reconciling, one that needs
 * somebody's help is Stalled.
 *
 * @param conditions What is there.
 * @param facts The state, the error and what is pending.
 * @param moment When, and which generation was seen.
 */
export function lifecycleConditions(
  conditions: readonly Condition[],
  facts: LifecycleFacts,
  moment: ConditionMoment,
): Condition[] {
  const { lifecycle, error, pending } = facts;
  const usual = WORDS[lifecycle];
  const words = {
    reason: error?.reason ?? pending?.reason ?? lifecycle,
    message: error?.message ?? pending?.message ?? facts.message ??
      usual.message,
  };
  const disturbed = error !== undefined || pending !== undefined;
  const ready = disturbed ? "False" : usual.ready;
  let list = setCondition(
    conditions,
    { type: READY, status: ready, ...words },
    moment,
  );
  if (error?.stalled || usual.also === STALLED) {
    list = markStalled(list, words, moment);
  } else if (disturbed || usual.also === RECONCILING) {
    list = markReconciling(list, words, moment);
  } else {
    list = removeCondition(removeCondition(list, RECONCILING), STALLED);
  }
  return list;
}

/**
 * The Ready condition, if there is one. Somebody may have edited the status by
 * hand, so that it need not even hold a list.
 */
export function readyCondition(conditions: unknown): Condition | undefined {
  return Array.isArray(conditions)
    ? findCondition(conditions, READY)
    : undefined;
}
