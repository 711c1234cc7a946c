import type { JsonObject } from "@coracle/operator/internal";
import { StatusError } from "../status.ts";
import { type Attributes, refusal } from "./admission.ts";
import {
  environmentOf,
  policyValues,
  unmetCondition,
} from "./match_conditions.ts";
import { criteriaOf, matchOf } from "./matching.ts";
import type { PolicyEnvironment, PolicyInput } from "./policy_environment.ts";
import type { PolicyBinding, PolicyHook } from "./hooks.ts";
import { paramsOf, UnknownParams } from "./policy_params.ts";
import { type Verdict, VerdictBuilder } from "./verdict.ts";
import { usableMessage } from "../crd/cel/rule_compiler.ts";

/** Denial by a policy. */
interface Denial {
  readonly message: string;
  readonly reason?: string | undefined;
}

/** Result of the validations of a policy; failures are denials. */
interface Evaluated {
  readonly denials: readonly (Denial & { readonly index: number })[];
  readonly annotations: readonly (readonly [key: string, value: string])[];
  /** Errors of audit annotations; they deny the request with any action. */
  readonly errors: readonly string[];
}

/** Maximum length of an audit annotation in characters. */
const MAX_ANNOTATION_CHARS = 10 * 1_024;

const CODES: Readonly<Record<string, number>> = {
  Unauthorized: 401,
  Forbidden: 403,
  RequestEntityTooLarge: 413,
};

/**
 * Evaluates the policies that match a request.
 *
 * @throws {StatusError} The first denial.
 */
export async function validateByPolicies(
  attributes: Attributes,
  policies: readonly PolicyHook[],
): Promise<Verdict> {
  const verdict = new VerdictBuilder();
  let denied: StatusError | undefined;
  for (const policy of policies) {
    const { spec } = policy;
    const fails = spec.failurePolicy !== "Ignore";
    const name = policy.metadata.name;
    const deny = (denial: Denial, binding?: PolicyBinding) => {
      const bound = binding && ` with binding '${binding.metadata.name}'`;
      denied ??= denialOf(
        attributes,
        `ValidatingAdmissionPolicy '${name}'${
          bound ?? ""
        } denied request: ${denial.message}`,
        denial.reason,
      );
    };
    const published = new Map<string, Set<string>>();
    try {
      const match = matchOf(criteriaOf(spec.matchConstraints), attributes);
      if (match === undefined) continue;
      const environment = () => environmentOf(spec);
      for (const binding of policy.bindings) {
        const { matchResources, validationActions = [] } = binding.spec;
        if (!matchOf(criteriaOf(matchResources), attributes)) continue;
        let results: Evaluated[];
        try {
          const params = await paramsOf(policy, binding, attributes);
          const values = await policyValues(attributes, match);
          results = params.map((param) =>
            evaluate(policy, environment().input(values, param), environment())
          );
        } catch (error) {
          if (error instanceof StatusError) throw error;
          if (!fails) continue;
          const why = (error as Error).message;
          if (error instanceof UnknownParams) {
            deny({ message: `failed to configure policy: ${why}` });
          } else {
            deny({ message: `failed to configure binding: ${why}` }, binding);
          }
          continue;
        }
        for (const { denials, annotations, errors } of results) {
          for (const denial of denials) {
            const { message, index } = denial;
            if (validationActions.includes("Deny")) deny(denial, binding);
            if (validationActions.includes("Audit")) {
              // As in kube-apiserver, which does not overwrite it.
              verdict.annotations[
                "validation.policy.admission.k8s.io/validation_failure"
              ] ??= JSON.stringify([{
                message,
                policy: name,
                binding: binding.metadata.name,
                expressionIndex: index,
                validationActions,
              }]);
            }
            if (validationActions.includes("Warn")) {
              verdict.warnings.push(
                `Validation failed for ValidatingAdmissionPolicy '${name}' with binding '${binding.metadata.name}': ${message}`,
              );
            }
          }
          for (const [key, value] of annotations) {
            const values = published.get(key) ?? new Set();
            published.set(key, values.add(value));
          }
          for (const message of errors) deny({ message }, binding);
        }
      }
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      if (!fails) continue;
      deny({ message: `failed to configure policy: ${error.message}` });
    }
    for (const [key, values] of published) {
      verdict.annotations[`${name}/${key}`] = [...values].join(", ");
    }
  }
  if (denied !== undefined) throw denied;
  return verdict;
}

function denialOf(
  attributes: Attributes,
  message: string,
  reason = "Invalid",
): StatusError {
  const { status } = refusal(attributes, message);
  return new StatusError({
    ...status,
    code: CODES[reason] ?? 422,
    reason,
    details: { ...status.details as JsonObject, causes: [{ message }] },
  });
}

function evaluate(
  { spec }: PolicyHook,
  input: PolicyInput,
  environment: PolicyEnvironment,
): Evaluated {
  const { matchConditions = [], validations = [], auditAnnotations = [] } =
    spec;
  const fails = spec.failurePolicy !== "Ignore";
  const none: Evaluated = { denials: [], annotations: [], errors: [] };
  const failure = (error: unknown) =>
    fails ? [{ message: (error as Error).message, index: 0 }] : [];
  try {
    if (unmetCondition(matchConditions, input, environment) !== undefined) {
      return none;
    }
  } catch (error) {
    return { ...none, denials: failure(error) };
  }
  const denials = validations.flatMap((validation, index) => {
    const { expression, reason } = validation;
    try {
      const holds = environment.compile(expression, ["bool"]).evaluate(input);
      if (holds === true) return [];
    } catch (error) {
      return failure(error).map((denial) => ({ ...denial, index }));
    }
    const message = messageOf(validation, input, environment);
    return [{ message, reason, index }];
  });
  const annotations: [string, string][] = [];
  const errors: string[] = [];
  for (const { key, valueExpression } of auditAnnotations) {
    try {
      const value = environment
        .compile(valueExpression, ["string", "null_type"]).evaluate(input);
      const text = typeof value === "string" ? value.trim() : "";
      if (text !== "") {
        annotations.push([key, text.slice(0, MAX_ANNOTATION_CHARS)]);
      }
    } catch (error) {
      if (fails) errors.push((error as Error).message);
    }
  }
  return { denials, annotations, errors };
}

/** Message of a validation that failed. */
function messageOf(
  { expression, message = "", messageExpression }: NonNullable<
    PolicyHook["spec"]["validations"]
  >[number],
  input: PolicyInput,
  environment: PolicyEnvironment,
): string {
  if (messageExpression) {
    try {
      const text = usableMessage(
        environment.compile(messageExpression, ["string"]).evaluate(input),
      );
      if (text !== undefined) return text;
    } catch {
      // The fixed message is used.
    }
  }
  return message.trim() || `failed expression: ${expression.trim()}`;
}
