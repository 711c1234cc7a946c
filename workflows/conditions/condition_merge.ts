import { checkOptions, type OptionRules } from "../../core/api/options.ts";
import {
  compareConditions,
  type Condition,
  type NewCondition,
} from "./condition.ts";

/** Whose condition it is, for merges over several objects. */
export interface ConditionSource {
  /**
   * The kind of the object.
   *
   * @default {not told}
   */
  readonly kind?: string | undefined;
  /** The name of the object. */
  readonly name: string;
  /** The conditions of the object. */
  readonly conditions: readonly Condition[];
}

/** How conditions become one. */
export interface MergeOptions {
  /**
   * Only these types count; the earlier ones speak first among equals.
   *
   * @default {all}
   */
  readonly of?: readonly string[] | undefined;
  /**
   * The types for which True is the bad news, such as Stalled.
   *
   * @default {none}
   */
  readonly abnormal?: readonly string[] | undefined;
  /**
   * Whether only what was observed of the newest generation counts.
   *
   * @default {false}
   */
  readonly latestGenerationOnly?: boolean | undefined;
  /**
   * Whether the message counts the steps that are done: `2 of 3 completed`.
   *
   * @default {false}
   */
  readonly stepCounter?: boolean | undefined;
  /**
   * Whether the message counts the objects that agree: `2 of 3 Ready`.
   *
   * @default {false}
   */
  readonly counter?: boolean | undefined;
  /**
   * Counts are only told while every condition in scope is one of these.
   *
   * @default {always}
   */
  readonly countOnlyIf?: readonly string[] | undefined;
  /**
   * Whether the reason names the object that it is from: `Down @ Pod/web`.
   *
   * @default {false}
   */
  readonly sourceReference?: boolean | undefined;
}

/** What the options of a summary must be. */
export const MERGE_RULES: OptionRules<MergeOptions> = {
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
 * What the conditions of one object come to, said by one condition of the
 * target type. The target itself is not looked at.
 *
 * The worst news wins: something abnormal that is True, then something normal
 * that is False, then what is as it should be, and Unknown last.
 *
 * @param conditions Those of the object.
 * @param target The type to make, such as Ready.
 * @returns The summary, or undefined if no condition is in scope.
 * @throws {TypeError | RangeError} If an option is unknown or of another type.
 *
 * @example One failure speaks for all
 * ```ts
 * import { setCondition, summarize } from "@coracle/operator/workflows";
 *
 * const moment = { now: 0 };
 * let conditions = setCondition(
 *   [],
 *   { type: "Stored", status: "True", reason: "Done" },
 *   moment,
 * );
 * conditions = setCondition(
 *   conditions,
 *   { type: "FetchFailed", status: "True", reason: "Unreachable" },
 *   moment,
 * );
 * const ready = summarize(conditions, "Ready", { abnormal: ["FetchFailed"] });
 * if (ready?.status !== "False" || ready.reason !== "Unreachable") {
 *   throw new Error("Unexpected summary");
 * }
 * ```
 */
export function summarizeConditions(
  conditions: readonly Condition[],
  target: string,
  options: MergeOptions = {},
): NewCondition | undefined {
  checkOptions(options, MERGE_RULES, "summarize()");
  const rest = conditions.filter((condition) => condition.type !== target);
  return merge([{ name: "", conditions: rest }], target, options);
}

/**
 * What the conditions of several objects come to.
 *
 * @returns The merged condition, or undefined if none is in scope.
 * @throws {TypeError | RangeError} If an option is unknown or of another type.
 */
export function aggregateConditions(
  sources: readonly ConditionSource[],
  target: string,
  options: MergeOptions = {},
): NewCondition | undefined {
  checkOptions(options, MERGE_RULES, "aggregateConditions()");
  return merge(sources, target, options);
}

/**
 * Copies another object's condition under the target type.
 *
 * @param source The object to look at.
 * @param target The type to make.
 * @param options `from` is the type to copy (Ready by default); `otherwise` is
 * said when it is not there.
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

function merge(
  sources: readonly ConditionSource[],
  target: string,
  options: MergeOptions,
): NewCondition | undefined {
  const { of, abnormal = [], sourceReference = false } = options;
  const members = inScope(sources, options);
  if (members.length === 0) return undefined;
  const group = worstGroup(members);
  const lead = leadOf(group, of);
  const { status, type } = lead.condition;
  return {
    type: target,
    status: lead.abnormal === abnormal.includes(target)
      ? status
      : inverted(status),
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

/** The order in which groups of conditions are heard; the least is worst. */
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

function leadOf(group: readonly Member[], of?: readonly string[]): Member {
  for (const type of of ?? []) {
    const found = group.find(({ condition }) => condition.type === type);
    if (found !== undefined) return found;
  }
  return group[0]!;
}

function inverted(status: Condition["status"]): Condition["status"] {
  if (status === "Unknown") return status;
  return status === "True" ? "False" : "True";
}

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
  const told = countOnlyIf === undefined ||
    members.every(({ condition }) => countOnlyIf.includes(condition.type));
  if (!told) return undefined;
  if (stepCounter) {
    const done = members.filter((member) => severity(member) === 2).length;
    const steps = (options.of ?? countOnlyIf ?? members).length;
    return `${done} of ${steps} completed`;
  }
  return counter ? `${group.length} of ${sources.length} ${type}` : undefined;
}
