import type { OptionRules } from "../../core/api/options.ts";
import {
  compareConditions,
  type Condition,
  findCondition,
  removeCondition,
  sameState,
} from "./condition.ts";

interface RebaseOptions {
  /** Current conditions on the server. */
  readonly latest: readonly Condition[];
  readonly owned?: readonly string[] | undefined;
  readonly force?: boolean | undefined;
}

export const REBASE_RULES: OptionRules<
  Pick<RebaseOptions, "owned" | "force">
> = { owned: "strings?", force: "boolean?" };

/** Error for a condition that another writer has changed as well. */
export class ConditionConflictError extends Error {
  /** Type of the condition. */
  readonly conditionType: string;

  /**
   * Creates the error.
   *
   * @param conditionType The type of the condition.
   * @param why The change by the other writer.
   */
  constructor(conditionType: string, why: string) {
    super(
      `Cannot merge the condition "${conditionType}": another writer ${why}`,
    );
    this.name = "ConditionConflictError";
    this.conditionType = conditionType;
  }
}

/**
 * Applies the changes from `before` to `after` to the `latest` list, which
 * other writers may have changed: a three-way merge by condition type.
 *
 * Conditions that were not changed are preserved. A condition that already has
 * the desired value keeps its transition time.
 *
 * @throws {ConditionConflictError} If another writer has changed the same
 * condition to a different value, and it is not owned.
 */
export function rebaseConditions(
  before: readonly Condition[],
  after: readonly Condition[],
  options: RebaseOptions,
): Condition[] {
  const { latest, owned = [], force = false } = options;
  let result = [...latest];
  const put = (condition: Condition) => {
    const there = findCondition(result, condition.type);
    const kept = there !== undefined && sameState(there, condition)
      ? { ...condition, lastTransitionTime: there.lastTransitionTime }
      : condition;
    result = [...removeCondition(result, condition.type), kept];
  };
  for (const wanted of after) {
    const old = findCondition(before, wanted.type);
    if (old !== undefined && deepEqual(old, wanted)) continue;
    const there = findCondition(latest, wanted.type);
    if (force || owned.includes(wanted.type)) put(wanted);
    else if (there === undefined) {
      if (old !== undefined) {
        throw new ConditionConflictError(wanted.type, "deleted it");
      }
      put(wanted);
    } else if (old !== undefined && deepEqual(there, old)) put(wanted);
    else if (!sameState(there, wanted)) {
      throw new ConditionConflictError(
        wanted.type,
        old === undefined ? "added it" : "changed it",
      );
    }
  }
  for (const old of before) {
    if (findCondition(after, old.type) !== undefined) continue;
    const there = findCondition(latest, old.type);
    const ours = force || owned.includes(old.type);
    if (there !== undefined && !ours && !sameState(there, old)) {
      throw new ConditionConflictError(old.type, "changed it");
    }
    result = removeCondition(result, old.type);
  }
  return result.sort(compareConditions);
}

function deepEqual(a: Condition, b: Condition): boolean {
  return sameState(a, b) && a.observedGeneration === b.observedGeneration &&
    a.lastTransitionTime === b.lastTransitionTime;
}
