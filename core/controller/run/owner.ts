import { apiVersionOf, type ResolvedKind } from "../../api/kind.ts";
import type { KubernetesObject, OwnerReference } from "../../api/object.ts";

/** Metadata that {@linkcode placedObject} fills in. */
interface PlacedMetadata {
  readonly name?: string | undefined;
  readonly namespace?: string | undefined;
  readonly ownerReferences?: OwnerReference[] | undefined;
}

/** Primary that an object belongs to. */
export interface Owner {
  readonly primary: KubernetesObject;
  readonly primaryKind: ResolvedKind;
  /** Whether the primary becomes the owner; by default where it can. */
  readonly owned?: boolean | undefined;
}

/**
 * Object with a namespace, by default that of the primary, and with the primary
 * as its owner if it can be.
 *
 * @throws {TypeError} If an owner in another namespace is requested.
 */
export function placedObject<O extends { readonly metadata: PlacedMetadata }>(
  kind: ResolvedKind,
  object: O,
  { primary, primaryKind, owned: wanted }: Owner,
): O {
  const home = primary.metadata.namespace;
  const namespace = kind.scope === "Cluster"
    ? undefined
    : object.metadata.namespace ?? home;
  const canOwn = home === undefined || home === namespace;
  const { name, ownerReferences = [] } = object.metadata;
  const owned = wanted ?? canOwn;
  if (owned && !canOwn) {
    throw new TypeError(
      `Cannot own ${kind.kind} ${name}: an owner must be cluster-scoped or in the same namespace: received ${
        namespace === undefined ? "no namespace" : `namespace ${namespace}`
      } for an owner in ${home}`,
    );
  }
  const metadata = {
    ...object.metadata,
    ...(namespace !== undefined && { namespace }),
    ...(owned &&
      { ownerReferences: withOwner(ownerReferences, primary, primaryKind) }),
  };
  return { ...object, metadata };
}

/** Owner references with the primary as the controlling owner. */
function withOwner(
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
