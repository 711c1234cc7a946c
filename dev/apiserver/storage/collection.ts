import type { GroupResource } from "../registry.ts";
import { type Change, History, type HistoryLimits } from "./history.ts";
import { SortedKeys } from "./sorted_keys.ts";
import type { StoredObject } from "./stored_object.ts";

/** Range of a scan. */
export interface ScanRange {
  /** Namespace of the range; undefined for all namespaces. */
  readonly namespace?: string | undefined;
  /** First key of the range. */
  readonly start?: string | undefined;
  /** Revision of the state; undefined for the current one. */
  readonly revision?: number | undefined;
}

/**
 * Objects of one resource with their recent history. Objects without changes in
 * the history are held compressed.
 */
export class Collection {
  readonly resource: GroupResource;
  readonly history: History;
  readonly #objects: Map<string, StoredObject> = new Map();
  readonly #keys: SortedKeys = new SortedKeys();
  /** Managed objects by namespace and manager, from the first use on. */
  #managed: Map<string, Set<string>> | undefined;
  /** Number of objects that are restored without compression. */
  readonly #limit: number;
  /** Past state that was reconstructed last. */
  #snapshot:
    | { revision: number; head: number; objects: readonly StoredObject[] }
    | undefined;
  #head: number;

  /**
   * Creates an empty collection.
   *
   * @param resource Resource of the objects.
   * @param limits Limits of the history.
   * @param floors Lowest revisions for watches and for lists.
   */
  constructor(
    resource: GroupResource,
    limits: HistoryLimits,
    floors: { readonly watch: number; readonly list: number },
  ) {
    this.resource = resource;
    this.history = new History(limits, floors, (object) => {
      if (this.#objects.get(object.key) === object) object.compress();
    });
    this.#limit = limits.changes;
    this.#head = floors.watch;
  }

  /** Number of objects. */
  get size(): number {
    return this.#objects.size;
  }

  get(key: string): StoredObject | undefined {
    return this.#objects.get(key);
  }

  /** All objects, in no particular order. */
  values(): IterableIterator<StoredObject> {
    return this.#objects.values();
  }

  /** Applies a change to the current state; called by the store. */
  apply(change: Change): void {
    const { key } = change.object;
    this.#unindex(key);
    if (change.type === "DELETED") {
      this.#objects.delete(key);
      this.#keys.delete(key);
    } else {
      if (!this.#objects.has(key)) this.#keys.add(key);
      this.#objects.set(key, change.object);
      this.#index(change.object);
    }
    this.#head = change.revision;
    this.history.add(change);
  }

  /** Adds an object without recording a change, when the store is loaded from a file. */
  restore(object: StoredObject): void {
    if (!this.#objects.has(object.key)) this.#keys.add(object.key);
    this.#unindex(object.key);
    this.#objects.set(object.key, object);
    this.#index(object);
    this.#head = Math.max(this.#head, object.revision);
    if (this.size > this.#limit) object.compress();
  }

  /** Takes over the objects of another collection at a revision, and their history. */
  resumeFrom(other: Collection, revision: number): void {
    for (const object of other.scan({ revision })) this.restore(object);
    this.history.resumeFrom(other.history, revision);
    this.#head = Math.min(other.#head, revision);
  }

  /**
   * Objects of a range, ordered by key. The revision must not be lower than
   * `history.listFloor`.
   */
  scan(range: ScanRange): readonly StoredObject[] {
    const { namespace, revision } = range;
    const prefix = namespace === undefined ? "" : `${namespace}/`;
    const start = range.start === undefined || range.start < prefix
      ? prefix
      : range.start;
    // "0" is the character after "/".
    const end = namespace === undefined ? undefined : `${namespace}0`;
    if (revision === undefined || revision >= this.#head) {
      return this.#keys.range(start, end).map((key) =>
        this.#objects.get(key) as StoredObject
      );
    }
    return this.#stateAt(revision).filter(({ key }) =>
      key >= start && (end === undefined || key < end)
    );
  }

  /**
   * Objects of a namespace that one of some controllers manages, ordered by key.
   *
   * @param managers UIDs; undefined for the objects that no controller manages.
   */
  managedBy(
    namespace: string,
    managers: readonly (string | undefined)[],
  ): readonly StoredObject[] {
    if (this.#managed === undefined) {
      this.#managed = new Map();
      for (const object of this.#objects.values()) this.#index(object);
    }
    const keys = managers.flatMap((manager) => [
      ...this.#managed!.get(`${namespace}/${manager ?? ""}`) ?? [],
    ]);
    return keys.sort().map((key) => this.#objects.get(key) as StoredObject);
  }

  #index({ key, namespace, manager = "" }: StoredObject): void {
    if (this.#managed === undefined) return;
    const id = `${namespace}/${manager}`;
    const keys = this.#managed.get(id);
    if (keys === undefined) this.#managed.set(id, new Set([key]));
    else keys.add(key);
  }

  #unindex(key: string): void {
    const object = this.#managed && this.#objects.get(key);
    if (object === undefined) return;
    const id = `${object.namespace}/${object.manager ?? ""}`;
    const keys = this.#managed?.get(id);
    keys?.delete(key);
    if (keys?.size === 0) this.#managed?.delete(id);
  }

  #stateAt(revision: number): readonly StoredObject[] {
    const known = this.#snapshot;
    if (known?.revision === revision && known.head === this.#head) {
      return known.objects;
    }
    const state = new Map(this.#objects);
    for (const change of this.history.since(revision).reverse()) {
      if (change.previous) state.set(change.object.key, change.previous);
      else state.delete(change.object.key);
    }
    const objects = [...state.values()].sort((a, b) => a.key < b.key ? -1 : 1);
    this.#snapshot = { revision, head: this.#head, objects };
    return objects;
  }
}
