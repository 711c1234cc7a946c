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

/** Ready, Reconciling or Stalled, and their message in a lifecycle state. */
const STATE_CONDITIONS: Readonly<
  Record<
    Lifecycle,
    readonly [
      "True" | "False" | "Unknown",
      string,
      ("Reconciling" | "Stalled")?,
    ]
  >
> = {
  Created: ["Unknown", "Nothing is deployed yet", RECONCILING],
  Upgrading: ["False", "A deployment is in progress", RECONCILING],
  RollingBack: ["False", "The last stable spec is being restored", RECONCILING],
  Deployed: ["False", "Deployed, not stable yet", RECONCILING],
  Stable: ["True", "Deployed and stable"],
  Suspended: ["False", "Suspended by the spec"],
  // The desired spec is not deployed until a user changes it.
  RolledBack: [
    "False",
    "The last stable spec runs instead of the current one",
    STALLED,
  ],
  Failed: ["False", "Failed", STALLED],
  Deleting: ["False", "The object is being deleted", RECONCILING],
};

/** Reason why an object is not Ready yet. */
export interface PendingReason {
  /** Machine-readable reason. Defaults to the lifecycle state. */
  readonly reason?: string | undefined;
  /** Human-readable message. */
  readonly message: string;
}

/** Facts from which the conditions of a phased object are computed. */
export interface LifecycleFacts {
  /** Lifecycle state of the object. */
  readonly lifecycle: Lifecycle;
  /** Error; the object is not Ready while there is one. */
  readonly error?: RolloutError | undefined;
  /** Reason why the object is not Ready yet. */
  readonly pending?: PendingReason | undefined;
  /** Message of the conditions. Defaults to that of the lifecycle state. */
  readonly message?: string | undefined;
}

/**
 * Computes the conditions of a lifecycle state, by the conventions of kstatus:
 * Ready always, Reconciling and Stalled only while True. Other conditions are
 * not changed.
 *
 * Ready is True only for a stable object without an error or pending reason. An
 * error that is retried sets Reconciling, one that needs a user sets Stalled.
 */
export function lifecycleConditions(
  conditions: readonly Condition[],
  facts: LifecycleFacts,
  moment: ConditionMoment,
): Condition[] {
  const { lifecycle, error, pending } = facts;
  const [usual, message, also] = STATE_CONDITIONS[lifecycle];
  const texts = {
    reason: error?.reason ?? pending?.reason ?? lifecycle,
    message: error?.message ?? pending?.message ?? facts.message ?? message,
  };
  const isPending = error !== undefined || pending !== undefined;
  const status = isPending ? "False" : usual;
  const ready = { type: READY, status, ...texts };
  const list = setCondition(conditions, ready, moment);
  if (error?.stalled || also === STALLED) {
    return markStalled(list, texts, moment);
  }
  return isPending || also === RECONCILING
    ? markReconciling(list, texts, moment)
    : removeCondition(removeCondition(list, RECONCILING), STALLED);
}

/** Finds the Ready condition. */
export function readyCondition(
  conditions: readonly Condition[] = [],
): Condition | undefined {
  return findCondition(conditions, READY);
}
