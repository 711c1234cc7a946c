import {
  apiVersionOf,
  type Kind,
  kindText,
  parseApiVersion,
  type ResolvedKind,
} from "../../api/kind.ts";
import type {
  KubernetesObject,
  ObjectMeta,
  OwnerReference,
} from "../../api/object.ts";
import { keyOf, keyText } from "../../api/object_key.ts";
import { checkObject } from "../../client/request.ts";
import type { Logger } from "../../logger.ts";
import type { JsonPatchOperation } from "../../patch/json_patch.ts";
import type { SourceGroup } from "../watch/source_group.ts";
import {
  annotatedOwner,
  kindAndGroup,
  mapped,
  ownerAnnotations,
} from "../watch/mappers.ts";
import { WatchingSource } from "../watch/watch_source.ts";

/** Form in which an object names the primary as its owner. */
export type Relation = "reference" | "annotations" | "none";

/** Object of a reconciler with its namespace, name and relation to the primary. */
export interface Placed<O> {
  readonly intent: O;
  readonly relation: Relation;
}

/** Object to place in a namespace; its metadata may already name an owner. */
interface Placeable {
  readonly metadata: {
    readonly name?: string | undefined;
    readonly namespace?: string | undefined;
    readonly labels?: Readonly<Record<string, string>> | undefined;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
    readonly ownerReferences?: OwnerReference[] | undefined;
  };
}

/** Primary that an object belongs to. */
export interface Owner {
  readonly primary: KubernetesObject;
  readonly primaryKind: ResolvedKind;
  /**
   * Whether the primary becomes the owner; by default by an owner reference where
   * Kubernetes allows it, and by annotations elsewhere.
   */
  readonly owned?: boolean | undefined;
}

/**
 * Sets the namespace of an object, by default that of the primary, and the
 * primary as its owner.
 *
 * @throws {TypeError} If the object has no metadata, or an owner reference is
 * requested where Kubernetes allows none.
 * @throws {Error} If the object names another controlling owner.
 */
export function placedObject<O extends Placeable>(
  kind: ResolvedKind,
  object: O,
  { primary, primaryKind, owned }: Owner,
): Placed<O> {
  checkObject(kind, object, "write");
  const home = primary.metadata.namespace;
  const namespace = kind.scope === "Cluster"
    ? undefined
    : object.metadata.namespace ?? home;
  const { name, ownerReferences = [] } = object.metadata;
  const isItself = namespace === home && name === primary.metadata.name &&
    isOfKind(kind, primaryKind);
  const canOwn = !isItself && (home === undefined || home === namespace);
  if (owned && !canOwn) {
    throw new TypeError(
      `Cannot own ${kind.kind} ${name}: ${
        isItself
          ? "it is the primary itself"
          : `an owner must be cluster-scoped or in the same namespace: received ${
            namespace === undefined ? "no namespace" : `namespace ${namespace}`
          } for an owner in ${home}`
      }`,
    );
  }
  const relation = owned === false || isItself
    ? "none"
    : canOwn
    ? "reference"
    : "annotations";
  const metadata = {
    ...object.metadata,
    ...(namespace !== undefined && { namespace }),
  };
  if (relation === "annotations") {
    metadata.annotations = {
      ...metadata.annotations,
      ...ownerAnnotations(keyOf(primary), primaryKind),
    };
  } else if (relation === "reference") {
    const others = ownerReferences.filter((reference) =>
      !isSameOwner(reference, primary, primaryKind)
    );
    const other = others.find(({ controller }) => controller);
    if (other !== undefined) {
      throw refusal(kind, metadata, referenceText(other));
    }
    metadata.ownerReferences = [...others, {
      apiVersion: apiVersionOf(primaryKind),
      kind: primaryKind.kind,
      name: primary.metadata.name,
      uid: primary.metadata.uid ?? "",
      controller: true,
      blockOwnerDeletion: true,
    }];
  }
  return { intent: { ...object, metadata }, relation };
}

/** Whether two descriptors have the same group and kind, in any version. */
function isOfKind(a: Pick<Kind, "group" | "kind">, b: Kind): boolean {
  return a.kind === b.kind && a.group === b.group;
}

/** Whether an owner is the primary, or an earlier object with its name. */
function isSameOwner(
  { apiVersion, kind, name, uid }: OwnerReference,
  { metadata }: KubernetesObject,
  primaryKind: Kind,
): boolean {
  const { group } = parseApiVersion(apiVersion);
  return uid === metadata.uid ||
    name === metadata.name && isOfKind({ group, kind }, primaryKind);
}

function referenceText({ apiVersion, kind, name }: OwnerReference): string {
  return `${apiVersion} ${kind} "${name}"`;
}

function refusal(
  kind: Kind,
  { namespace, name = "" }: Placeable["metadata"],
  owner: string,
): Error {
  return new Error(
    `Cannot own ${kindText(kind)} ${
      keyText({ namespace, name })
    }: another controller owns it, so choose another name, or write it with { owned: false }: received owner ${owner}`,
  );
}

export interface OwnershipDeps<P extends KubernetesObject> {
  readonly kind: ResolvedKind<P>;
  readonly sources: Pick<SourceGroup<P>, "ofKind">;
  readonly log: Logger;
  /** Whether the primary is in no cluster, so that it can own nothing. */
  readonly ownsNothing?: boolean | undefined;
}

/** Ownership of the objects that a controller writes. */
export class Ownership<P extends KubernetesObject> {
  readonly #deps: OwnershipDeps<P>;
  readonly #warned: Set<string> = new Set();

  constructor(deps: OwnershipDeps<P>) {
    this.#deps = deps;
  }

  /**
   * Whether an object that is written gets an owner.
   *
   * @throws {TypeError} If it should, and none exists.
   */
  wanted(owned: boolean | undefined): boolean | undefined {
    if (!this.#deps.ownsNothing) return owned;
    if (owned) {
      throw new TypeError(
        "Cannot own an object: a job has no primary that could",
      );
    }
    return false;
  }

  /** Whether an applied object gets an owner by default. */
  byDefault(kind: Kind): false | undefined {
    const watching = this.#deps.sources.ofKind(kind);
    return watching.length > 0 &&
        watching.every((one) => one instanceof WatchingSource && one.isOfOthers)
      ? false
      : undefined;
  }

  /**
   * Checks that a watch covers an object that is about to be written, and warns
   * once if none does.
   *
   * @throws {Error} If all event sources of the kind would hide the object.
   */
  checkWatched(
    kind: Kind,
    { intent, relation }: Placed<Placeable>,
    verb: "apply" | "create",
  ): void {
    if (relation === "none") return;
    const { sources, log } = this.#deps;
    const watching = sources.ofKind(kind);
    const owned = watching.filter((source) =>
      source instanceof WatchingSource && source.isOwned
    ) as WatchingSource<P>[];
    const metadata = intent.metadata as Partial<ObjectMeta>;
    const reasons = owned.map((source) => source.whyHidden(metadata));
    if (owned.length > 0 && !reasons.includes(undefined)) {
      const { namespace, name = "" } = metadata;
      throw new Error(
        `Cannot ${verb} ${kindText(kind)} ${
          keyText({ namespace, name })
        }: the event source "${owned[0]?.name}" would not show it, since ${
          reasons[0]
        }`,
      );
    }
    const once = (text: string) => {
      if (this.#warned.size < this.#warned.add(text).size) log.warn(text);
    };
    if (relation === "annotations") {
      once(
        `The garbage collector will not delete the ${
          kindText(kind)
        } objects of this controller, so "cleanup" must: no owner reference is possible ${
          intent.metadata.namespace === undefined
            ? "from a cluster-scoped object to one in a namespace"
            : "across namespaces"
        }`,
      );
    }
    if (
      verb === "apply" && watching.length === 0 &&
      !isOfKind(kind, this.#deps.kind)
    ) {
      once(
        `Nothing watches ${
          kindText(kind)
        }, which this controller applies, so that changes and deletions by others trigger no run: add owns: [${kind.kind}] to the options of the controller`,
      );
    }
  }

  /**
   * Checks that no other controller owns a stored object.
   *
   * @returns Operations of a JSON Patch that remove the reference to an earlier
   * object with the name of the primary; undefined if none exists.
   * @throws {Error} If another controller owns it; the error names that owner.
   */
  checkOwner(
    kind: Kind,
    stored: KubernetesObject,
    primary: P,
  ): readonly JsonPatchOperation[] | undefined {
    const { kind: primaryKind } = this.#deps;
    const { ownerReferences = [] } = stored.metadata;
    const index = ownerReferences.findIndex(({ controller }) => controller);
    const reference = ownerReferences[index];
    if (reference === undefined) {
      const owner = annotatedOwner(mapped(stored));
      if (owner === undefined) return undefined;
      const expected = kindAndGroup(primaryKind);
      const text = `${owner.kind ?? expected} "${keyText(owner.key)}"`;
      if (text === `${expected} "${keyText(keyOf(primary))}"`) return undefined;
      throw refusal(kind, stored.metadata, text);
    }
    if (!isSameOwner(reference, primary, primaryKind)) {
      throw refusal(kind, stored.metadata, referenceText(reference));
    }
    const { uid } = reference;
    if (uid === primary.metadata.uid) return undefined;
    const path = `/metadata/ownerReferences/${index}`;
    return [
      { op: "test", path: `${path}/uid`, value: uid },
      { op: "remove", path },
    ];
  }
}
