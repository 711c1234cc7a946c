import type { GroupResource } from "../registry.ts";
import { type Change, History, type HistoryLimits } from "./history.ts";
import { SortedKeys } from "./sorted_keys.ts";
import type { StoredObject } from "./stored_object.ts";

/** Which objects of a collection to go through. */
export interface ScanRange {
  /** Only this namespace; undefined for all. */
  readonly namespace?: string | undefined;
  /** Only keys from this one on. */
  readonly start?: string | undefined;
  /** The state at this revision; undefined for the present one. */
  readonly revision?: number | undefined;
}

/** The objects of one resource and their recent past. */
export class Collection {
  readonly resource: GroupResource;
  readonly history: History;
  readonly #objects: Map<string, StoredObject> = new Map();
  readonly #keys: SortedKeys = new SortedKeys();
  /** The last state that was put together from the past. */
  #snapshot:
    | { revision: number; head: number; objects: readonly StoredObject[] }
    | undefined;
  #head: number;

  /**
   * @param resource Whose objects.
   * @param limits How much of the past to remember.
   * @param floors From which revisions on it can be watched, and listed.
   */
  constructor(
    resource: GroupResource,
    limits: HistoryLimits,
    floors: { readonly watch: number; readonly list: number },
  ) {
    this.resource = resource;
    this.history = new History(limits, floors);
    this.#head = floors.watch;
  }

  /** How many objects there are. */
  get size(): number {
    return this.#objects.size;
  }

  get(key: string): StoredObject | undefined {
    return this.#objects.get(key);
  }

  /** All objects in no particular order. */
  values(): IterableIterator<StoredObject> {
    return this.#objects.values();
  }

  /** Makes a change the present state; the store calls it. */
  apply(change: Change): void {
    const { key } = change.object;
    if (change.type === "DELETED") {
      this.#objects.delete(key);
      this.#keys.delete(key);
    } else {
      if (!this.#objects.has(key)) this.#keys.add(key);
      this.#objects.set(key, change.object);
    }
    this.#head = change.revision;
    this.history.add(change);
  }

  /** Puts an object there without a change, for loading from a file. */
  restore(object: StoredObject): void {
    if (!this.#objects.has(object.key)) this.#keys.add(object.key);
    this.#objects.set(object.key, object);
    this.#head = Math.max(this.#head, object.revision);
  }

  /** Removes an object without a change, for loading from a file. */
  forget(key: string): void {
    this.#objects.delete(key);
    this.#keys.delete(key);
  }

  /**
   * The objects of a range in the order of their keys.
   *
   * A revision must not be before `history.listFloor`.
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
