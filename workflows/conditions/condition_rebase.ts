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
  const types = new Set([...after, ...before].map(({ type }) => type));
  for (const type of types) {
    const [old, wanted, there] = [before, after, latest].map((list) =>
      findCondition(list, type)
    );
    if (wanted !== undefined && isSame(old, wanted)) continue;
    const isOurs = force || owned.includes(type);
    const hasChanged = wanted === undefined
      ? there !== undefined && !sameState(there, old!)
      : !isSame(there, old);
    if (hasChanged && !isOurs) {
      // Another writer may have made the same change.
      if (wanted && there && sameState(there, wanted)) continue;
      throw new ConditionConflictError(
        type,
        there === undefined ? "deleted it" : old ? "changed it" : "added it",
      );
    }
    result = removeCondition(result, type);
    if (wanted !== undefined) {
      const kept = there && sameState(there, wanted) ? there : wanted;
      const { lastTransitionTime } = kept;
      result.push({ ...wanted, lastTransitionTime });
    }
  }
  return result.sort(compareConditions);
}

/** Whether two conditions are equal, times and generations included. */
function isSame(a: Condition | undefined, b: Condition | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return sameState(a, b) && a.observedGeneration === b.observedGeneration &&
    a.lastTransitionTime === b.lastTransitionTime;
}
