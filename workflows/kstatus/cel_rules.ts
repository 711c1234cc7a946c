import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../core/api/option_rules.ts";
import { type CelPredicate, celPredicates } from "./cel_expression.ts";
import {
  current,
  failed,
  inProgress,
  type ObjectStatus,
  type StatusRule,
} from "./object_status.ts";

/** How objects of one kind, or of a whole group, tell their state, in CEL. */
export interface CelHealthCheck {
  /** The API group; empty for the core group. */
  readonly group: string;
  /**
   * The kind.
   *
   * @default {all kinds of the group}
   */
  readonly kind?: string | undefined;
  /**
   * True while somebody works on the object; asked first.
   *
   * @default {never}
   */
  readonly inProgress?: string | undefined;
  /**
   * True when nobody will get it there without help.
   *
   * @default {never}
   */
  readonly failed?: string | undefined;
  /** True when the object is what it asks for. */
  readonly current: string;
}

const RULES: OptionRules<CelHealthCheck> = {
  group: "string",
  kind: "name?",
  inProgress: "name?",
  failed: "name?",
  current: "string",
};

/**
 * Makes rules for {@linkcode statusOf} from CEL expressions: the first of
 * `inProgress`, `failed` and `current` that is true counts, and an object of
 * which none is true is in progress. The fields of the object are the
 * variables: `status.phase == "Done"`. An expression that fails, for example
 * since a field is missing, makes the state Unknown.
 *
 * @param checks The expressions, at most once for each kind and each group.
 * @throws {TypeError} If `group` or `current` is missing, or an option is unknown
 * or no text.
 * @throws {RangeError} If there are two for the same, or a text is empty.
 * @throws {SyntaxError} If an expression cannot be read.
 *
 * @example A kind of somebody else's
 * ```ts
 * import { celRules, statusOf } from "@coracle/operator/workflows";
 *
 * const rules = await celRules([{
 *   group: "example.com",
 *   kind: "Gadget",
 *   failed: `status.phase == "Broken"`,
 *   current: `status.phase == "Running"`,
 * }]);
 * const gadget = {
 *   apiVersion: "example.com/v1",
 *   kind: "Gadget",
 *   metadata: { name: "one" },
 *   status: { phase: "Broken" },
 * };
 * if (statusOf(gadget, { rules }).status !== "Failed") throw new Error("Unexpected");
 * ```
 */
export async function celRules(
  checks: readonly CelHealthCheck[],
): Promise<ReadonlyMap<string, StatusRule>> {
  const rules = new Map<string, StatusRule>();
  checkOption(checks, "array", { name: "checks", subject: "celRules()" });
  for (const check of checks) {
    checkOptions(check, RULES, "a health check");
    const name = `${check.group}/${check.kind ?? "*"}`;
    if (check.current.trim() === "") {
      throw new TypeError(
        `Cannot make a health check for ${name}: "current" must be an expression: received ${
          JSON.stringify(check.current)
        }`,
      );
    }
    if (rules.has(name)) {
      throw new RangeError(
        `Cannot make health checks: each kind and group can have only one: received two for ${name}`,
      );
    }
    rules.set(name, await celRule(check));
  }
  return rules;
}

type Verdict = readonly [predicate: CelPredicate, status: ObjectStatus];

async function celRule(check: CelHealthCheck): Promise<StatusRule> {
  const told: readonly (readonly [string | undefined, ObjectStatus])[] = [
    [check.inProgress, inProgress("InProgress", "By its expression")],
    [check.failed, failed("Failed", "By its expression")],
    [check.current, current("By its expression")],
  ];
  const given = told.filter(([source]) => source !== undefined);
  const predicates = await celPredicates(
    given.map(([source]) => source as string),
  );
  const verdicts: readonly Verdict[] = predicates.map((predicate, index) => [
    predicate,
    given[index]![1],
  ]);
  return (object) => verdictOf(verdicts, object as Record<string, unknown>);
}

function verdictOf(
  verdicts: readonly Verdict[],
  object: Readonly<Record<string, unknown>>,
): ObjectStatus {
  try {
    return verdicts.find(([isSo]) => isSo(object))?.[1] ??
      inProgress("InProgress", "None of its expressions is true");
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return {
      status: "Unknown",
      reason: "ExpressionFailed",
      message: message.split("\n")[0] ?? "",
    };
  }
}
