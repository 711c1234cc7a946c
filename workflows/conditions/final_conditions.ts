import {
  type Condition,
  type ConditionMoment,
  findCondition,
  READY,
  sameState,
  setCondition,
} from "./condition.ts";
import { isOutcome, withoutUrlQueries } from "./outcome.ts";
import { errorText } from "./pass_step.ts";
import { PROGRESSING_WITH_RETRY } from "./settle.ts";

/** Has Ready speak for an error that no condition of its own tells of. */
export function withFailure(
  conditions: readonly Condition[],
  error: unknown,
  moment: ConditionMoment,
): readonly Condition[] {
  const ready = findCondition(conditions, READY);
  if (error === undefined || ready?.reason !== PROGRESSING_WITH_RETRY) {
    return conditions;
  }
  const reason = isOutcome(error) ? error.reason : "Failed";
  return setCondition(
    conditions,
    { type: READY, status: "False", reason, message: errorText(error) },
    moment,
  );
}

/**
 * The conditions as they are written: without what URLs in them may hide, and
 * with the time of old where, since they were written last, the pass has all in
 * all changed nothing.
 */
export function finalConditions(
  before: readonly Condition[],
  after: readonly Condition[],
): Condition[] {
  return after.map((condition) => {
    const old = findCondition(before, condition.type);
    if (old !== undefined && sameState(old, condition)) {
      return { ...condition, lastTransitionTime: old.lastTransitionTime };
    }
    const message = withoutUrlQueries(condition.message);
    const clean = { ...condition, message };
    return old !== undefined && sameState(old, clean)
      ? { ...clean, lastTransitionTime: old.lastTransitionTime }
      : clean;
  });
}
