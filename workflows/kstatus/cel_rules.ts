import { loadModule } from "../../core/clock.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../core/api/options.ts";
import {
  currentStatus,
  failedStatus,
  inProgressStatus,
  type StatusRule,
} from "./status_rules.ts";
import { errorMessage } from "../../core/error_text.ts";

type CelHealthCheck = Parameters<typeof celRules>[0][number];

const RULES: OptionRules<CelHealthCheck> = {
  group: "string",
  kind: "name?",
  inProgress: "name?",
  failed: "name?",
  current: "string",
};

/**
 * Creates rules for {@linkcode statusOf} from CEL expressions. The first of
 * `inProgress`, `failed` and `current` that is true determines the status; an
 * object for which none is true is in progress. The fields of the object are
 * variables: `status.phase == "Done"`. If an expression fails, for example
 * because a field is missing, the status is Unknown.
 *
 * @param checks The expressions, at most once for each kind and each group:
 * `group` is empty for the core group, and without a `kind` the expressions are
 * for all kinds of the group.
 * @throws {TypeError} If `group` or `current` is missing, or an option is unknown
 * or no string.
 * @throws {RangeError} If there are two for the same kind or group, or a string
 * is empty.
 * @throws {SyntaxError} If an expression is invalid.
 * @throws {Error} If `@marcbachmann/cel-js` is not installed, which npm installs
 * only when asked to: `npm install @marcbachmann/cel-js@^8`.
 *
 * @example A kind of another operator
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
  checks: readonly {
    readonly group: string;
    readonly kind?: string | undefined;
    readonly inProgress?: string | undefined;
    readonly failed?: string | undefined;
    readonly current: string;
  }[],
): Promise<ReadonlyMap<string, StatusRule>> {
  const rules = new Map<string, StatusRule>();
  checkOption(checks, "array", { name: "checks", subject: "celRules()" });
  for (const check of checks) {
    checkOptions(check, RULES, "a health check");
    const name = `${check.group}/${check.kind ?? "*"}`;
    if (check.current.trim() === "") {
      throw new TypeError(
        `Cannot create a health check for ${name}: "current" must be an expression: received ${
          JSON.stringify(check.current)
        }`,
      );
    }
    if (rules.has(name)) {
      throw new RangeError(
        `Cannot create health checks: each kind and group can have only one: received two for ${name}`,
      );
    }
    rules.set(name, await celRule(check));
  }
  return rules;
}

async function celRule(check: CelHealthCheck): Promise<StatusRule> {
  const message = "By its expression";
  const statuses = ([
    [check.inProgress, inProgressStatus("InProgress", message)],
    [check.failed, failedStatus("Failed", message)],
    [check.current, currentStatus(message)],
  ] as const).filter(([source]) => source !== undefined);
  const predicates = await celPredicates(statuses.map(([source]) => source!));
  return (object) => {
    try {
      const index = predicates.findIndex((predicate) =>
        predicate(object as Record<string, unknown>)
      );
      return statuses[index]?.[1] ??
        inProgressStatus("InProgress", "None of its expressions is true");
    } catch (error) {
      const message = firstLine(error);
      return { status: "Unknown", reason: "ExpressionFailed", message };
    }
  };
}

export function firstLine(error: unknown): string {
  return errorMessage(error).split("\n")[0]!;
}

/** Compiled CEL expression with a boolean result. */
export type CelPredicate = (
  variables: Readonly<Record<string, unknown>>,
) => boolean;

const LONGEST_EXPRESSION = 10_000;

/**
 * Compiles expressions of the Common Expression Language, as users write them
 * into custom resources. Expressions can use all variables of an evaluation; a
 * missing field is an error unless it is tested with `has(…)`.
 *
 * The first call loads `@marcbachmann/cel-js`, which takes tens of milliseconds.
 *
 * @throws {SyntaxError} If an expression is too long or invalid.
 * @throws {Error} If the package is not installed.
 */
export async function celPredicates(
  sources: readonly string[],
): Promise<readonly CelPredicate[]> {
  // Bundlers leave an import out whose failure is handled here.
  const { Environment } = await loadModule(
    import("@marcbachmann/cel-js").catch(notInstalled),
  );
  const environment = new Environment({ unlistedVariablesAreDyn: true });
  return sources.map((source) => {
    if (source.length > LONGEST_EXPRESSION) {
      throw new SyntaxError(
        `Cannot compile a CEL expression: it must be at most ${LONGEST_EXPRESSION} characters long: received ${source.length}`,
      );
    }
    const text = JSON.stringify(source.slice(0, 200));
    let program: (variables: Record<string, unknown>) => unknown;
    try {
      program = environment.parse(source);
    } catch (error) {
      throw new SyntaxError(
        `Cannot compile a CEL expression: ${
          firstLine(error)
        }: received ${text}`,
        { cause: error },
      );
    }
    return (variables) => {
      const value = program(inCel(variables) as Record<string, unknown>);
      if (typeof value === "boolean") return value;
      throw new TypeError(
        `Cannot evaluate a CEL expression: the result must be true or false: received ${typeof value} from ${text}`,
      );
    };
  });
}

function notInstalled(cause: unknown): never {
  throw new Error(
    'Cannot compile a CEL expression: the package of its language is optional and must be installed: run "npm install @marcbachmann/cel-js@^8"',
    { cause },
  );
}

/** Converts a value to CEL, where whole numbers are integers. */
function inCel(value: unknown): unknown {
  if (Number.isSafeInteger(value)) return BigInt(value as number);
  if (Array.isArray(value)) return value.map(inCel);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, inCel(inner)]),
  );
}
