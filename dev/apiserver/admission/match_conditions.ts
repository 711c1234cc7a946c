import { accessAttributes } from "../access/attributes.ts";
import { accountGroups, accountUser, completed } from "../request/user.ts";
import { loadPatterns } from "../cel/pattern.ts";
import type { Attributes } from "./admission.ts";
import {
  type Match,
  namespaceObject,
  objectFor,
  reviewRequest,
} from "./review_request.ts";
import { Authorizer } from "../cel/authorizer_functions.ts";
import {
  PolicyEnvironment,
  type PolicyInput,
  type PolicyValues,
} from "./policy_environment.ts";
import type { MatchCondition } from "@coracle/operator/kinds";

/** Values of the variables for a request, as JSON; loads the library of regular expressions. */
export async function policyValues(
  attributes: Attributes,
  match: Match,
): Promise<PolicyValues> {
  await loadPatterns();
  const { request, object, oldObject } = attributes;
  const { definition, subresource, namespace } = request;
  return {
    object: await objectFor(object, match),
    oldObject: await objectFor(oldObject, match),
    namespaceObject: namespaceObject(attributes),
    request: reviewRequest(attributes, match),
    authorizer: new Authorizer((verb, check, account) => {
      const { authorizer } = request.context;
      const user = account === undefined ? request.user : completed({
        name: accountUser(account.namespace, account.name),
        groups: accountGroups(account.namespace),
      });
      return authorizer.decide(user, accessAttributes({ verb, ...check }));
    }, {
      group: definition.group,
      resource: definition.plural,
      subresource: subresource?.name,
      namespace,
      name: attributes.name,
    }),
  };
}

const ENVIRONMENTS: WeakMap<object, PolicyEnvironment> = new WeakMap();

/** CEL environment of a policy; cached until the policy changes. */
export function environmentOf(
  spec: ConstructorParameters<typeof PolicyEnvironment>[0],
): PolicyEnvironment {
  const known = ENVIRONMENTS.get(spec) ?? new PolicyEnvironment(spec);
  ENVIRONMENTS.set(spec, known);
  return known;
}

const NO_VARIABLES = {};

/** Variables of match conditions of webhooks. */
export async function policyInput(
  attributes: Attributes,
  match: Match,
): Promise<PolicyInput> {
  const values = await policyValues(attributes, match);
  return environmentOf(NO_VARIABLES).input(values);
}

/**
 * Name of the first match condition that is false; undefined if all are true.
 *
 * @throws {Error} If none is false and some fail.
 */
export function unmetCondition(
  conditions: readonly MatchCondition[],
  input: PolicyInput,
  environment: PolicyEnvironment = environmentOf(NO_VARIABLES),
): string | undefined {
  const failures: string[] = [];
  for (const { name, expression } of conditions) {
    try {
      const holds = environment.compile(expression, ["bool"]).evaluate(input);
      if (holds === false) return name;
    } catch (error) {
      failures.push((error as Error).message);
    }
  }
  if (failures.length === 0) return undefined;
  throw new Error(
    failures.length === 1 ? failures[0] : `[${failures.join(", ")}]`,
  );
}
