import { diffText, type SpecDiff } from "./change_map.ts";
import { type Pending, readyCondition } from "./lifecycle_conditions.ts";
import { lifecycleOf, type PhasedObject } from "./rollout.ts";

/** Whether an earlier pass has told of the present generation of an object. */
export function isSeenBefore({ metadata, status }: PhasedObject): boolean {
  const ready = readyCondition(status?.conditions);
  return ready?.observedGeneration === metadata.generation;
}

/**
 * What is to be said of a change while a pass begins, before it is known how far
 * the pass gets. As long as the change goes on as before, the words of the last
 * pass stay: conditions must not flicker.
 *
 * @param object The object with its status.
 * @param change The change that is asked for, if it has not begun yet.
 */
export function pendingChange(
  object: PhasedObject,
  change: SpecDiff | undefined,
): Pending | undefined {
  const { lifecycle, conditions } = object.status ?? {};
  if (isSeenBefore(object) && lifecycle === lifecycleOf(object)) {
    const { status, reason, message = "" } = readyCondition(conditions) ?? {};
    if (status === "False") return { reason, message };
  }
  return change && { reason: "SpecChanged", message: diffText(change) };
}
