/**
 * Admission plug-ins of the webhooks and policies of a cluster. Most modules
 * are loaded for the first request that a rule matches; a request without
 * configurations costs one comparison.
 */
import { loadModule } from "@coracle/operator/internal";
import { kindSubjectOf } from "../request/resource_request.ts";
import { invalid } from "../status.ts";
import { answerOf, isSettling } from "../settle.ts";
import type { Store } from "../storage/store.ts";
import type { AdmissionPlugin, Attributes, Operation } from "./admission.ts";
import {
  ADMISSION_GROUP,
  AdmissionHooks,
  type Hooks,
  NO_HOOKS,
} from "./hooks.ts";
import { matchOf, ruleMatch } from "./matching.ts";
import type { MutationState } from "./mutation.ts";
import type { PolicyHook, WebhookHook } from "./hooks.ts";
import type { Verdict } from "./verdict.ts";
import { writeJson } from "../exact_json.ts";

const ALL: readonly Operation[] = ["CREATE", "UPDATE", "DELETE", "CONNECT"];

/** Plug-ins of the webhooks and policies in a store. */
export function dynamicPlugins(store: Store): readonly AdmissionPlugin[] {
  const hooks = new AdmissionHooks(store);
  return [
    {
      name: "MutatingAdmissionWebhook",
      operations: ALL,
      mutate: (attributes) => mutate(attributes, relevant(attributes, hooks)),
    },
    {
      // Part of validation in kube-apiserver, but the CEL library must be loaded.
      name: "AdmissionExpressions",
      validate(attributes) {
        const { request, object, oldObject } = attributes;
        const { definition, subresource } = request;
        if (definition.group !== ADMISSION_GROUP || !object || subresource) {
          return;
        }
        if (!isSettling()) return;
        const key = `expressions ${writeJson([object, oldObject])}`;
        const causes = answerOf(key, async () => {
          const module = await loadModule(import("./policy_validation.ts"));
          return await module.expressionCauses(object, oldObject);
        });
        if (causes.length === 0) return;
        throw invalid(kindSubjectOf(request, object.metadata.name), causes);
      },
    },
    {
      name: "ValidatingAdmissionPolicy",
      operations: ALL,
      validate(attributes) {
        const { validatingPolicies: policies } = relevant(attributes, hooks);
        if (policies.length === 0) return;
        answer("policies", attributes, async () => {
          const module = await loadModule(import("./validating_policies.ts"));
          return await module.validateByPolicies(attributes, policies);
        });
      },
    },
    {
      name: "ValidatingAdmissionWebhook",
      operations: ALL,
      validate(attributes) {
        const { validating: webhooks } = relevant(attributes, hooks);
        if (webhooks.length === 0) return;
        answer("webhooks", attributes, async () => {
          const module = await loadModule(import("./webhook_dispatch.ts"));
          return await module.validateByWebhooks(attributes, webhooks);
        });
      },
    },
  ];
}

/** Mutation state after the first round of a request whose plug-ins run again. */
const SECOND_ROUND: WeakMap<Attributes, MutationState> = new WeakMap();

/**
 * Runs mutating policies and webhooks. If they change the object, all plug-ins
 * run a second time.
 */
function mutate(
  attributes: Attributes,
  { mutating, mutatingPolicies }: Hooks,
): void {
  if (mutating.length + mutatingPolicies.length === 0) return;
  const before = SECOND_ROUND.get(attributes);
  const now = { ...attributes };
  const state = answer(
    before === undefined ? "mutate" : "mutate again",
    attributes,
    async () => {
      const { mutate } = await loadModule(import("./mutation.ts"));
      return await mutate(now, {
        policies: mutatingPolicies,
        webhooks: mutating,
      }, before);
    },
  );
  if (state.object) attributes.object = structuredClone(state.object);
  if (before !== undefined || !state.reinvoke) return;
  SECOND_ROUND.set(attributes, state);
  attributes.request.context.admission.run("mutate", attributes);
}

/** Webhooks and policies whose rules match a request. */
function relevant(attributes: Attributes, all: AdmissionHooks): Hooks {
  const hooks = all.current;
  // Configurations themselves are never sent, and neither are writes that
  // belong to no request.
  if (
    hooks === NO_HOOKS || !isSettling() ||
    (attributes.request.definition.group === ADMISSION_GROUP)
  ) return NO_HOOKS;
  const webhook = ({ rules = [], matchPolicy }: WebhookHook) =>
    ruleMatch(rules, attributes, matchPolicy) !== undefined;
  const policy = ({ spec: { matchConstraints } }: PolicyHook) =>
    matchOf({
      rules: matchConstraints?.resourceRules,
      matchPolicy: matchConstraints?.matchPolicy,
    }, attributes) !== undefined;
  return {
    mutating: hooks.mutating.filter(webhook),
    validating: hooks.validating.filter(webhook),
    mutatingPolicies: hooks.mutatingPolicies.filter(policy),
    validatingPolicies: hooks.validatingPolicies.filter(policy),
  };
}

/** Verdict on a request; its warnings and annotations go into the response. */
function answer<T extends Verdict>(
  stage: string,
  attributes: Attributes,
  ask: () => Promise<T>,
): T {
  const { request, operation, object, oldObject } = attributes;
  const verdict = answerOf(
    `${stage} ${operation} ${request.definition.plural} ${
      writeJson([object, oldObject])
    }`,
    ask,
  );
  for (const text of verdict.warnings) {
    if (!request.warnings.includes(text)) request.warnings.push(text);
  }
  Object.assign(request.annotations, verdict.annotations);
  return verdict;
}
