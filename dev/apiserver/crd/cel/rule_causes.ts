import type { Environment } from "@marcbachmann/cel-js";
import type { OpenApiSchema, StatusCause } from "@coracle/operator/internal";
import { goJson } from "../../validation/go_value.ts";
import { fieldError } from "../../status.ts";
import { childPath, keyPath } from "../../validation/field_path.ts";
import { baseEnvironment } from "./cel_environment.ts";
import { hasRules } from "./cel_library.ts";
import { CelTypes } from "./cel_types.ts";
import { costOf } from "./cost_estimate.ts";
import { declaredType, maxPerRequest } from "./declared_type.ts";
import { type CompiledRule, compileNodeRules } from "./rule_compiler.ts";
import { costOfAll, maxValuesBelow, type RuleCosts } from "./rule_costs.ts";

/** Checker of the CEL rules of a schema node. */
export interface RuleChecker {
  /** Compiles the rules of the node and adds their costs; returns the violations. */
  check(
    schema: OpenApiSchema,
    path: string,
    uncorrelatable: string | undefined,
  ): StatusCause[];
  /** Checker of a nested node; undefined if rules cannot access it. */
  below(schema: OpenApiSchema): RuleChecker | undefined;
}

/**
 * Checker for the root of a structural schema; undefined if it has no rules.
 *
 * @param costs Accumulator of the costs of the rules.
 */
export function ruleChecker(
  schema: OpenApiSchema,
  costs: RuleCosts,
): RuleChecker | undefined {
  if (!hasRules(schema)) return undefined;
  const environment = baseEnvironment().clone();
  const types = new CelTypes(environment);
  types.typeOf(schema, true);
  return nodeChecker(schema, 1, { types, environment, costs, root: schema });
}

/** Shared state of the checkers of a schema. */
interface Checking {
  readonly types: CelTypes;
  readonly environment: Environment;
  readonly costs: RuleCosts;
  /** Schema of the whole object. */
  readonly root: OpenApiSchema;
}

/**
 * Creates the checker of the CEL rules of one node.
 *
 * @param most Maximum number of values of the node; undefined if unlimited.
 */
function nodeChecker(
  schema: OpenApiSchema,
  most: number | undefined,
  checking: Checking,
): RuleChecker {
  const { types, environment, costs, root } = checking;
  return {
    check(node, path, uncorrelatable) {
      const type = types.typeOf(node);
      const declared = declaredType(node, node === root);
      if (type === undefined || declared === undefined) return [];
      const values = most ?? maxPerRequest(declared);
      const compiled = compileNodeRules(node, type, environment);
      return compiled.flatMap((rule, index) => {
        const at = keyPath(childPath(path, "x-kubernetes-validations"), index);
        const { tree, messageTree } = rule;
        const add = (name: string, field: string, cost: number) =>
          costs.add(name, cost, childPath(at, field));
        return [
          ...(tree === undefined ? [] : add(
            "rule",
            "rule",
            costOfAll(costOf(tree, declared), values),
          )),
          ...(messageTree === undefined ? [] : add(
            "messageExpression",
            "messageExpression",
            costOf(messageTree, declared),
          )),
          ...ruleCauses(rule, at, uncorrelatable),
        ];
      });
    },
    below(inner) {
      if (types.typeOf(inner) === undefined) return undefined;
      const each = maxValuesBelow(schema);
      const all = most === undefined || each === undefined
        ? undefined
        : costOfAll(most, each);
      return nodeChecker(inner, all, checking);
    },
  };
}

function ruleCauses(
  { rule, error, messageError, usesOldSelf }: CompiledRule,
  path: string,
  uncorrelatable: string | undefined,
): StatusCause[] {
  const causes: StatusCause[] = [];
  const shown = {
    Rule: rule.rule,
    Message: rule.message ?? "",
    MessageExpression: rule.messageExpression ?? "",
    Reason: rule.reason ?? null,
    FieldPath: rule.fieldPath ?? "",
    OptionalOldSelf: rule.optionalOldSelf ?? null,
  };
  const wrong = (name: string, why: string) =>
    causes.push({
      reason: "FieldValueInvalid",
      message: `Invalid value: ${goJson(shown, Object.keys(shown))}: ${why}`,
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
