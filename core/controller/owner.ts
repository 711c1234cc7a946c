import { apiVersionOf, type ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject, OwnerReference } from "../api/object.ts";
import type { OwnedOption } from "./context_writes.ts";

/** The metadata that {@linkcode placedObject} fills in. */
interface Placed {
  readonly name?: string | undefined;
  readonly namespace?: string | undefined;
  readonly ownerReferences?: OwnerReference[] | undefined;
}

/** The primary that an object belongs to. */
export interface Owner {
  readonly primary: KubernetesObject;
  readonly primaryKind: ResolvedKind;
}

/**
 * An object in its namespace, by default that of the primary, and with the
 * primary as its owner where that can be.
 *
 * @param kind The kind of the object.
 * @param object The object.
 * @param options Whose it becomes.
 * @throws {TypeError} If it shall be owned across namespaces.
 */
export function placedObject<O extends { readonly metadata: Placed }>(
  kind: ResolvedKind,
  object: O,
  { primary, primaryKind, owned: wanted }: Owner & OwnedOption,
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
      `Cannot own ${kind.kind} ${name}: an owner must be in the same namespace or in none: received ${
        namespace ?? "a cluster-scoped object"
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

/** Owner references with the primary as the controlling one among them. */
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
