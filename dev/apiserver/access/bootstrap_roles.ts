import { matchesLabels, type UntypedObject } from "@coracle/operator/client";
import { jsonEquals } from "@coracle/operator/internal";
import type { ClusterRole, PolicyRule } from "@coracle/operator/kinds";
import type { KubernetesRelease } from "../kubernetes_release.ts";
import { BOOTSTRAP_POLICY, EARLIER_POLICY } from "./bootstrap_policy.ts";

/** API group of roles and bindings. */
export const RBAC_GROUP = "rbac.authorization.k8s.io";

/** Roles and bindings of a new cluster of a release, without UID and time. */
export function bootstrapRoles(
  { hasEarlierRoles }: Pick<KubernetesRelease, "hasEarlierRoles">,
): readonly UntypedObject[] {
  const entries = policyEntries(hasEarlierRoles);
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

function policyEntries(isEarlier: boolean): readonly UntypedObject[] {
  const entries = JSON.parse(BOOTSTRAP_POLICY) as UntypedObject[];
  if (!isEarlier) return entries;
  const lines = JSON.parse(EARLIER_POLICY) as [number, number[]?][];
  const changes = new Map(lines.map(([place, added]) => [place, added]));
  return entries.flatMap((entry, index) => {
    if (!changes.has(index)) return entry;
    const added = changes.get(index);
    if (added === undefined) return [];
    const { rules = [], ...rest } = entry as unknown as ClusterRole;
    const kept = rules.filter((_, place) => !added.includes(place));
    return { ...rest, rules: kept } as unknown as UntypedObject;
  });
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
