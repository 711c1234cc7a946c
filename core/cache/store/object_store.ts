import type { Kind } from "../../api/kind.ts";
import type { LabelRequirement } from "../../api/label_requirement.ts";
import { labelRequirements, matchesLabels } from "../../api/label_selector.ts";
import type { KubernetesObject } from "../../api/object.ts";
import type { ObjectKey } from "../../api/object_key.ts";
import type { ByteRange } from "../../json/byte_range.ts";
import type { ObjectHeader } from "../../json/object_header.ts";
import type { BodyCopy } from "./body_copy.ts";
import type { IndexDefinition } from "./object_indexes.ts";
import { ObjectFetcher } from "./object_fetcher.ts";
import type {
  ObjectStoreOptions,
  PutOptions,
  PutOutcome,
  StoreListOptions,
} from "./object_store_options.ts";
import { RelistMarks } from "./relist_marks.ts";
import type { ObjectTable } from "./object_table.ts";
import type { StoreUsage } from "./store_usage.ts";
import { StoredObjects } from "./stored_objects.ts";

export type { IndexDefinition, IndexFunction } from "./object_indexes.ts";
export type * from "./object_store_options.ts";
export type { StoreUsage, TierUsage } from "./store_usage.ts";

/**
 * The objects of one kind, kept as bytes and decoded when they are read.
 *
 * Promises:
 * - what was put last is what a read gives, whatever tier it is in;
 * - keys and index entries are never evicted, only bodies are;
 * - reading never changes what a later put answers;
 * - objects given are frozen and stay valid; {@linkcode ObjectStore.copy} gives
 *   mutable ones.
 *
 * Wherever a key is wanted, a header will do, and saves decoding its name.
 *
 * @typeParam T The type of the objects.
 *
 * @example Keep an object
 * ```ts
 * import {
 *   EventScanner,
 *   ObjectStore,
 *   untyped,
 *   wholeRange,
 * } from "@coracle/operator/core";
 *
 * const store = new ObjectStore({
 *   kind: untyped({ group: "", version: "v1", kind: "ConfigMap" }),
 * });
 * const scanner = new EventScanner();
 * const json = '{"metadata":{"namespace":"default","name":"web","resourceVersion":"7"}}';
 * const outcome = store.put(scanner.scanObject(wholeRange(json)));
 * const object = store.get({ namespace: "default", name: "web" });
 * if (outcome !== "added" || object?.kind !== "ConfigMap") throw new Error();
 * ```
 */
export class ObjectStore<T extends KubernetesObject> {
  /** What the objects are. */
  readonly kind: Kind<T>;

  readonly #objects: StoredObjects<T>;
  readonly #slots: ObjectTable;
  readonly #marks: RelistMarks;
  readonly #fetcher: ObjectFetcher<T> | undefined;
  #place = -1;
  #isRegular = true;

  /**
   * Makes an empty store.
   *
   * @param options Which kind, and what is kept of it.
   * @throws {TypeError | SyntaxError} If an option or a path makes no sense.
   */
  constructor(options: ObjectStoreOptions<T>) {
    this.#objects = new StoredObjects(options);
    this.kind = options.kind;
    this.#slots = this.#objects.slots;
    this.#marks = new RelistMarks(this.#slots);
    this.#fetcher = options.fetch &&
      new ObjectFetcher(this.#objects, options.fetch);
  }

  /** How many objects there are, in all tiers. */
  get size(): number {
    return this.#slots.size;
  }

  /**
   * The place of the object that was put or deleted last. An object keeps its
   * place as long as it is there; see {@linkcode ObjectStore.nextPlace}.
   */
  get place(): number {
    return this.#place;
  }

  /**
   * Takes the object that a header describes; its bytes are copied.
   *
   * @throws {TypeError} If the object has no name.
   * @throws {SyntaxError} If it is not well-formed where a pruned path leads.
   */
  put(header: ObjectHeader, options?: PutOptions): PutOutcome {
    const { start, end } = header.string("name");
    if (start >= end) {
      throw new TypeError(
        `Cannot keep a ${this.kind.kind}: it must have a name: received none`,
      );
    }
    if (header.repeatsMetadata) this.#isRegular = false;
    const slot = this.#slots.find(header);
    if (slot < 0) {
      this.#place = this.#objects.add(header);
      this.#marks.see(this.#place);
      return "added";
    }
    this.#place = slot;
    this.#marks.see(slot);
    const order = this.#slots.compareVersion(slot, header);
    if (order === 0 && this.#isSame(slot, header)) return "unchanged";
    if (order > 0 && options?.force !== true) return "stale";
    this.#objects.replace(slot, header);
    return "updated";
  }

  /** Whether the JSON of all objects so far has `metadata` but once. */
  get isRegular(): boolean {
    return this.#isRegular;
  }

  /** Removes an object; tells whether it was there. */
  delete(key: ObjectKey | ObjectHeader): boolean {
    const slot = this.#slots.find(key);
    if (slot < 0) return false;
    this.#place = slot;
    this.#objects.remove(slot);
    return true;
  }

  /** Removes everything. */
  clear(): void {
    for (const slot of this.#objects.slotsIn(undefined)) {
      this.#objects.remove(slot);
    }
  }

  /** Whether it knows an object of that key. */
  has(key: ObjectKey | ObjectHeader): boolean {
    return this.#slots.find(key) >= 0;
  }

  /** Whether another object is there under the name: one with another uid. */
  hasFormer(header: ObjectHeader): boolean {
    const slot = this.#slots.find(header);
    return slot >= 0 && !this.#slots.hasUid(slot, header);
  }

  /** The resourceVersion stored, without decoding. */
  resourceVersion(key: ObjectKey | ObjectHeader): string | undefined {
    const slot = this.#slots.find(key);
    return slot < 0 ? undefined : this.#slots.version(slot);
  }

  /** The uid stored, without decoding. */
  uid(key: ObjectKey | ObjectHeader): string | undefined {
    const slot = this.#slots.find(key);
    return slot < 0 ? undefined : this.#slots.uid(slot);
  }

  /**
   * The object, frozen; undefined if there is none.
   *
   * @throws {Error} If only its key is kept: use {@linkcode ObjectStore.read}.
   * @throws {SyntaxError} If its bytes are not well-formed.
   */
  get(key: ObjectKey | ObjectHeader): T | undefined {
    const slot = this.#slots.find(key);
    return slot < 0 ? undefined : this.#objects.get(slot);
  }

  /** The object, frozen; undefined also if only its key is kept. */
  find(key: ObjectKey | ObjectHeader): T | undefined {
    const slot = this.#slots.find(key);
    return slot < 0 ? undefined : this.#objects.find(slot);
  }

  /** A fresh object that the caller may change; else as `get`. */
  copy(key: ObjectKey | ObjectHeader): T | undefined {
    const slot = this.#slots.find(key);
    return slot < 0 ? undefined : this.#objects.copy(slot);
  }

  /**
   * The object, frozen, fetched if only its key is kept: then it is as new as
   * the server has it, which may be ahead of what was put. Undefined if there is
   * none, here or there.
   */
  async read(key: ObjectKey | ObjectHeader): Promise<T | undefined> {
    const slot = this.#slots.find(key);
    if (slot < 0) return undefined;
    const object = this.#objects.find(slot);
    if (object !== undefined || this.#fetcher === undefined) {
      return this.#objects.present(slot, object);
    }
    return await this.#fetcher.fetch(this.#slots.key(slot));
  }

  /**
   * Decodes any object of the kind into the form that reads give, frozen and
   * without the pruned paths, whether it is here or not.
   *
   * @throws {SyntaxError} If its bytes are not well-formed.
   */
  decode(header: ObjectHeader): T {
    return this.#objects.decode(header);
  }

  /**
   * The stored JSON where it lies, valid until any other call; undefined if
   * there is none.
   */
  body(key: ObjectKey | ObjectHeader): ByteRange | undefined {
    const slot = this.#slots.find(key);
    return slot < 0 ? undefined : this.#objects.body(slot);
  }

  /**
   * Keeps the stored JSON as it is now in a copy, which nothing that happens here
   * changes; tells whether there is any.
   */
  copyBody(key: ObjectKey | ObjectHeader, copy: BodyCopy): boolean {
    const slot = this.#slots.find(key);
    return slot >= 0 && this.#objects.copyBody(slot, copy);
  }

  /** The stored JSON, as a copy; undefined if there is none. */
  bytes(key: ObjectKey | ObjectHeader): Uint8Array | undefined {
    const body = this.body(key);
    return body && new Uint8Array(body.bytes.subarray(body.start, body.end));
  }

  /**
   * The header of an object, valid until any other call; a partial one if only
   * its key is kept; undefined if there is none.
   */
  header(key: ObjectKey | ObjectHeader): ObjectHeader | undefined {
    const slot = this.#slots.find(key);
    return slot < 0 ? undefined : this.headerAt(slot);
  }

  /** The first place in use from a place on, or -1: a walk over all objects. */
  nextPlace(place: number): number {
    return this.#slots.nextUsed(place);
  }

  /** The header of the object at a place in use, as `header` gives it. */
  headerAt(place: number): ObjectHeader {
    return this.#objects.header(place) ?? this.#objects.identity(place);
  }

  /** All keys, or those of one namespace. */
  *keys(namespace?: string): IterableIterator<ObjectKey> {
    for (const slot of this.#objects.slotsIn(namespace)) {
      yield this.#slots.key(slot);
    }
  }

  /**
   * Objects one after the other, each decoded when it is reached.
   *
   * @throws {Error} If only the key of one is kept.
   */
  *values(options: StoreListOptions = {}): IterableIterator<T> {
    const { namespace, labelSelector = [] } = options;
    const requirements = labelRequirements(labelSelector);
    for (const slot of this.#objects.slotsIn(namespace)) {
      if (requirements.length > 0 && !this.#matches(slot, requirements)) {
        continue;
      }
      yield this.#objects.peek(slot);
    }
  }

  /** Objects as an array; else as `values`. */
  list(options: StoreListOptions = {}): T[] {
    return [...this.values(options)];
  }

  /**
   * Adds an index over what is there and what will come.
   *
   * @throws {RangeError} If there is one of that name, or if only the keys of
   * some objects are kept.
   */
  addIndex(name: string, definition: IndexDefinition<T>): void {
    this.#objects.addIndex(name, definition);
  }

  /** Removes an index, if there is one of that name. */
  removeIndex(name: string): void {
    this.#objects.removeIndex(name);
  }

  /**
   * The objects that have a value in an index.
   *
   * @throws {RangeError} If there is no such index.
   */
  byIndex(name: string, value: string): T[] {
    const { indexes } = this.#objects;
    return indexes.postings(name).slots(value).map((slot) =>
      this.#objects.get(slot)
    );
  }

  /**
   * The keys of the objects that have a value in an index.
   *
   * @throws {RangeError} If there is no such index.
   */
  keysByIndex(name: string, value: string): ObjectKey[] {
    const { indexes } = this.#objects;
    return indexes.postings(name).slots(value).map((slot) =>
      this.#slots.key(slot)
    );
  }

  /** Every value of an index that some object has. */
  indexValues(name: string): string[] {
    return this.#objects.indexes.postings(name).values();
  }

  /** Begins a relist: what is put from now on counts as seen. */
  beginRelist(): void {
    this.#marks.begin();
  }

  /**
   * Ends a relist: removes what was not seen since its begin, unless it is
   * newer than the list.
   *
   * @param resourceVersion That of the list; if empty, nothing counts as newer.
   * @param onRemove Told of each object before it is removed, while it can
   * still be read.
   * @returns How many were removed.
   * @throws {Error} If no relist was begun.
   */
  sweep(resourceVersion: string, onRemove?: (key: ObjectKey) => void): number {
    return this.#marks.sweep(resourceVersion, (slot) => {
      onRemove?.(this.#slots.key(slot));
      this.#objects.remove(slot);
    });
  }

  /**
   * What a sweep would remove, one after the other: for those who remove it
   * themselves, with a word about each. Objects may be put and deleted between.
   *
   * @param resourceVersion That of the list, as for `sweep`.
   */
  *unseen(resourceVersion: string): Generator<ObjectKey, void, undefined> {
    for (const slot of this.#marks.unseen(resourceVersion)) {
      yield this.#slots.key(slot);
    }
  }

  /** How much memory is used by what. */
  usage(): StoreUsage {
    return this.#objects.usage();
  }

  /** Gives all memory back and leaves the budget. */
  close(): void {
    this.clear();
    this.#objects.close();
  }

  #matches(slot: number, requirements: readonly LabelRequirement[]): boolean {
    const header = this.#objects.header(slot);
    return matchesLabels(
      requirements,
      this.#objects.present(slot, header).labels,
    );
  }

  /** Whether a header of the stored version is that of the stored object. */
  #isSame(slot: number, header: ObjectHeader): boolean {
    return header.has("resourceVersion") && this.#slots.hasUid(slot, header);
  }
}
