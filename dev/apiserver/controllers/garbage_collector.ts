import type { OwnerReference } from "@coracle/operator/client";
import { parseApiVersion } from "@coracle/operator/internal";
import type { ApiContext } from "../api_context.ts";
import type { ResourceDefinition } from "../registry.ts";
import { servedVersion } from "../resources.ts";
import type { Change } from "../storage/history.ts";
import { storageKey, type StoredObject } from "../storage/stored_object.ts";
import { deleteStored, updateStored } from "./internal_request.ts";
import { WorkQueue } from "./work_queue.ts";

const MANAGER = "kube-controller-manager";
const ORPHAN = "orphan";
const FOREGROUND = "foregroundDeletion";

/** Owner references of an object by the state of the owner, as in upstream's garbage collector. */
interface OwnerStates {
  /** References to owners that exist and are not being deleted. */
  readonly solid: readonly OwnerReference[];
  /** References to owners that do not exist. */
  readonly dangling: readonly OwnerReference[];
  /** References to owners in foreground deletion, which wait for their dependents. */
  readonly waiting: readonly OwnerReference[];
}

/**
 * Garbage collector for objects whose owners were deleted, as in
 * kube-controller-manager: deletes them in the background or in the foreground
 * (dependents first), or removes the owner references (orphans them).
 */
export class GarbageCollector {
  readonly #context: ApiContext;
  /** Dependents by uid, grouped by the uid of an owner in their references. */
  readonly #dependents: Map<string, Map<string, StoredObject>> = new Map();
  /** UIDs of owners that were not loaded and count as existing. */
  readonly #unknown: Set<string> = new Set();
  /** UIDs of deleted owners that have dependents. */
  readonly #absent: Set<string> = new Set();
  /** Objects with an owner that cannot be looked up until its kind is served, by uid. */
  readonly #unresolved: Map<string, StoredObject> = new Map();
  /** Objects that may have to be collected, by uid. */
  readonly #queue: WorkQueue<StoredObject>;

  constructor(context: ApiContext) {
    this.#context = context;
    this.#queue = new WorkQueue(
      context,
      "Cannot garbage-collect an object",
      (seen) => this.#reconcile(seen),
    );
    context.store.listen((change) => this.#observe(change));
    context.resources.listen(() => {
      const waiting = [...this.#unresolved.values()];
      this.#unresolved.clear();
      for (const object of waiting) this.#enqueue(object);
    });
  }

  /**
   * Enqueues all stored objects; used for a store that was loaded from a file.
   *
   * @param isPart Whether the store has a part of its cluster only: owners that are
   * not there count as existing, and nothing is enqueued.
   */
  begin(isPart = false): void {
    this.#context.store.replay((change) => {
      if (!isPart) return this.#observe(change);
      const { object } = change;
      this.#index(object);
      for (const owner of object.owners ?? []) {
        if (this.#find(owner, object.namespace) === undefined) {
          this.#unknown.add(owner.uid);
        }
      }
    });
  }

  #index(object: StoredObject): void {
    const id = idOf(object);
    for (const { uid } of object.owners ?? []) {
      const dependents = this.#dependents.get(uid) ?? new Map();
      this.#dependents.set(uid, dependents.set(id, object));
    }
  }

  stop(): void {
    this.#queue.stop();
  }

  #observe({ type, object, previous }: Change): void {
    const id = idOf(object);
    for (const { uid } of previous?.owners ?? []) {
      const dependents = this.#dependents.get(uid);
      dependents?.delete(id);
      if (dependents?.size !== 0) continue;
      this.#dependents.delete(uid);
      this.#absent.delete(uid);
    }
    if (type === "DELETED") {
      this.#unresolved.delete(object.uid);
      if (this.#dependents.has(object.uid)) this.#absent.add(object.uid);
      for (const dependent of this.#dependentsOf(object.uid)) {
        this.#enqueue(dependent);
      }
      this.#enqueueOwners(object);
      return;
    }
    this.#index(object);
    if (object.owners?.length || object.terminating) this.#enqueue(object);
    // An owner in foreground deletion may have waited for the removal of this reference.
    if (previous?.owners) this.#enqueueOwners(previous);
  }

  #dependentsOf(uid: string): readonly StoredObject[] {
    return [...this.#dependents.get(uid)?.values() ?? []];
  }

  #enqueue(object: StoredObject): void {
    this.#queue.add(object, object.uid);
  }

  #enqueueOwners(object: StoredObject): void {
    for (const owner of object.owners ?? []) {
      const stored = this.#find(owner, object.namespace);
      if (stored?.terminating) this.#enqueue(stored);
    }
  }

  /**
   * Resource of an owner reference; undefined if the version is not served, or a
   * cluster-scoped object refers to an owner in a namespace: as in upstream's
   * garbage collector, whether such an owner exists is unknown.
   */
  #resourceOf(
    { apiVersion, kind }: OwnerReference,
    namespace: string,
  ): ResourceDefinition | undefined {
    const { group, version } = parseApiVersion(apiVersion);
    const definition = this.#context.resources.findKind(group, kind);
    return definition && servedVersion(definition, version) &&
        (namespace !== "" || definition.scope === "Cluster")
      ? definition
      : undefined;
  }

  /** Object of an owner reference; undefined if its uid differs. */
  #find(owner: OwnerReference, namespace: string): StoredObject | undefined {
    const definition = this.#resourceOf(owner, namespace);
    if (definition === undefined) return undefined;
    const stored = this.#context.store.collectionOf(definition).get(
      storageKey({
        namespace: definition.scope === "Namespaced" ? namespace : "",
        name: owner.name,
      }),
    );
    return stored?.uid === owner.uid ? stored : undefined;
  }

  #reconcile({ definition, key, uid }: StoredObject): void {
    const stored = this.#context.store.collectionOf(definition).get(key);
    if (stored?.uid === uid) this.#collect(stored);
  }

  #collect(stored: StoredObject): void {
    if (stored.terminating) {
      const { finalizers = [] } = stored.parse().metadata;
      if (finalizers.includes(ORPHAN)) return this.#orphan(stored);
      if (finalizers.includes(FOREGROUND)) {
        return this.#deleteDependents(stored);
      }
    }
    if (!stored.owners?.length) return;
    const owners = this.#ownersOf(stored);
    if (owners === undefined) {
      this.#unresolved.set(stored.uid, stored);
      return;
    }
    const { solid, dangling, waiting } = owners;
    if (solid.length > 0) {
      this.#dropReferences(stored, [...dangling, ...waiting]);
      return;
    }
    if (stored.terminating) return;
    const dependents = waiting.length > 0 ? this.#dependentsOf(stored.uid) : [];
    const foreground = dependents.length > 0;
    // A cycle of owners in which each waits for the next would never end.
    const isBlocking = stored.owners.some(({ blockOwnerDeletion }) =>
      blockOwnerDeletion
    );
    if (
      isBlocking &&
      dependents.some((one) => one.terminating && isDeletingDependents(one))
    ) {
      // The change enqueues the object again.
      return this.#change(stored, ({ metadata }) => {
        for (const owner of metadata.ownerReferences ?? []) {
          owner.blockOwnerDeletion = false;
        }
      });
    }
    deleteStored(this.#context, stored, {
      uid: stored.uid,
      propagationPolicy: foreground ? "Foreground" : policyOf(stored),
    });
  }

  /** States of the owners; undefined if that of one cannot be known. */
  #ownersOf(stored: StoredObject): OwnerStates | undefined {
    const solid: OwnerReference[] = [];
    const dangling: OwnerReference[] = [];
    const waiting: OwnerReference[] = [];
    for (const reference of stored.owners ?? []) {
      const owner = this.#find(reference, stored.namespace);
      if (owner === undefined) {
        const { uid } = reference;
        const isAbsent = this.#absent.has(uid);
        if (!isAbsent && !this.#resourceOf(reference, stored.namespace)) {
          return undefined;
        }
        const isKnown = isAbsent || !this.#unknown.has(uid);
        (isKnown ? dangling : solid).push(reference);
      } else if (owner.terminating && isDeletingDependents(owner)) {
        waiting.push(reference);
      } else solid.push(reference);
    }
    return { solid, dangling, waiting };
  }

  /** Removes the owner from its dependents, then its `orphan` finalizer. */
  #orphan(owner: StoredObject): void {
    for (const dependent of this.#dependentsOf(owner.uid)) {
      this.#dropReferences(
        dependent,
        (dependent.owners ?? []).filter(({ uid }) => uid === owner.uid),
      );
    }
    this.#dropFinalizer(owner, ORPHAN);
  }

  /** Deletes the dependents; removes the owner's finalizer when no dependent blocks its deletion. */
  #deleteDependents(owner: StoredObject): void {
    const dependents = this.#dependentsOf(owner.uid);
    const blocking = dependents.filter((dependent) =>
      dependent.owners?.some(({ uid, blockOwnerDeletion }) =>
        uid === owner.uid && blockOwnerDeletion === true
      )
    );
    for (const dependent of dependents) {
      if (!dependent.terminating) this.#enqueue(dependent);
    }
    if (blocking.length === 0) this.#dropFinalizer(owner, FOREGROUND);
  }

  #dropReferences(
    stored: StoredObject,
    references: readonly OwnerReference[],
  ): void {
    if (references.length === 0) return;
    const gone = new Set(references.map(({ uid }) => uid));
    this.#change(stored, ({ metadata }) => {
      const remaining = (metadata.ownerReferences ?? []).filter(({ uid }) =>
        !gone.has(uid)
      );
      if (remaining.length > 0) metadata.ownerReferences = remaining;
      else delete metadata.ownerReferences;
    });
  }

  #dropFinalizer(stored: StoredObject, finalizer: string): void {
    this.#change(stored, ({ metadata }) => {
      const remaining = (metadata.finalizers ?? []).filter((other) =>
        other !== finalizer
      );
      if (remaining.length > 0) metadata.finalizers = remaining;
      else delete metadata.finalizers;
    });
  }

  #change(
    stored: StoredObject,
    change: (object: ReturnType<StoredObject["parse"]>) => void,
  ): void {
    updateStored(this.#context, stored, {
      manager: MANAGER,
      next: (live) => {
        change(live);
        return live;
      },
    });
  }
}

function idOf({ definition, key }: StoredObject): string {
  return `${definition.group}/${definition.plural}/${key}`;
}

function isDeletingDependents(owner: StoredObject): boolean {
  return owner.parse().metadata.finalizers?.includes(FOREGROUND) ?? false;
}

function policyOf(stored: StoredObject): string {
  const { finalizers = [] } = stored.parse().metadata;
  if (finalizers.includes(ORPHAN)) return "Orphan";
  return finalizers.includes(FOREGROUND) ? "Foreground" : "Background";
}
