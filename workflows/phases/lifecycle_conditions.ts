import {
  type Condition,
  type ConditionMoment,
  markReconciling,
  markStalled,
  READY,
  RECONCILING,
  removeCondition,
  setCondition,
  STALLED,
} from "../conditions/condition.ts";
import type { Lifecycle, RolloutError } from "./rollout.ts";

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
    message: "An upgrade is under way",
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

/**
 * The conditions of a state of life, as kstatus wants them: Ready always,
 * Reconciling and Stalled where they hold. Other conditions are left alone.
 *
 * @param conditions What is there.
 * @param state The state, and the error if there is one.
 * @param moment When, and which generation was seen.
 */
export function lifecycleConditions(
  conditions: readonly Condition[],
  { lifecycle, error }: {
    readonly lifecycle: Lifecycle;
    readonly error?: RolloutError | undefined;
  },
  moment: ConditionMoment,
): Condition[] {
  const { ready, also, message: usual } = WORDS[lifecycle];
  const reason = lifecycle === "Failed" ? error?.reason ?? "Failed" : lifecycle;
  const message = error?.message ?? usual;
  let list = setCondition(
    conditions,
    { type: READY, status: ready, reason, message },
    moment,
  );
  if (also === RECONCILING) {
    list = markReconciling(list, { reason, message }, moment);
  } else if (also === STALLED) {
    list = markStalled(list, { reason, message }, moment);
  } else {
    list = removeCondition(removeCondition(list, RECONCILING), STALLED);
  }
  return list;
}
