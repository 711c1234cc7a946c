import type { OptionRules } from "../../core/api/options.ts";
import {
  compareConditions,
  type Condition,
  type NewCondition,
} from "./condition.ts";

/** Object whose conditions are merged. */
export interface ConditionSource {
  /** Kind of the object, for `sourceReference`. */
  readonly kind?: string | undefined;
  /** Name of the object. */
  readonly name: string;
  /** Conditions of the object. */
  readonly conditions: readonly Condition[];
}

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
   * Whether the message counts the objects with the same status: `2 of 3
   * Ready`.
   *
   * @default {false}
   */
  readonly counter?: boolean | undefined;
  /**
   * Types to which the counts are restricted: the message only has a count
   * while all merged conditions are of these types. By default it always has.
   */
  readonly countOnlyIf?: readonly string[] | undefined;
  /**
   * Whether the reason names the object: `Down @ Pod/web`.
   *
   * @default {false}
   */
  readonly sourceReference?: boolean | undefined;
}

/** Options for merging conditions into one. */
export type MergeOptions = Omit<ConditionSummary, "target">;

/** Validation rules of a {@linkcode ConditionSummary}. */
export const SUMMARY_RULES: OptionRules<ConditionSummary> = {
  target: "name",
  of: "strings?",
  abnormal: "strings?",
  latestGenerationOnly: "boolean?",
  stepCounter: "boolean?",
  counter: "boolean?",
  countOnlyIf: "strings?",
  sourceReference: "boolean?",
};

interface Member {
  readonly condition: Condition;
  readonly source: ConditionSource;
  readonly abnormal: boolean;
}

/**
 * Merges the conditions of one object into one of the target type. A condition
 * of the target type itself is ignored.
 *
 * The most severe condition wins: an abnormal one that is True, then a normal
 * one that is False, then those without a problem, and Unknown last.
 *
 * @returns The summary, or undefined if there is no condition to merge.
 */
export function summarizeConditions(
  conditions: readonly Condition[],
  target: string,
  options: MergeOptions = {},
): NewCondition | undefined {
  const rest = conditions.filter((condition) => condition.type !== target);
  return aggregateConditions([{ name: "", conditions: rest }], target, options);
}

/**
 * Copies a condition of another object under the target type; `otherwise` is
 * used if the object has no such condition.
 */
export function mirrorCondition(
  source: ConditionSource,
  target: string,
  options: {
    readonly from?: string | undefined;
    readonly otherwise?: Omit<NewCondition, "type"> | undefined;
  } = {},
): NewCondition | undefined {
  const { from = "Ready", otherwise } = options;
  const found = source.conditions.find(({ type }) => type === from);
  if (found !== undefined) {
    const { status, reason, message } = found;
    return { type: target, status, reason, message };
  }
  return otherwise === undefined ? undefined : { ...otherwise, type: target };
}

/** Merges the conditions of several objects into one. */
export function aggregateConditions(
  sources: readonly ConditionSource[],
  target: string,
  options: MergeOptions = {},
): NewCondition | undefined {
  const { of, abnormal = [], sourceReference = false } = options;
  const members = inScope(sources, options);
  if (members.length === 0) return undefined;
  const group = worstGroup(members);
  const first = of?.find((type) =>
    group.some(({ condition }) => condition.type === type)
  );
  const lead = group.find(({ condition }) => condition.type === first) ??
    group[0]!;
  const { status, type } = lead.condition;
  return {
    type: target,
    status: lead.abnormal === abnormal.includes(target)
      ? status
      : INVERTED[status],
    reason: sourceReference ? reasonWithSource(lead) : lead.condition.reason,
    message: countText(members, group, { sources, options, type }) ??
      lead.condition.message,
  };
}

function inScope(
  sources: readonly ConditionSource[],
  { of, abnormal = [], latestGenerationOnly = false }: MergeOptions,
): Member[] {
  let members = sources.flatMap((source) =>
    source.conditions
      .filter(({ type }) => of === undefined || of.includes(type))
      .map((condition) => ({
        condition,
        source,
        abnormal: abnormal.includes(condition.type),
      }))
  );
  if (latestGenerationOnly) {
    const generation = ({ condition }: Member) =>
      condition.observedGeneration ?? 0;
    const newest = Math.max(0, ...members.map(generation));
    members = members.filter((member) => generation(member) === newest);
  }
  return members;
}

/** Severity of a condition; 0 is the most severe. */
function severity({ condition, abnormal }: Member): number {
  if (condition.status === "Unknown") return 4;
  if (condition.status === "True") return abnormal ? 0 : 2;
  return abnormal ? 3 : 1;
}

function worstGroup(members: readonly Member[]): Member[] {
  const worst = Math.min(...members.map(severity));
  return members
    .filter((member) => severity(member) === worst)
    .sort((a, b) =>
      compareConditions(a.condition, b.condition) ||
      (a.source.name < b.source.name ? -1 : 1)
    );
}

const INVERTED = { True: "False", False: "True", Unknown: "Unknown" } as const;

function reasonWithSource({ condition, source }: Member): string {
  if (condition.reason.includes("@")) return condition.reason;
  const name = source.kind ? `${source.kind}/${source.name}` : source.name;
  return `${condition.reason} @ ${name}`;
}

function countText(
  members: readonly Member[],
  group: readonly Member[],
  context: {
    readonly sources: readonly ConditionSource[];
    readonly options: MergeOptions;
    readonly type: string;
  },
): string | undefined {
  const { sources, options, type } = context;
  const { countOnlyIf, stepCounter = false, counter = false } = options;
  const isCounted = countOnlyIf === undefined ||
    members.every(({ condition }) => countOnlyIf.includes(condition.type));
  if (!isCounted) return undefined;
  if (stepCounter) {
    const done = members.filter((member) => severity(member) === 2).length;
    const steps = (options.of ?? countOnlyIf ?? members).length;
    return `${done} of ${steps} completed`;
  }
  return counter ? `${group.length} of ${sources.length} ${type}` : undefined;
}
