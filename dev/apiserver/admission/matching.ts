import { type LabelSelector, matchesLabels } from "@coracle/operator/client";
import { labelRequirements } from "@coracle/operator/internal";
import type { MatchResources } from "@coracle/operator/kinds";
import type { ResourceDefinition } from "../registry.ts";
import { notFound } from "../status.ts";
import { resourceKey } from "../storage/store.ts";
import type { Rule } from "./hooks.ts";
import type { Attributes } from "./admission.ts";
import { type Match, namespaceObject } from "./review_request.ts";

/** Criteria of webhooks, policies and bindings that select requests. */
export interface Criteria {
  readonly rules?: readonly Rule[] | undefined;
  readonly excluded?: readonly Rule[] | undefined;
  readonly matchPolicy?: string | undefined;
  readonly namespaceSelector?: LabelSelector | undefined;
  readonly objectSelector?: LabelSelector | undefined;
}

/**
 * Resource and version in which a request matches; undefined without a match.
 *
 * @throws {StatusError} 404 if the namespace of a matching request is missing.
 */
export function matchOf(
  criteria: Criteria,
  attributes: Attributes,
): Match | undefined {
  const { rules, excluded = [], matchPolicy } = criteria;
  const { definition, version } = attributes.request;
  if (excluded.length > 0 && ruleMatch(excluded, attributes, matchPolicy)) {
    return undefined;
  }
  const match = rules === undefined
    ? { definition, version }
    : ruleMatch(rules, attributes, matchPolicy);
  return match && selected(criteria, attributes) ? match : undefined;
}

/** Match criteria of a policy or binding; without rules it selects everything. */
export function criteriaOf(resources: MatchResources = {}): Criteria {
  const { resourceRules, excludeResourceRules, ...selectors } = resources;
  return {
    ...selectors,
    rules: resourceRules?.length ? resourceRules : undefined,
    excluded: excludeResourceRules,
  };
}

/** Whether a rule names the resource of a request, in any version. */
export function ruleMatch(
  rules: readonly Rule[],
  attributes: Attributes,
  matchPolicy = "Equivalent",
): Match | undefined {
  const { definition, version } = attributes.request;
  const own = { definition, version };
  if (rules.some((rule) => fits(rule, own, attributes))) return own;
  if (matchPolicy !== "Equivalent") return undefined;
  for (const rule of rules) {
    for (const other of equivalents(attributes)) {
      if (fits(rule, other, attributes)) return other;
    }
  }
  return undefined;
}

/** Other served groups and versions of the resource of a request. */
function* equivalents(
  { request: { context, definition, version } }: Attributes,
): Iterable<Match> {
  const { resources } = context;
  // A definition may have been replaced since the request came.
  const homeOf = (one: ResourceDefinition) => resourceKey(resources.home(one));
  const home = homeOf(definition);
  for (const other of resources.definitions()) {
    if (homeOf(other) !== home) continue;
    const isSame = resourceKey(other) === resourceKey(definition);
    for (const each of other.versions) {
      if (!each.served || (isSame && each.name === version.name)) continue;
      yield { definition: other, version: each };
    }
  }
}

function fits(
  { operations, apiGroups, apiVersions, resources, scope, resourceNames }: Rule,
  { definition, version }: Match,
  attributes: Attributes,
): boolean {
  const has = (list: readonly string[] | undefined, value: string) =>
    list?.some((one) => one === "*" || one === value) === true;
  const { request } = attributes;
  const named = !resourceNames?.length ||
    resourceNames.includes(attributes.name);
  const clusterScoped = definition.scope === "Cluster";
  return named && has(operations, attributes.operation) &&
    has(apiGroups, definition.group) && has(apiVersions, version.name) &&
    (!scope || scope === "*" || (scope === "Cluster") === clusterScoped) &&
    resources?.some((name) => {
        const [plural = "", subresource = ""] = name.split("/", 2);
        return has([plural], definition.plural) &&
          has([subresource], request.subresource?.name ?? "");
      }) === true;
}

/** Whether the selectors of a webhook or policy match a request. */
function selected(
  { namespaceSelector = {}, objectSelector = {} }: Criteria,
  attributes: Attributes,
): boolean {
  const { object, oldObject, operation, request } = attributes;
  const wanted = labelRequirements(objectSelector);
  const matches = [object, oldObject].some((one) =>
    one !== undefined && matchesLabels(wanted, one.metadata.labels)
  );
  if (wanted.length > 0 && !matches) return false;
  const requirements = labelRequirements(namespaceSelector);
  if (requirements.length === 0) return true;
  const { definition, subresource } = request;
  if (definition.plural === "namespaces" && definition.group === "") {
    const own = operation === "DELETE" || subresource ? oldObject : object;
    return matchesLabels(requirements, own?.metadata.labels);
  }
  const name = attributes.namespace;
  if (name === "") return true;
  const namespace = namespaceObject(attributes);
  if (namespace === undefined) {
    throw notFound({ group: "", kind: "namespaces", name });
  }
  return matchesLabels(requirements, namespace.metadata.labels);
}
