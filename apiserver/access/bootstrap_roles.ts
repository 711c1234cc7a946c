import type { UntypedObject } from "../../core/api/object.ts";
import { matchesLabels } from "../../core/api/label_selector.ts";
import { jsonEquals } from "../../core/patch/json_value.ts";
import type {
  ClusterRole,
  PolicyRule,
  Subject,
} from "../../core/kinds/rbac_v1.ts";
import { BOOTSTRAP_POLICY } from "./bootstrap_policy.ts";

/** API group of roles and bindings. */
export const RBAC_GROUP = "rbac.authorization.k8s.io";

const list = (text = ""): string[] => text.split(",");

function readRule(text: string): PolicyRule {
  const [verbs, first, resources, names] = text.split("|");
  if (resources === undefined) {
    return { nonResourceURLs: list(first), verbs: list(verbs) };
  }
  return {
    apiGroups: list(first),
    ...names ? { resourceNames: list(names) } : {},
    resources: list(resources),
    verbs: list(verbs),
  };
}

function readSubject(text: string): Subject {
  const [kind = "", namespace, name = ""] = text.split("/");
  return {
    ...kind === "ServiceAccount" ? { namespace } : { apiGroup: RBAC_GROUP },
    kind,
    name,
  };
}

function labels(text: string): Record<string, string> {
  return Object.fromEntries(
    text.split(",").filter((name) => name !== "")
      .map((name) => [`${RBAC_GROUP}/${name}`, "true"]),
  );
}

/** Roles and bindings of a new cluster, without UID and time. */
export function bootstrapRoles(): readonly UntypedObject[] {
  const lines = BOOTSTRAP_POLICY.trim().split("\n");
  const objects = [...lines, ...lines.flatMap(controllerBinding)].map(readLine);
  const roles = objects as unknown as ClusterRole[];
  // The role admin has the rules of edit, which has those of view.
  for (const role of [...roles].reverse()) {
    if (role.aggregationRule) role.rules = aggregated(role, roles);
  }
  return objects;
}

/**
 * Binding of the role of a controller to its service account, as a line of the
 * table; empty for other roles.
 */
function controllerBinding(line: string): string[] {
  const [kind, , role = ""] = line.split("|");
  const [, controller] = role.split("system:controller:");
  return kind === "ClusterRole" && controller !== undefined
    ? [
      `ClusterRoleBinding||${role}|${kind}|${role}|ServiceAccount/kube-system/${controller}`,
    ]
    : [];
}

function readLine(line: string): UntypedObject {
  const [head = "", ...rules] = line.split(";");
  const [kind = "", namespace, name = "", first = "", second = "", subjects] =
    head.split("|");
  const isBinding = subjects !== undefined;
  const metadata = {
    name,
    ...namespace && { namespace },
    labels: {
      "kubernetes.io/bootstrapping": "rbac-defaults",
      ...isBinding ? {} : labels(first),
    },
    annotations: { "rbac.authorization.kubernetes.io/autoupdate": "true" },
  };
  const base = { kind, apiVersion: `${RBAC_GROUP}/v1`, metadata };
  if (!isBinding) {
    const matchLabels = labels(second);
    return {
      ...base,
      ...second && {
        aggregationRule: { clusterRoleSelectors: [{ matchLabels }] },
      },
      rules: rules.map(readRule),
    };
  }
  return {
    ...base,
    ...subjects && { subjects: subjects.split(",").map(readSubject) },
    roleRef: { apiGroup: RBAC_GROUP, kind: first, name: second },
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
