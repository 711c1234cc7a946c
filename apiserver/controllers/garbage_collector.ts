import { parseApiVersion } from "../../core/api/kind.ts";
import type { OwnerReference } from "../../core/api/object.ts";
import type { ApiContext } from "../api_context.ts";
import type { Change } from "../storage/history.ts";
import { storageKey, type StoredObject } from "../storage/stored_object.ts";
import { deleteObject } from "../write/delete.ts";
import { updateObject } from "../write/update.ts";
import {
  internalDelete,
  internalRequest,
  internalWrite,
} from "./internal_request.ts";
import { WorkQueue } from "./work_queue.ts";

const MANAGER = "kube-controller-manager";
const ORPHAN = "orphan";
const FOREGROUND = "foregroundDeletion";

/** What the owners of an object are, as far as they hold it. */
interface OwnerStates {
  /** They exist and stay. */
  readonly solid: readonly OwnerReference[];
  /** They do not exist. */
  readonly dangling: readonly OwnerReference[];
  /** They are being deleted and wait for their dependents. */
  readonly waiting: readonly OwnerReference[];
}

/**
 * Deletes what nobody owns any more, as kube-controller-manager's garbage
 * collector does: in the background, in the foreground (dependents first), or
 * not at all (orphaned).
 */
export class GarbageCollector {
  readonly #context: ApiContext;
  /** Dependents by the uid of an owner that they name. */
  readonly #dependents: Map<string, Map<string, StoredObject>> = new Map();
  readonly #queue: WorkQueue<string> = new WorkQueue((uid) => this.#look(uid));
  /** Objects that may have to be dealt with, by uid: the newest state. */
  readonly #seen: Map<string, StoredObject> = new Map();

  constructor(context: ApiContext) {
    this.#context = context;
    context.store.listen((change) => this.#observe(change));
  }

  /** Looks at every stored object, for a store that was loaded from a file. */
  begin(): void {
    for (const collection of this.#context.store.collections()) {
      for (const object of collection.values()) {
        this.#observe({
          type: "ADDED",
          revision: object.revision,
          object,
          previous: undefined,
        });
      }
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
      if (dependents?.size === 0) this.#dependents.delete(uid);
    }
    if (type === "DELETED") {
      this.#seen.delete(object.uid);
      for (const dependent of this.#dependentsOf(object.uid)) {
        this.#enqueue(dependent);
      }
      this.#enqueueOwners(object);
      return;
    }
    const owners = object.owners ?? [];
    for (const { uid } of owners) {
      const dependents = this.#dependents.get(uid) ?? new Map();
      this.#dependents.set(uid, dependents.set(id, object));
    }
    if (owners.length > 0 || object.terminating) this.#enqueue(object);
    // An owner that waits may have waited for this reference to go.
    if (previous?.owners) this.#enqueueOwners(previous);
  }

  #dependentsOf(uid: string): readonly StoredObject[] {
    return [...this.#dependents.get(uid)?.values() ?? []];
  }

  #enqueue(object: StoredObject): void {
    this.#seen.set(object.uid, object);
    this.#queue.add(object.uid, object.uid);
  }

  #enqueueOwners(object: StoredObject): void {
    for (const owner of object.owners ?? []) {
      const stored = this.#find(owner, object.namespace);
      if (stored?.terminating) this.#enqueue(stored);
    }
  }

  /** The object that a reference names, if it is that one. */
  #find(owner: OwnerReference, namespace: string): StoredObject | undefined {
    const { group } = parseApiVersion(owner.apiVersion);
    const definition = this.#context.resources.findKind(group, owner.kind);
    if (definition === undefined) return undefined;
    const stored = this.#context.store.collectionOf(definition).get(
      storageKey({
        namespace: definition.scope === "Namespaced" ? namespace : "",
        name: owner.name,
      }),
    );
    return stored?.uid === owner.uid ? stored : undefined;
  }

  #look(uid: string): void {
    const seen = this.#seen.get(uid);
    this.#seen.delete(uid);
    const stored = seen &&
      this.#context.store.collectionOf(seen.definition).get(seen.key);
    if (stored === undefined || stored.uid !== uid) return;
    try {
      this.#collect(stored);
    } catch (error) {
      this.#context.logger.warn("Cannot collect an object", {
        resource: stored.definition.plural,
        object: stored.key,
        error,
      });
    }
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
    const { solid, dangling, waiting } = this.#ownersOf(stored);
    if (solid.length > 0) {
      this.#dropReferences(stored, [...dangling, ...waiting]);
      return;
    }
    if (stored.terminating) return;
    const foreground = waiting.length > 0 &&
      this.#dependentsOf(stored.uid).length > 0;
    deleteObject(
      this.#request(stored),
      stored,
      internalDelete({
        uid: stored.uid,
        propagationPolicy: foreground ? "Foreground" : policyOf(stored),
      }),
    );
  }

  #ownersOf(stored: StoredObject): OwnerStates {
    const solid: OwnerReference[] = [];
    const dangling: OwnerReference[] = [];
    const waiting: OwnerReference[] = [];
    for (const reference of stored.owners ?? []) {
      const owner = this.#find(reference, stored.namespace);
      if (owner === undefined) dangling.push(reference);
      else if (owner.terminating && isDeletingDependents(owner)) {
        waiting.push(reference);
      } else solid.push(reference);
    }
    return { solid, dangling, waiting };
  }

  /** Frees the dependents, then lets their owner go. */
  #orphan(owner: StoredObject): void {
    for (const dependent of this.#dependentsOf(owner.uid)) {
      this.#dropReferences(
        dependent,
        (dependent.owners ?? []).filter(({ uid }) => uid === owner.uid),
      );
    }
    this.#dropFinalizer(owner, ORPHAN);
  }

  /** Deletes the dependents, and lets the owner go when none blocks it. */
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
      const kept = (metadata.ownerReferences ?? []).filter(({ uid }) =>
        !gone.has(uid)
      );
      if (kept.length > 0) metadata.ownerReferences = kept;
      else delete metadata.ownerReferences;
    });
  }

  #dropFinalizer(stored: StoredObject, finalizer: string): void {
    this.#change(stored, ({ metadata }) => {
      const kept = (metadata.finalizers ?? []).filter((one) =>
        one !== finalizer
      );
      if (kept.length > 0) metadata.finalizers = kept;
      else delete metadata.finalizers;
    });
  }

  #change(
    stored: StoredObject,
    change: (object: ReturnType<StoredObject["parse"]>) => void,
  ): void {
    updateObject(this.#request(stored), {
      options: internalWrite(MANAGER),
      conditional: false,
      mayCreate: false,
      uid: stored.uid,
      next: (live) => {
        change(live);
        return live;
      },
    });
  }

  #request(stored: StoredObject) {
    const { resources } = this.#context;
    const { group, plural } = stored.definition;
    return internalRequest(
      this.#context,
      resources.find(group, plural) ?? stored.definition,
      stored,
    );
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
