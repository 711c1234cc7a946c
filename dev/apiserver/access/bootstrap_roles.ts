import { matchesLabels, type UntypedObject } from "@coracle/operator/client";
import { jsonEquals } from "@coracle/operator/internal";
import type { ClusterRole, PolicyRule } from "@coracle/operator/kinds";
import type { KubernetesRelease } from "../kubernetes_release.ts";
import { BOOTSTRAP_POLICY, EARLIER_POLICIES } from "./bootstrap_policy.ts";

/** API group of roles and bindings. */
export const RBAC_GROUP = "rbac.authorization.k8s.io";

/** Roles and bindings of a new cluster of a release, without UID and time. */
export function bootstrapRoles(
  { rolesBefore }: Pick<KubernetesRelease, "rolesBefore">,
): readonly UntypedObject[] {
  const entries = policyEntries(rolesBefore);
  const objects = [...entries, ...entries.flatMap(controllerBinding)].map(
    complete,
  );
  const roles = objects as unknown as ClusterRole[];
  // The role admin has the rules of edit, which has those of view.
  for (const role of [...roles].reverse()) {
    if (role.aggregationRule) role.rules = aggregated(role, roles);
  }
  return objects;
}

/** Entries of the policy of a release, by the number of releases after it. */
function policyEntries(releases: number): readonly UntypedObject[] {
  const entries = JSON.parse(BOOTSTRAP_POLICY) as (UntypedObject | undefined)[];
  const changes = JSON.parse(EARLIER_POLICIES) as [
    number,
    number[]?,
    [number, PolicyRule][]?,
  ][][];
  for (const [place, lacking, own = []] of changes.slice(0, releases).flat()) {
    if (lacking === undefined) {
      entries[place] = undefined;
      continue;
    }
    const { rules = [], ...rest } = entries[place] as unknown as ClusterRole;
    const kept = rules.filter((_, index) => !lacking.includes(index));
    for (const [index, rule] of own) kept.splice(index, 0, rule);
    entries[place] = { ...rest, rules: kept } as unknown as UntypedObject;
  }
  return entries.filter((entry) => entry !== undefined);
}

/** Binding of the role of a controller to its service account; none for other roles. */
function controllerBinding({ kind, metadata }: UntypedObject): UntypedObject[] {
  const { name: role } = metadata;
  const [, name] = role.split("system:controller:");
  return kind !== "ClusterRole" || name === undefined ? [] : [{
    kind: "ClusterRoleBinding",
    metadata: { name: role },
    subjects: [{ namespace: "kube-system", kind: "ServiceAccount", name }],
    roleRef: { apiGroup: RBAC_GROUP, kind, name: role },
  }];
}

/** Object with its API version, and the labels and annotations of the policy. */
function complete({ kind, metadata, ...rest }: UntypedObject): UntypedObject {
  const labels = { "kubernetes.io/bootstrapping": "rbac-defaults" };
  return {
    kind,
    apiVersion: `${RBAC_GROUP}/v1`,
    metadata: {
      ...metadata,
      labels: { ...labels, ...metadata.labels },
      annotations: { "rbac.authorization.kubernetes.io/autoupdate": "true" },
    },
    ...rest,
  };
}

/** Rules of the ClusterRoles that an aggregated ClusterRole selects, in the order of their names. */
export function aggregated(
  { aggregationRule, metadata }: ClusterRole,
  roles: readonly ClusterRole[],
): PolicyRule[] {
  const rules: PolicyRule[] = [];
  const { clusterRoleSelectors = [] } = aggregationRule ?? {};
  const chosen = roles.filter(({ kind, metadata: other }) =>
    kind === "ClusterRole" && other?.name !== metadata?.name &&
    clusterRoleSelectors.some((one) => matchesLabels(one, other?.labels))
  );
  chosen.sort((a, b) =>
    (a.metadata?.name ?? "") < (b.metadata?.name ?? "") ? -1 : 1
  );
  for (const rule of chosen.flatMap((role) => role.rules ?? [])) {
    if (!rules.some((known) => jsonEquals(known, rule))) rules.push(rule);
  }
  return rules;
}
