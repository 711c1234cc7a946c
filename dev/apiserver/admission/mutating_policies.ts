import {
  applyJsonPatch,
  type JsonPatchOperation,
  type UntypedObject,
} from "@coracle/operator/client";
import {
  isJsonObject,
  type JsonObject,
  JsonPatchError,
} from "@coracle/operator/internal";
import type { Schema } from "../merge/schema.ts";
import { loadPatterns } from "../cel/pattern.ts";
import { mergeTyped } from "../merge/typed_merge.ts";
import { fieldSchema, itemSchema } from "../merge/typed_value.ts";
import { StatusError } from "../status.ts";
import { refusal } from "./admission.ts";
import {
  environmentOf,
  policyValues,
  unmetCondition,
} from "./match_conditions.ts";
import { criteriaOf, matchOf } from "./matching.ts";
import type { MutatedObject, Round } from "./mutated_object.ts";
import { initializerProblems, jsonOf } from "./object_initializers.ts";
import {
  type PolicyEnvironment,
  PolicyError,
  type PolicyInput,
} from "./policy_environment.ts";
import type { PolicyBinding, PolicyHook } from "./hooks.ts";
import { paramsOf, UnknownParams } from "./policy_params.ts";
import type { Match } from "./review_request.ts";

/** Mutation of a policy. */
type Mutation = NonNullable<PolicyHook["spec"]["mutations"]>[number];

/**
 * Runs one round of the mutating policies that match a request.
 *
 * @throws {StatusError} If a policy fails whose failures are not ignored.
 */
export async function mutateByPolicies(
  object: MutatedObject,
  policies: readonly PolicyHook[],
  how: { readonly round: Round; readonly again: boolean },
): Promise<void> {
  await loadPatterns();
  const failures: string[] = [];
  for (const policy of policies) {
    const { spec, metadata: { name } } = policy;
    const fail = (why: string, binding?: PolicyBinding) => {
      if (spec.failurePolicy === "Ignore") return;
      failures.push(
        binding === undefined
          ? `policy ${JSON.stringify(name)} denied request: ${why}`
          : `policy '${name}' with binding '${binding.metadata.name}' denied request: ${why}`,
      );
    };
    const match = matchOf(
      criteriaOf(spec.matchConstraints),
      await object.attributes(),
    );
    if (match === undefined) continue;
    for (const binding of policy.bindings) {
      const attributes = await object.attributes();
      if (!matchOf(criteriaOf(binding.spec.matchResources), attributes)) {
        continue;
      }
      let params: Awaited<ReturnType<typeof paramsOf>>;
      try {
        params = await paramsOf(policy, binding, attributes);
      } catch (error) {
        if (!(error instanceof PolicyError)) throw error;
        if (error instanceof UnknownParams) {
          fail(`failed to configure policy: ${error.message}`);
        } else fail(`failed to configure binding: ${error.message}`, binding);
        continue;
      }
      for (const param of params) {
        try {
          await mutateOnce(object, { policy, binding, match, param, ...how });
        } catch (error) {
          if (error instanceof StatusError) throw error;
          fail((error as Error).message, binding);
        }
      }
    }
  }
  const [message] = failures;
  if (message === undefined) return;
  const { status } = refusal(await object.attributes(), message);
  throw new StatusError({
    ...status,
    reason: "Invalid",
    message,
    details: {
      ...status.details as JsonObject,
      causes: failures.map((message) => ({ message })),
    },
  });
}

/** Runs the mutations of a policy with one parameter object. */
async function mutateOnce(
  mutated: MutatedObject,
  { policy, binding, match, param, round, again }: {
    readonly policy: PolicyHook;
    readonly binding: PolicyBinding;
    readonly match: Match;
    readonly param: UntypedObject | undefined;
    readonly round: Round;
    readonly again: boolean;
  },
): Promise<void> {
  const { spec } = policy;
  const environment = environmentOf(spec);
  const input = async () =>
    environment.input(
      await policyValues(await mutated.attributes(), match),
      param,
    );
  const { matchConditions = [], mutations = [], reinvocationPolicy } = spec;
  if (
    unmetCondition(matchConditions, await input(), environment) !== undefined
  ) return;
  const key = [policy, binding, param].map((object) =>
    `${object?.metadata.namespace ?? ""}/${object?.metadata.name ?? ""}`
  ).join();
  if (again && !round.isDue(key)) return;
  let changed = false;
  for (const mutation of mutations) {
    const object = await mutated.in(match);
    if (object === undefined) continue;
    const result = patched(object, mutation, {
      environment,
      input: await input(),
      schema: match.version.schema,
    });
    if (mutated.set(result, match)) changed = true;
  }
  if (changed) round.requireAll();
  if (reinvocationPolicy === "IfNeeded") round.invoked(key);
}

/** Expression of a mutation with its compiled form. */
export function compileMutation(
  { applyConfiguration, jsonPatch }: Mutation,
  environment: PolicyEnvironment,
): ReturnType<PolicyEnvironment["compile"]> {
  return applyConfiguration
    ? environment.compileMutation(applyConfiguration.expression ?? "", [
      "Object",
    ])
    : environment.compileMutation(
      jsonPatch?.expression ?? "",
      ["list(JSONPatch)"],
    );
}

function patched(
  object: UntypedObject,
  mutation: Mutation,
  { environment, input, schema }: {
    readonly environment: PolicyEnvironment;
    readonly input: PolicyInput;
    readonly schema: Schema;
  },
): UntypedObject {
  const { error, evaluate } = compileMutation(mutation, environment);
  if (error !== undefined) throw new PolicyError(error);
  const result = evaluate(input);
  const problems = initializerProblems(result);
  if (mutation.applyConfiguration && problems.length > 0) {
    throw new PolicyError(`type mismatch: ${problems.join("\n")}`);
  }
  const value = jsonOf(result);
  if (mutation.jsonPatch) {
    try {
      return applyJsonPatch(
        structuredClone(object),
        value as JsonPatchOperation[],
      ) as UntypedObject;
    } catch (error) {
      if (!(error instanceof JsonPatchError)) throw error;
      // A patch whose test fails is not applied.
      const { op } = (value as JsonPatchOperation[])[error.index] ?? {};
      if (op === "test") return object;
      throw new PolicyError(`JSON Patch: ${error.message}`);
    }
  }
  const atomic = [...atomics(schema, value, "")];
  if (atomic.length > 0) {
    throw new PolicyError(
      `error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: ${
        atomic.join(", ")
      }`,
    );
  }
  const { kind, apiVersion } = object;
  return mergeTyped(schema, object, {
    ...value as JsonObject,
    kind,
    apiVersion,
  }) as UntypedObject;
}

/** Paths of atomic lists and maps in an apply configuration. */
function* atomics(
  schema: Schema,
  value: unknown,
  path: string,
): Generator<string> {
  if (Array.isArray(value)) {
    if (schema.listType === "atomic") yield path;
    else {
      for (const [index, item] of value.entries()) {
        yield* atomics(itemSchema(schema), item, `${path}[${index}]`);
      }
    }
  } else if (isJsonObject(value)) {
    if (schema.mapType === "atomic") yield path;
    for (const [name, inner] of Object.entries(value)) {
      yield* atomics(fieldSchema(schema, name), inner, `${path}.${name}`);
    }
  }
}
