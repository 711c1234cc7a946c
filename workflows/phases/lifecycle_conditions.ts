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

/** Ready, Reconciling and Stalled in a lifecycle state. */
interface StateConditions {
  readonly ready: "True" | "False" | "Unknown";
  readonly also?: "Reconciling" | "Stalled";
  readonly message: string;
}

const STATE_CONDITIONS: Readonly<Record<Lifecycle, StateConditions>> = {
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
  // The desired spec is not deployed until a user changes it.
  RolledBack: {
    ready: "False",
    also: "Stalled",
    message: "The last stable spec runs instead of the current one",
  },
  Failed: { ready: "False", also: "Stalled", message: "Failed" },
  Deleting: {
    ready: "False",
    also: "Reconciling",
    message: "The object is being deleted",
  },
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
 *
 * @param conditions The current conditions.
 * @param facts The lifecycle state, the error and the pending reason.
 * @param moment The time, and the generation.
 */
export function lifecycleConditions(
  conditions: readonly Condition[],
  facts: LifecycleFacts,
  moment: ConditionMoment,
): Condition[] {
  const { lifecycle, error, pending } = facts;
  const usual = STATE_CONDITIONS[lifecycle];
  const texts = {
    reason: error?.reason ?? pending?.reason ?? lifecycle,
    message: error?.message ?? pending?.message ?? facts.message ??
      usual.message,
  };
  const isPending = error !== undefined || pending !== undefined;
  const ready = isPending ? "False" : usual.ready;
  let list = setCondition(
    conditions,
    { type: READY, status: ready, ...texts },
    moment,
  );
  if (error?.stalled || usual.also === STALLED) {
    list = markStalled(list, texts, moment);
  } else if (isPending || usual.also === RECONCILING) {
    list = markReconciling(list, texts, moment);
  } else {
    list = removeCondition(removeCondition(list, RECONCILING), STALLED);
  }
  return list;
}

/** Finds the Ready condition. */
export function readyCondition(
  conditions: readonly Condition[] = [],
): Condition | undefined {
  return findCondition(conditions, READY);
}
