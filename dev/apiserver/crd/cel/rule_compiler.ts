import type { Environment } from "@marcbachmann/cel-js";
import type { OpenApiSchema, ValidationRule } from "@coracle/operator/internal";
import { followSchemaPath } from "../schema/schema_path.ts";
import type { CelType } from "./cel_types.ts";
import {
  compileErrorText,
  type CompileProblem,
  compileProblem,
} from "./compile_error_text.ts";
import { CelFailure } from "./cel_failure.ts";
import {
  chargeCosts,
  type ExpressionNode,
  literalProblems,
  matchAsGo,
  reservedNames,
  uniteSets,
  widenHas,
} from "./expression_tree.ts";

/** Maximum cost of one evaluation. */
const CALL_LIMIT = 1_000_000;

/** Message of an evaluation whose cost exceeds the limit. */
export const COST_EXCEEDED = "operation cancelled: actual cost limit exceeded";

/** Maximum cost of the evaluations of one validation. */
export const COST_BUDGET = 10_000_000;

/** Message of a validation whose cost exceeds the budget. */
export const OUT_OF_BUDGET =
  "validation failed due to running out of cost budget, no further validation rules will be run";

/** Maximum length of the result of a message expression in characters. */
const MAX_MESSAGE_CHARS = 5_120;

/** Trimmed result of a message expression; undefined if it is not usable as a message. */
export function usableMessage(result: unknown): string | undefined {
  const text = typeof result === "string" ? result.trim() : "";
  return text === "" || text.includes("\n") || text.length > MAX_MESSAGE_CHARS
    ? undefined
    : text;
}

/** Cost of the running evaluation so far. */
let spent = 0;
let lastSpent = 0;

/** Cost of the last evaluation of a program. */
export function lastCost(): number {
  return lastSpent;
}

function charge(cost: number): void {
  spent += cost;
  if (spent > CALL_LIMIT) throw new CelFailure(COST_EXCEEDED);
}

/** Runs a program with its own count of costs. */
function limited(run: () => unknown): unknown {
  const outer = spent;
  spent = 0;
  try {
    const value = run();
    // An operator may have absorbed the error.
    charge(0);
    return value;
  } finally {
    lastSpent = spent;
    spent = outer;
  }
}

/** Variables of a rule. */
export interface RuleVariables {
  readonly self: unknown;
  readonly oldSelf?: unknown;
}

/** Compiled expression. */
export type Program = (variables: RuleVariables) => unknown;

/** Compiled rule, or the error of a rule that does not compile. */
export interface CompiledRule {
  readonly rule: ValidationRule;
  /** Program of the rule; undefined if it does not compile. */
  readonly program?: Program | undefined;
  /** Compile error. */
  readonly error?: string | undefined;
  /** Program of the message expression; undefined if absent. */
  readonly message?: Program | undefined;
  readonly messageError?: string | undefined;
  /** Whether the rule is a transition rule, which uses `oldSelf`. */
  readonly usesOldSelf: boolean;
  /** Path of the field to report, relative to the node of the rule. */
  readonly fieldPath: string;
  /** Expression tree of the rule; undefined if it does not compile. */
  readonly tree?: unknown;
  /** Expression tree of the message; undefined if absent or it does not compile. */
  readonly messageTree?: unknown;
}

/** Compiles the rules of a schema node. */
export function compileNodeRules(
  schema: OpenApiSchema,
  type: CelType,
  environment: Environment,
): readonly CompiledRule[] {
  const rules = schema["x-kubernetes-validations"] as
    | readonly ValidationRule[]
    | undefined;
  if (!rules?.length) return [];
  const plain = environment.clone()
    .registerVariable("self", type.name)
    .registerVariable("oldSelf", type.name);
  const optional = environment.clone()
    .registerVariable("self", type.name)
    .registerVariable("oldSelf", `optional<${type.name}>`);
  return rules.filter(({ rule }) => rule.trim() !== "").map((rule) =>
    compileRule(rule, schema, rule.optionalOldSelf ? optional : plain)
  );
}

function compileRule(
  rule: ValidationRule,
  schema: OpenApiSchema,
  environment: Environment,
): CompiledRule {
  const field = followSchemaPath(rule.fieldPath ?? "", schema);
  const base = {
    rule,
    usesOldSelf: mentionsOldSelf(rule.rule),
    fieldPath: typeof field === "string" ? "" : field.path,
  };
  const compiled = compile(rule.rule, environment);
  if (typeof compiled === "string") {
    return { ...base, error: `compilation failed: ${compiled}` };
  }
  if (compiled.type !== "bool") {
    return { ...base, error: "cel expression must evaluate to a bool" };
  }
  const { program, tree } = compiled;
  const ready = { ...base, program, tree };
  if (!rule.messageExpression) return ready;
  const message = compile(rule.messageExpression, environment);
  if (typeof message === "string") {
    const messageError = `messageExpression compilation failed: ${message}`;
    return { ...ready, messageError };
  }
  if (message.type !== "string") {
    const messageError = "messageExpression must evaluate to a string";
    return { ...ready, messageError };
  }
  return { ...ready, message: message.program, messageTree: message.tree };
}

/** Compiled expression with its type. */
export interface Compiled {
  readonly program: (variables: object) => unknown;
  readonly type: string;
  readonly tree: unknown;
}

/** Compiles an expression; returns the texts of all errors if that fails. */
export function compile(
  source: string,
  environment: Environment,
): Compiled | string {
  const problem = (error: unknown) =>
    compileProblem(
      error,
      source,
      (name) =>
        environment.getDefinitions().functions
          .some((each) => each.name === name),
    );
  try {
    const parsed = environment.parse(source);
    widenHas(parsed.ast);
    const names = reservedNames(parsed.ast);
    for (const { node } of names) node.checkedType = anyType(environment);
    const { errors, type } = check(parsed, environment);
    const problems = [
      ...unknownInHas(source, environment, problem),
      ...errors.map(problem),
      ...names,
    ];
    if (problems.length === 0) problems.push(...literalProblems(parsed.ast));
    if (problems.length > 0) return compileErrorText(problems, source);
    uniteSets(parsed.ast);
    matchAsGo(parsed.ast);
    chargeCosts(parsed.ast, charge);
    return {
      program: (variables) => limited(() => parsed({ ...variables })),
      type,
      tree: parsed.ast,
    };
  } catch (error) {
    return compileErrorText([problem(error)], source);
  }
}

/** Number of errors after which the check of an expression ends. */
const MAX_ERRORS = 100;

/**
 * Type of an expression, with all errors. As in cel-go, a part with an error
 * counts as a value of any type in the enclosing expression.
 *
 * @param parsed The expression; nodes with an error get the type `dyn`.
 */
function check(
  parsed: ReturnType<Environment["parse"]>,
  environment: Environment,
): { readonly type: string; readonly errors: readonly TypeProblem[] } {
  const errors: TypeProblem[] = [];
  for (;;) {
    const { valid, type = "dyn", error } = parsed.check();
    if (valid) return { type, errors };
    const found = (error ?? {}) as TypeProblem;
    const { node } = found;
    const any = anyType(environment);
    // An error of a part has already been reported.
    if (node?.checkedType === any) return { type, errors };
    errors.push(found);
    if (!node || errors.length >= MAX_ERRORS) return { type, errors };
    node.checkedType = any;
  }
}

/**
 * Errors of unknown fields in `has()`, which the CEL library accepts but
 * Kubernetes rejects. cel-go reports the unknown field at the position of the
 * parenthesis.
 */
function unknownInHas(
  source: string,
  environment: Environment,
  problem: (error: unknown) => CompileProblem,
): readonly CompileProblem[] {
  const withoutHas = source.replace(/\bhas\(/g, "dyn(");
  if (withoutHas === source) return [];
  const { errors } = check(environment.parse(withoutHas), environment);
  return errors.filter(({ code }) => code === "no_such_key").map((error) => {
    const { node: { start = 0, end = 0 } = {} } = error;
    const [call] = /\bhas\(\s*$/.exec(source.slice(0, start)) ?? [];
    return call === undefined || !/^\s*\)/.test(source.slice(end))
      ? problem(error)
      : { ...problem(error), start: start - call.length + "has".length };
  });
}

/** Type error of the CEL library. */
interface TypeProblem {
  readonly code?: string | undefined;
  readonly node?: ExpressionNode | undefined;
}

/** Type `dyn`, as in the checked trees of the CEL library. */
function anyType(environment: Environment): unknown {
  const any = environment.parse("dyn(0)");
  any.check();
  return (any.ast as unknown as ExpressionNode).checkedType;
}

/** Whether the source uses the variable `oldSelf` outside of string literals and field names. */
function mentionsOldSelf(source: string): boolean {
  const code = source.replace(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/g, "''");
  return /(?<![\w.])oldSelf\b/.test(code);
}
