import type { OptionRules } from "../../core/api/options.ts";
import {
  compareConditions,
  type Condition,
  findCondition,
  type NewCondition,
} from "./condition.ts";

/** Condition that summarizes others. */
export interface ConditionSummary {
  /** Type of the summary, such as Ready. */
  readonly target: string;
  /**
   * Types to merge; among conditions of equal severity the first in this list
   * wins. By default all types are merged.
   */
  readonly of?: readonly string[] | undefined;
  /**
   * Abnormal types: those that report a problem while True, such as Stalled.
   *
   * @default {[]}
   */
  readonly abnormal?: readonly string[] | undefined;
  /**
   * Whether only conditions of the newest observed generation are merged.
   *
   * @default {false}
   */
  readonly latestGenerationOnly?: boolean | undefined;
  /**
   * Whether the message counts the completed steps: `2 of 3 completed`.
   *
   * @default {false}
   */
  readonly stepCounter?: boolean | undefined;
  /**
   * Types to which the counts are restricted: the message only has a count
   * while all merged conditions are of these types. By default it always has.
   */
  readonly countOnlyIf?: readonly string[] | undefined;
}

export const SUMMARY_RULES: OptionRules<ConditionSummary> = {
  target: "name",
  of: "strings?",
  abnormal: "strings?",
  latestGenerationOnly: "boolean?",
  stepCounter: "boolean?",
  countOnlyIf: "strings?",
};

/**
 * Merges the conditions of an object into one of the target type. A condition
 * of the target type itself is ignored.
 *
 * The most severe condition wins: an abnormal one that is True, then a normal
 * one that is False, then those without a problem, and Unknown last.
 *
 * @returns The summary, or undefined if there is no condition to merge.
 */
export function summarizeConditions(
  conditions: readonly Condition[],
  summary: ConditionSummary,
): NewCondition | undefined {
  const { target, of, abnormal = [], latestGenerationOnly } = summary;
  let members = conditions.filter(({ type }) =>
    type !== target && (of?.includes(type) ?? true)
  );
  if (latestGenerationOnly) {
    const newest = Math.max(...members.map(generationOf));
    members = members.filter((member) => generationOf(member) === newest);
  }
  const severities = members.map((member) => severity(member, abnormal));
  const worst = Math.min(...severities);
  const group = members.filter((_, index) => severities[index] === worst)
    .sort(compareConditions);
  const first = of?.find((type) => findCondition(group, type) !== undefined);
  const lead = group.find(({ type }) => type === first) ?? group[0];
  if (lead === undefined) return undefined;
  const { type, status, reason, message } = lead;
  const isInverted = abnormal.includes(type) !== abnormal.includes(target);
  return {
    type: target,
    status: isInverted ? INVERTED[status] : status,
    reason,
    message: countText(members, summary) ?? message,
  };
}

function generationOf({ observedGeneration = 0 }: Condition): number {
  return observedGeneration;
}

/** Severity of a condition; 0 is the most severe. */
function severity(
  { type, status }: Condition,
  abnormal: readonly string[],
): number {
  if (status === "Unknown") return 4;
  if (status === "True") return abnormal.includes(type) ? 0 : 2;
  return abnormal.includes(type) ? 3 : 1;
}

const INVERTED = { True: "False", False: "True", Unknown: "Unknown" } as const;

/** Count of the completed steps, if it is asked for. */
function countText(
  members: readonly Condition[],
  { of, abnormal = [], stepCounter, countOnlyIf }: ConditionSummary,
): string | undefined {
  const isCounted = countOnlyIf === undefined ||
    members.every(({ type }) => countOnlyIf.includes(type));
  if (!stepCounter || !isCounted) return undefined;
  const done = members.filter((member) => severity(member, abnormal) === 2);
  const steps = of ?? countOnlyIf ?? members;
  return `${done.length} of ${steps.length} completed`;
}
