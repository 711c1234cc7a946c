import type { UntypedObject } from "@coracle/operator/client";
import { jsonEquals, type StatusCause } from "@coracle/operator/internal";
import type { MatchCondition } from "@coracle/operator/kinds";
import { loadPatterns } from "../cel/pattern.ts";
import { fieldError } from "../status.ts";
import { compileMutation } from "./mutating_policies.ts";
import {
  PolicyEnvironment,
  type PolicyExpression,
} from "./policy_environment.ts";
import type { PolicySpec, WebhookHook } from "./hooks.ts";

/** Violations of the expressions of a policy or webhook configuration. */
export async function expressionCauses(
  object: UntypedObject,
  old: UntypedObject | undefined,
): Promise<readonly StatusCause[]> {
  // Expressions that were accepted remain valid.
  if (
    old && jsonEquals(object.spec ?? null, old.spec ?? null) &&
    jsonEquals(object.webhooks ?? null, old.webhooks ?? null)
  ) return [];
  await loadPatterns();
  const webhooks = (object.webhooks ?? []) as readonly WebhookHook[];
  const causes = webhooks.flatMap(({ matchConditions }, index) =>
    conditionCauses(
      matchConditions,
      new PolicyEnvironment({}),
      `webhooks[${index}]`,
    )
  );
  const { spec } = object as { readonly spec?: PolicySpec };
  return spec === undefined ? causes : [...causes, ...policyCauses(spec)];
}

function policyCauses(spec: PolicySpec): StatusCause[] {
  const environment = new PolicyEnvironment(spec);
  const { variables = [], validations = [], auditAnnotations = [] } = spec;
  const causes: StatusCause[] = [];
  const add = (field: string, source: string, { error }: PolicyExpression) => {
    if (error === undefined) return;
    causes.push(fieldError.invalid(`spec.${field}`, source, error));
  };
  for (const [index, [, compiled]] of environment.variables.entries()) {
    const { expression = "" } = variables[index] ?? {};
    add(`variables[${index}].expression`, expression, compiled);
  }
  causes.push(...conditionCauses(spec.matchConditions, environment, "spec"));
  for (const [index, validation] of validations.entries()) {
    const { expression, messageExpression } = validation;
    const at = `validations[${index}]`;
    const compiled = environment.compile(expression, ["bool"]);
    if (expression.trim() !== "") {
      add(`${at}.expression`, expression, compiled);
    }
    if (messageExpression) {
      const message = environment.compile(messageExpression, ["string"]);
      add(`${at}.messageExpression`, messageExpression, message);
    }
  }
  for (const [index, { valueExpression }] of auditAnnotations.entries()) {
    const compiled = environment.compile(valueExpression, [
      "string",
      "null_type",
    ]);
    if (!valueExpression) continue;
    const at = `auditAnnotations[${index}].valueExpression`;
    add(at, valueExpression, compiled);
  }
  for (const [index, mutation] of (spec.mutations ?? []).entries()) {
    const field = mutation.jsonPatch ? "jsonPatch" : "applyConfiguration";
    const expression = mutation[field]?.expression;
    if (!expression) continue;
    const compiled = compileMutation(mutation, environment);
    add(`mutations[${index}].${field}.expression`, expression, compiled);
  }
  return causes;
}

function conditionCauses(
  conditions: readonly MatchCondition[] = [],
  environment: PolicyEnvironment,
  path: string,
): StatusCause[] {
  return conditions.flatMap(({ expression }, index) => {
    const { error } = environment.compile(expression, ["bool"]);
    const field = `${path}.matchConditions[${index}].expression`;
    return error === undefined || expression.trim() === ""
      ? []
      : [fieldError.invalid(field, expression, error)];
  });
}
