import { parseApiVersion } from "../../core/api/kind.ts";
import type { ObjectReference } from "../kstatus/wait_for.ts";

/** Kinds in the order in which they are applied. */
const KINDS: readonly string[] = [
  "CustomResourceDefinition",
  "Namespace",
  "ClusterRole",
  "ClusterClass",
  "RuntimeClass",
  "PriorityClass",
  "StorageClass",
  "VolumeSnapshotClass",
  "IngressClass",
  "GatewayClass",
  "ClusterRoleBinding",
  "ResourceQuota",
  "ServiceAccount",
  "Role",
  "RoleBinding",
  "ConfigMap",
  "Secret",
  "Service",
  "LimitRange",
  "Deployment",
  "StatefulSet",
  "CronJob",
  "PodDisruptionBudget",
  // All other kinds are here.
  "",
  // The last kinds may refuse other objects.
  "MutatingWebhookConfiguration",
  "ValidatingWebhookConfiguration",
];

/**
 * Compares objects by the order in which they are applied: by kind, so that
 * dependencies come first, then by group, kind, namespace and name. They are
 * deleted in reverse order.
 */
export function compareForApply(
  a: ObjectReference,
  b: ObjectReference,
): number {
  const position = ({ kind }: ObjectReference) =>
    KINDS.indexOf(KINDS.includes(kind) ? kind : "");
  const group = ({ apiVersion }: ObjectReference) =>
    parseApiVersion(apiVersion).group;
  return position(a) - position(b) || compareTexts(group(a), group(b)) ||
    compareTexts(a.kind, b.kind) ||
    compareTexts(a.namespace ?? "", b.namespace ?? "") ||
    compareTexts(a.name, b.name);
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Kinds that are applied in the first stage. */
const DEFINITIONS: readonly string[] = [
  "CustomResourceDefinition",
  "Namespace",
  "ClusterRole",
];

/**
 * Divides objects into stages, each of which must be Current before the next
 * begins: definitions (CustomResourceDefinitions, Namespaces, ClusterRoles),
 * classes (every kind whose name ends in Class), the kinds that the caller
 * names, and all others. Each stage is in order; empty ones are left out.
 *
 * @param references The objects.
 * @param early The kinds of the third stage, as `group/Kind`.
 */
export function applyStages<T extends ObjectReference>(
  references: readonly T[],
  early: readonly string[] = [],
): readonly (readonly T[])[] {
  const stageOf = ({ apiVersion, kind }: T) => {
    if (DEFINITIONS.includes(kind)) return 0;
    if (kind.endsWith("Class")) return 1;
    const { group } = parseApiVersion(apiVersion);
    return early.includes(`${group}/${kind}`) ? 2 : 3;
  };
  const stages = Map.groupBy(references, stageOf);
  return ([0, 1, 2, 3] as const).flatMap((stage) => {
    const members = stages.get(stage);
    return members === undefined ? [] : [members.toSorted(compareForApply)];
  });
}
