import { apiVersionOf, type ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject, OwnerReference } from "../api/object.ts";

/** Owner references with the primary as the controlling one among them. */
export function withOwner(
  references: readonly OwnerReference[],
  primary: KubernetesObject,
  kind: ResolvedKind,
): OwnerReference[] {
  const { name, uid = "" } = primary.metadata;
  const others = references.filter((reference) => reference.uid !== uid);
  return [...others, {
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    name,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  }];
}
