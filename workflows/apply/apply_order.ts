import { parseApiVersion } from "../../core/api/kind.ts";
import type { ObjectReference } from "../kstatus/object_reference.ts";

/** What has to be there before that which follows; all others come behind. */
const FIRST_KINDS: readonly string[] = [
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
];

/** What may refuse the others as soon as it is there. */
const LAST_KINDS: readonly string[] = [
  "MutatingWebhookConfiguration",
  "ValidatingWebhookConfiguration",
];

const ORDER: ReadonlyMap<string, number> = new Map([
  ...FIRST_KINDS.map((kind, index) => [kind, index] as const),
  ...LAST_KINDS.map((kind, index) =>
    [kind, FIRST_KINDS.length + 1 + index] as const
  ),
]);

/**
 * Orders objects so that what others need stands before them: by kind, then by
 * group, kind, namespace and name. They are deleted in the reverse order.
 */
export function compareForApply(
  a: ObjectReference,
  b: ObjectReference,
): number {
  const place = ({ kind }: ObjectReference) =>
    ORDER.get(kind) ?? FIRST_KINDS.length;
  const group = ({ apiVersion }: ObjectReference) =>
    parseApiVersion(apiVersion).group;
  return place(a) - place(b) || compareTexts(group(a), group(b)) ||
    compareTexts(a.kind, b.kind) ||
    compareTexts(a.namespace ?? "", b.namespace ?? "") ||
    compareTexts(a.name, b.name);
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** What defines the cluster for all others. */
const DEFINITIONS: readonly string[] = [
  "CustomResourceDefinition",
  "Namespace",
  "ClusterRole",
];

/**
 * Divides objects into stages, each of which has to be current before the next
 * begins: definitions (CustomResourceDefinitions, Namespaces, ClusterRoles),
 * classes (every kind whose name ends in Class), kinds that the caller names, and
 * everything else. Each stage is in order; empty ones are left out.
 *
 * @param references The objects.
 * @param early The kinds of the third stage, as `group/Kind`.
 */
export function applyStages<T extends ObjectReference>(
  references: readonly T[],
  early: readonly string[] = [],
): readonly (readonly T[])[] {
  const stages: T[][] = [[], [], [], []];
  for (const reference of references) {
    const { apiVersion, kind } = reference;
    const name = `${parseApiVersion(apiVersion).group}/${kind}`;
    const stage = DEFINITIONS.includes(kind)
      ? 0
      : kind.endsWith("Class")
      ? 1
      : early.includes(name)
      ? 2
      : 3;
    stages[stage]!.push(reference);
  }
  return stages.filter((stage) => stage.length > 0)
    .map((stage) => stage.toSorted(compareForApply));
}
