import type { OpenApiSchema, StatusCause } from "@coracle/operator/internal";
import { goJson } from "../../validation/go_value.ts";
import { fieldError } from "../../status.ts";
import { childPath, keyPath } from "../../validation/field_path.ts";
import { hasRules } from "./has_rules.ts";
import { costOf } from "../../cel/cost_estimate.ts";
import { declaredType, maxPerRequest, sizesOf } from "./declared_type.ts";
import { type CompiledRule, compileNodeRules } from "./rule_compiler.ts";
import { SchemaTypes } from "./schema_values.ts";
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
  const types = new SchemaTypes();
  types.of(schema, true);
  return nodeChecker(schema, 1, { types, costs, root: schema });
}

/** Shared state of the checkers of a schema. */
interface Checking {
  readonly types: SchemaTypes;
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
  const { types, costs, root } = checking;
  return {
    check(node, path, uncorrelatable) {
      const known = types.of(node);
      const declared = declaredType(node, node === root);
      if (known === undefined || declared === undefined) return [];
      const sizes = sizesOf(declared);
      const values = most ?? maxPerRequest(declared);
      const compiled = compileNodeRules(node, known.type);
      return compiled.flatMap((rule, index) => {
        const at = keyPath(childPath(path, "x-kubernetes-validations"), index);
        const { tree, messageTree } = rule;
        const add = (name: string, field: string, cost: number) =>
          costs.add(name, cost, childPath(at, field));
        return [
          ...(tree === undefined ? [] : add(
            "rule",
            "rule",
            costOfAll(costOf(tree, sizes), values),
          )),
          ...(messageTree === undefined ? [] : add(
            "messageExpression",
            "messageExpression",
            costOf(messageTree, sizes),
          )),
          ...ruleCauses(rule, at, uncorrelatable),
        ];
      });
    },
    below(inner) {
      if (types.of(inner) === undefined) return undefined;
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
