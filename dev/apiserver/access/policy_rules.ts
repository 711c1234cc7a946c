import type { PolicyRule } from "@coracle/operator/kinds";
import type { Attributes } from "./attributes.ts";

/** Whether a list contains a value, or the wildcard. */
export function has(
  list: readonly string[] | undefined,
  value: string,
): boolean {
  return list !== undefined && (list.includes(value) || list.includes("*"));
}

/** Whether a list of resources contains a resource, by its name or by a wildcard. */
function hasResource(
  list: readonly string[] | undefined,
  resource: string,
): boolean {
  const slash = resource.indexOf("/");
  return has(list, resource) ||
    (slash >= 0 && list?.includes(`*${resource.slice(slash)}`) === true);
}

/** Whether a list contains a path, by its name or by a prefix with a wildcard. */
export function hasPath(
  list: readonly string[] | undefined,
  path: string,
): boolean {
  return list?.some((one) =>
    one === path ||
    (one.endsWith("*") && path.startsWith(one.replace(/\*+$/, "")))
  ) ?? false;
}

/** Whether a rule allows a request. */
export function allows(rule: PolicyRule, request: Attributes): boolean {
  if (!has(rule.verbs, request.verb)) return false;
  const { path, group, resource, subresource, name } = request;
  if (path !== undefined) return hasPath(rule.nonResourceURLs, path);
  const { resourceNames = [] } = rule;
  return has(rule.apiGroups, group) &&
    hasResource(
      rule.resources,
      subresource === "" ? resource : `${resource}/${subresource}`,
    ) &&
    (resourceNames.length === 0 || resourceNames.includes(name));
}

/** Splits rules into parts, each with one verb and one resource or path. */
function* parts(rules: readonly PolicyRule[]): Generator<PolicyRule> {
  for (const rule of rules) {
    const { apiGroups = [], resources = [], resourceNames = [] } = rule;
    for (const group of apiGroups) {
      for (const resource of resources) {
        for (const verb of rule.verbs) {
          const part = {
            apiGroups: [group],
            resources: [resource],
            verbs: [verb],
          };
          if (resourceNames.length === 0) yield part;
          for (const name of resourceNames) {
            yield { ...part, resourceNames: [name] };
          }
        }
      }
    }
    for (const path of rule.nonResourceURLs ?? []) {
      for (const verb of rule.verbs) {
        yield { nonResourceURLs: [path], verbs: [verb] };
      }
    }
  }
}

/** Whether a rule allows everything that a part of another rule allows. */
function covers(rule: PolicyRule, part: PolicyRule): boolean {
  const [path] = part.nonResourceURLs ?? [];
  const [group = ""] = part.apiGroups ?? [];
  const [resource = ""] = part.resources ?? [];
  const [name] = part.resourceNames ?? [];
  const { resourceNames = [] } = rule;
  if (!has(rule.verbs, part.verbs[0] ?? "")) return false;
  if (path !== undefined) return hasPath(rule.nonResourceURLs, path);
  return has(rule.apiGroups, group) && hasResource(rule.resources, resource) &&
    (resourceNames.length === 0 ||
      (name !== undefined && resourceNames.includes(name)));
}

/**
 * Granted rights that the owned rules do not cover, one text per resource as in
 * kube-apiserver's errors.
 */
export function missingRights(
  owned: readonly PolicyRule[],
  granted: readonly PolicyRule[],
): readonly string[] {
  const missing = new Map<string, PolicyRule>();
  for (const part of parts(granted)) {
    if (owned.some((rule) => covers(rule, part))) continue;
    const { verbs, ...rest } = part;
    // Verbs are joined for resources, but not for paths.
    const key = JSON.stringify(part.nonResourceURLs ? part : rest);
    const seen = missing.get(key);
    // Parts of one rule share their list of verbs.
    if (seen === undefined) missing.set(key, { ...part, verbs: [...verbs] });
    else if (!part.nonResourceURLs) seen.verbs.push(...verbs);
  }
  return [...missing.values()].map(ruleText).sort();
}

/** Text of a list of strings in Go's syntax, such as `["a" "b"]`. */
export function goList(list: readonly string[]): string {
  return `[${list.map((one) => JSON.stringify(one)).join(" ")}]`;
}

function ruleText(rule: PolicyRule): string {
  const fields = [
    ["APIGroups", rule.apiGroups],
    ["Resources", rule.resources],
    ["NonResourceURLs", rule.nonResourceURLs],
    ["ResourceNames", rule.resourceNames],
    ["Verbs", rule.verbs],
  ] as const;
  const shown = fields.flatMap(([name, list = []]) =>
    list.length === 0 ? [] : [`${name}:${goList(list)}`]
  );
  return `{${shown.join(", ")}}`;
}
