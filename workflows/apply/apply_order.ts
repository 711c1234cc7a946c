import { isBuiltIn, parseApiVersion } from "../../core/api/kind.ts";
import {
  type ObjectReference,
  referenceId,
  referenceText,
} from "../kstatus/wait_for.ts";
import { compareTexts } from "../../core/text_order.ts";

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

/**
 * Kinds whose deletion deletes their contents: an immutable field is no reason to
 * delete them and create them again.
 */
export const HOLDERS: readonly string[] = [
  "CustomResourceDefinition",
  "Namespace",
  "PersistentVolume",
  "PersistentVolumeClaim",
];

/** Kinds that are applied in the first stage. */
const DEFINITIONS: readonly string[] = [
  "CustomResourceDefinition",
  "Namespace",
  "ClusterRole",
];

/**
 * Divides objects into stages that must each be Current before the next
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

/**
 * Divides objects into the stages in which they are deleted; each must be
 * gone before the next begins: custom resources, since the controllers that finish
 * their deletion may be in the same set; built-in kinds; and definitions. Each stage
 * is in reverse order; empty ones are left out.
 */
export function deleteStages<T extends ObjectReference>(
  references: readonly T[],
): readonly (readonly T[])[] {
  const stages = Map.groupBy(
    references,
    ({ apiVersion, kind }) =>
      DEFINITIONS.includes(kind)
        ? 2
        : isBuiltIn(parseApiVersion(apiVersion))
        ? 1
        : 0,
  );
  return ([0, 1, 2] as const).flatMap((stage) => {
    const members = stages.get(stage);
    return members === undefined
      ? []
      : [members.toSorted(compareForApply).reverse()];
  });
}

/** Objects by their ids, which are independent of the versions of their kinds. */
export function membersById<T extends ObjectReference>(
  members: Iterable<T>,
): Map<string, T> {
  const byId = new Map<string, T>();
  for (const member of members) {
    const id = referenceId(member);
    if (byId.has(id)) {
      throw new RangeError(
        `Cannot apply a set: each object can be in it only once: received ${
          referenceText(member)
        } twice`,
      );
    }
    byId.set(id, member);
  }
  return byId;
}
