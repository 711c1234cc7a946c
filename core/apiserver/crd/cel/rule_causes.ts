import type { StatusCause } from "../../../api/api_error.ts";
import type { ValidationRule } from "../../../crd/crd_manifest.ts";
import type { OpenApiSchema } from "../../../patch/schema.ts";
import { goQuote } from "../../go_value.ts";
import { fieldError } from "../../status.ts";
import { childPath, keyPath } from "../field_path.ts";
import { baseEnvironment } from "./cel_environment.ts";
import { hasRules } from "./cel_library.ts";
import { CelTypes } from "./cel_types.ts";
import { type CompiledRule, compileNodeRules } from "./rule_compiler.ts";

/** Compiles the rules of a definition, node by node. */
export interface RuleChecker {
  /** What is wrong with the rules of a node. */
  check(
    schema: OpenApiSchema,
    path: string,
    uncorrelatable: string | undefined,
  ): StatusCause[];
  /** The checker below, for a node that may have rules. */
  property(schema: OpenApiSchema, name: string): RuleChecker | undefined;
  values(schema: OpenApiSchema): RuleChecker | undefined;
  items(schema: OpenApiSchema): RuleChecker | undefined;
}

/** A checker for a structural schema; undefined if it has no rules. */
export function ruleChecker(schema: OpenApiSchema): RuleChecker | undefined {
  if (!hasRules(schema)) return undefined;
  const environment = baseEnvironment().clone();
  const types = new CelTypes(environment);
  types.typeOf(schema, true);
  const below = (inner: OpenApiSchema) =>
    types.typeOf(inner) === undefined ? undefined : checker;
  const checker: RuleChecker = {
    check(node, path, uncorrelatable) {
      const type = types.typeOf(node);
      if (type === undefined) return [];
      const compiled = compileNodeRules(node, type, environment);
      return compiled.flatMap((one, index) =>
        ruleCauses(
          one,
          keyPath(childPath(path, "x-kubernetes-validations"), index),
          uncorrelatable,
        )
      );
    },
    property: below,
    values: below,
    items: below,
  };
  return checker;
}

function ruleCauses(
  { rule, error, messageError, usesOldSelf }: CompiledRule,
  path: string,
  uncorrelatable: string | undefined,
): StatusCause[] {
  const causes: StatusCause[] = [];
  const wrong = (name: string, why: string) =>
    causes.push({
      reason: "FieldValueInvalid",
      message: `Invalid value: ${ruleText(rule)}: ${why}`,
      field: childPath(path, name),
    });
  if (error !== undefined) wrong("rule", error);
  if (messageError !== undefined) wrong("messageExpression", messageError);
  if (usesOldSelf && uncorrelatable !== undefined) {
    causes.push(fieldError.invalid(
      childPath(path, "rule"),
      rule.rule,
      `oldSelf cannot be used on the uncorrelatable portion of the schema within ${uncorrelatable}`,
    ));
  } else if (!usesOldSelf && rule.optionalOldSelf !== undefined) {
    causes.push(fieldError.invalid(
      childPath(path, "optionalOldSelf"),
      rule.optionalOldSelf,
      "may not be set if oldSelf is not used in rule",
    ));
  }
  return causes;
}

/** A rule as Go prints it. */
function ruleText(rule: ValidationRule): string {
  const { message = "", messageExpression = "", fieldPath = "" } = rule;
  return `apiextensions.ValidationRule{Rule:${goQuote(rule.rule)}, Message:${
    goQuote(message)
  }, MessageExpression:${
    goQuote(messageExpression)
  }, Reason:(*apiextensions.FieldValueErrorReason)(nil), FieldPath:${
    goQuote(fieldPath)
  }, OptionalOldSelf:(*bool)(nil)}`;
}
