import type { OpenApiSchema, ValidationRule } from "@coracle/operator/internal";
import { type CelType, optionalOf } from "../../cel/cel_type.ts";
import { Environment } from "../../cel/environment.ts";
import type { Program } from "../../cel/evaluator.ts";
import { type ExpressionNode, walk } from "../../cel/expression.ts";
import { followSchemaPath } from "../schema/schema_path.ts";
import { schemaTypeText } from "./schema_values.ts";

/** Maximum cost of one evaluation. */
export const CALL_LIMIT = 1_000_000;

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
  /** Expression of the rule; undefined if it does not compile. */
  readonly tree?: ExpressionNode | undefined;
  /** Expression of the message; undefined if absent or it does not compile. */
  readonly messageTree?: ExpressionNode | undefined;
}

/** Compiles the rules of a schema node. */
export function compileNodeRules(
  schema: OpenApiSchema,
  type: CelType,
): readonly CompiledRule[] {
  const rules = (schema["x-kubernetes-validations"] ??
    []) as readonly ValidationRule[];
  const typeText = schemaTypeText(type);
  let plain: Environment | undefined;
  let optional: Environment | undefined;
  return rules.filter(({ rule }) => rule.trim() !== "").map((rule) => {
    const environment = rule.optionalOldSelf
      ? optional ??= new Environment({
        variables: { self: type, oldSelf: optionalOf(type) },
        typeText,
      })
      : plain ??= new Environment({
        variables: { self: type, oldSelf: type },
        typeText,
      });
    return compileRule(rule, schema, environment);
  });
}

function compileRule(
  rule: ValidationRule,
  schema: OpenApiSchema,
  environment: Environment,
): CompiledRule {
  const field = followSchemaPath(rule.fieldPath ?? "", schema);
  const base = {
    rule,
    usesOldSelf: false,
    fieldPath: typeof field === "string" ? "" : field.path,
  };
  const compiled = environment.compile(rule.rule);
  if ("error" in compiled) return { ...base, error: compiled.error };
  if (compiled.type.kind !== "bool") {
    return { ...base, error: "cel expression must evaluate to a bool" };
  }
  const { program, root: tree } = compiled;
  const ready = { ...base, usesOldSelf: usesOldSelf(tree), program, tree };
  if (!rule.messageExpression) return ready;
  const message = environment.compile(rule.messageExpression);
  if ("error" in message) {
    const messageError = message.error.startsWith("program")
      ? message.error.replace("program", "messageExpression")
      : `messageExpression ${message.error}`;
    return { ...ready, messageError };
  }
  if (message.type.kind !== "string") {
    const messageError = "messageExpression must evaluate to a string";
    return { ...ready, messageError };
  }
  return { ...ready, message: message.program, messageTree: message.root };
}

/** Whether an expression uses the variable `oldSelf`. */
function usesOldSelf(root: ExpressionNode): boolean {
  let found = false;
  walk(root, (node) => {
    found ||= node.kind === "ident" && node.name === "oldSelf";
  });
  return found;
}
