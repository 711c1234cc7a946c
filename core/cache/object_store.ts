import type { Kind } from "../api/kind.ts";
import type { LabelRequirement } from "../api/label_requirement.ts";
import { labelRequirements, matchesLabels } from "../api/label_selector.ts";
import type { KubernetesObject } from "../api/object.ts";
import { keyText, type ObjectKey } from "../api/object_key.ts";
import { type ByteRange, wholeRange } from "../json/byte_range.ts";
import { EventScanner } from "../json/event_scanner.ts";
import type { ObjectHeader } from "../json/object_header.ts";
import { BodyWriter } from "./body_writer.ts";
import type { BudgetMember, MemoryBudget } from "./memory_budget.ts";
import { ObjectBodies } from "./object_bodies.ts";
import { ObjectDecoder } from "./object_decoder.ts";
import { type IndexDefinition, ObjectIndexes } from "./object_indexes.ts";
import type {
  FetchObject,
  ObjectStoreOptions,
  PutOptions,
  PutOutcome,
  StoreListOptions,
} from "./object_store_options.ts";
import { RelistMarks } from "./relist_marks.ts";
import { PAGE_MASK } from "./slot_page.ts";
import { SlotTable } from "./slot_table.ts";
import type { StoreUsage } from "./store_usage.ts";

export type { IndexDefinition, IndexFunction } from "./object_indexes.ts";
export type * from "./object_store_options.ts";
export type { StoreUsage, TierUsage } from "./store_usage.ts";

/** How much of decoded objects is kept where there is no budget. */
const DEFAULT_DECODED_BYTES = 8 * 1024 * 1024;
/** How much of a budget decoded objects of one store may take. */
const DECODED_SHARE = 1 / 8;
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
export class ObjectStore<T extends KubernetesObject> implements BudgetMember {
  /** What the objects are. */
  readonly kind: Kind<T>;

  readonly #slots: SlotTable = new SlotTable();
  readonly #bodies: ObjectBodies = new ObjectBodies(this.#slots);
  readonly #writer: BodyWriter;
  readonly #decoder: ObjectDecoder<T>;
  readonly #indexes: ObjectIndexes<T>;
  readonly #scanner: EventScanner = new EventScanner();
  readonly #budget: MemoryBudget | undefined;
  readonly #fetch: FetchObject | undefined;
  /** Fetches under way, by key. */
  readonly #fetching: Map<string, Promise<T | undefined>> = new Map();
  /** What the budget was told last. */
  #charged = -1;
  readonly #marks: RelistMarks = new RelistMarks(this.#slots);

  /**
   * @param options Which kind, and what is kept of it.
   * @throws {SyntaxError} If a prune path is malformed.
   */
  constructor(options: ObjectStoreOptions<T>) {
    const { kind, prune = [], indexes = {}, budget, fetch } = options;
    this.kind = kind;
    this.#writer = new BodyWriter(kind, prune);
    this.#decoder = new ObjectDecoder(this.#bodies, this.#writer);
    this.#indexes = new ObjectIndexes(options.onIndexError ?? (() => {}));
    this.#budget = budget;
    this.#fetch = fetch;
    for (const [name, definition] of Object.entries(indexes)) {
      this.#indexes.add(name, definition);
    }
    this.#charge();
  }

  /** How many objects there are, in all tiers. */
  get size(): number {
    return this.#slots.size;
  }

  /**
   * Takes the object that a header describes; its bytes are copied.
   *
   * @throws {TypeError} If the object has no name.
   * @throws {SyntaxError} If it is not well-formed where a pruned path leads.
   */
  put(header: ObjectHeader, options: PutOptions = {}): PutOutcome {
    const { start, end } = header.string("name");
    if (start >= end) {
      throw new TypeError(
        `Cannot keep a ${this.kind.kind}: it must have a name: received none`,
      );
    }
    const slot = this.#slots.find(header);
    if (slot < 0) return this.#add(header);
    this.#marks.see(slot);
    const order = this.#slots.compareVersion(slot, header);
    if (order === 0 && this.#isSame(slot, header)) return "unchanged";
    if (order > 0 && options.force !== true) return "stale";
    this.#set(slot, header, this.#writer.write(header));
    return "updated";
  }

  /** Removes an object; tells whether it was there. */
  delete(key: ObjectKey | ObjectHeader): boolean {
    const slot = this.#slots.find(key);
    if (slot < 0) return false;
    this.#remove(slot);
    this.#charge();
    return true;
  }

  /** Removes everything. */
  clear(): void {
    for (let slot = this.#slots.nextUsed(0); slot >= 0;) {
      this.#remove(slot);
      slot = this.#slots.nextUsed(slot + 1);
    }
    this.#charge();
  }

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

  /** The generation stored, without decoding; 0 for kinds without it. */
  generation(key: ObjectKey | ObjectHeader): number | undefined {
    const slot = this.#slots.find(key);
    return slot < 0
      ? undefined
      : this.#slots.page(slot).generation[slot & PAGE_MASK];
  }

  /**
   * The object, frozen; undefined if there is none.
   *
   * @throws {Error} If only its key is kept: use {@linkcode ObjectStore.read}.
   * @throws {SyntaxError} If its bytes are not well-formed.
   */
  get(key: ObjectKey | ObjectHeader): T | undefined {
    const slot = this.#slots.find(key);
    if (slot < 0) return undefined;
    const object = this.#present(slot, this.#decoder.get(slot));
    this.#charge();
    return object;
  }

  /** A fresh object that the caller may change; else as `get`. */
  copy(key: ObjectKey | ObjectHeader): T | undefined {
    const slot = this.#slots.find(key);
    return slot < 0 ? undefined : this.#present(slot, this.#decoder.copy(slot));
  }

  /** The object, frozen, fetched if only its key is kept. */
  async read(key: ObjectKey | ObjectHeader): Promise<T | undefined> {
    const slot = this.#slots.find(key);
    if (slot < 0) return undefined;
    const fetch = this.#fetch;
    const object = this.#decoder.get(slot);
    this.#charge();
    if (object !== undefined || fetch === undefined) {
      return this.#present(slot, object);
    }
    const plainKey = this.#slots.key(slot);
    const text = keyText(plainKey);
    const underWay = this.#fetching.get(text);
    if (underWay !== undefined) return await underWay;
    const fetching = this.#fetchObject(plainKey, fetch)
      .finally(() => this.#fetching.delete(text));
    this.#fetching.set(text, fetching);
    return await fetching;
  }

  /**
   * Decodes any object of the kind into the form that reads give, frozen and
   * without the pruned paths, whether it is here or not.
   *
   * @throws {SyntaxError} If its bytes are not well-formed.
   */
  decode(header: ObjectHeader): T {
    return this.#decoder.decode(this.#writer.write(header));
  }

  /**
   * The stored JSON where it lies, valid until any other call; undefined if
   * there is none.
   */
  body(key: ObjectKey | ObjectHeader): ByteRange | undefined {
    const slot = this.#slots.find(key);
    return slot < 0 ? undefined : this.#bodies.read(slot);
  }

  /** The stored JSON, as a copy; undefined if there is none. */
  bytes(key: ObjectKey | ObjectHeader): Uint8Array | undefined {
    const slot = this.#slots.find(key);
    const body = slot < 0 ? undefined : this.#bodies.read(slot);
    return body && new Uint8Array(body.bytes.subarray(body.start, body.end));
  }

  /**
   * The header of the stored JSON, valid until any other call; undefined if
   * there is none.
   */
  header(key: ObjectKey | ObjectHeader): ObjectHeader | undefined {
    const slot = this.#slots.find(key);
    const body = slot < 0 ? undefined : this.#bodies.read(slot);
    return body && this.#scanner.scanObject(body);
  }

  /** All keys, or those of one namespace. */
  *keys(namespace?: string): IterableIterator<ObjectKey> {
    for (const slot of this.#slotsOf(namespace)) yield this.#slots.key(slot);
  }

  /**
   * Objects one after the other, each decoded when it is reached.
   *
   * @throws {Error} If only the key of one is kept.
   */
  *values(options: StoreListOptions = {}): IterableIterator<T> {
    const { namespace, labelSelector = [] } = options;
    const requirements = labelRequirements(labelSelector);
    for (const slot of this.#slotsOf(namespace)) {
      if (requirements.length > 0 && !this.#matches(slot, requirements)) {
        continue;
      }
      yield this.#present(slot, this.#decoder.peek(slot)) as T;
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
    if (this.#bodies.keyOnly.objects > 0) {
      throw new RangeError(
        `Cannot add an index: it must be there before only keys are kept: received "${name}"`,
      );
    }
    this.#indexes.add(name, definition);
    for (const slot of this.#slotsOf(undefined)) {
      const body = this.#bodies.read(slot) as ByteRange;
      this.#index(slot, this.#scanner.scanObject(body), name);
    }
    this.#charge();
  }

  /** Removes an index, if there is one of that name. */
  removeIndex(name: string): void {
    this.#indexes.delete(name);
    this.#charge();
  }

  /** @throws {RangeError} If there is no such index. */
  byIndex(name: string, value: string): T[] {
    return this.#indexes.postings(name).slots(value).map((slot) =>
      this.#present(slot, this.#decoder.get(slot)) as T
    );
  }

  /** @throws {RangeError} If there is no such index. */
  keysByIndex(name: string, value: string): ObjectKey[] {
    return this.#indexes.postings(name).slots(value).map((slot) =>
      this.#slots.key(slot)
    );
  }

  /** Every value of an index that some object has. */
  indexValues(name: string): string[] {
    return this.#indexes.postings(name).values();
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
    const removed = this.#marks.sweep(resourceVersion, (slot) => {
      onRemove?.(this.#slots.key(slot));
      this.#remove(slot);
    });
    this.#charge();
    return removed;
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
    const { bytes, compressed, keyOnly } = this.#bodies;
    const decoded = this.#decoder.usage;
    const index = this.#slots.allocatedBytes + this.#indexes.allocatedBytes;
    const total = index + bytes.bytes + compressed.bytes + decoded.bytes;
    return { decoded, bytes, compressed, keyOnly, index, total };
  }

  /** Gives all memory back and leaves the budget. */
  close(): void {
    this.clear();
    this.#budget?.leave(this);
  }

  /** For the budget: how many bytes could sink or be forgotten. */
  get sinkable(): number {
    const { bytes, compressed } = this.#bodies;
    return this.#decoder.usage.bytes +
      (bytes.objects > 0 ? bytes.bytes : 0) +
      (this.#fetch !== undefined && compressed.objects > 0
        ? compressed.bytes
        : 0);
  }

  /** For the budget: does one step of sinking. */
  sink(): boolean {
    const bodies = this.#bodies;
    if (bodies.bytes.objects > 0) bodies.sink();
    else if (this.#fetch !== undefined && bodies.compressed.objects > 0) {
      bodies.drop();
    } else this.#decoder.shrink();
    this.#charge();
    return this.sinkable > 0;
  }

  #add(header: ObjectHeader): PutOutcome {
    const body = this.#writer.write(header); // it may throw: before anything
    const slot = this.#slots.add();
    this.#set(slot, header, body);
    this.#marks.see(slot);
    return "added";
  }

  /** Keeps the object of a header in a slot. */
  #set(slot: number, header: ObjectHeader, body: ByteRange): void {
    const slots = this.#slots;
    this.#bodies.write(slot, body);
    slots.setUid(slot, header);
    slots.setVersion(slot, header);
    slots.page(slot).generation[slot & PAGE_MASK] = header.generation ?? 0;
    this.#decoder.forget(slot);
    if (!this.#indexes.isEmpty) this.#index(slot, header);
    this.#charge();
  }

  #index(slot: number, header: ObjectHeader, only?: string): void {
    const object = () => this.#decoder.get(slot) as T;
    this.#indexes.update(slot, { header, object, only });
  }

  #remove(slot: number): void {
    this.#indexes.remove(slot);
    this.#decoder.forget(slot);
    this.#bodies.remove(slot);
    this.#slots.remove(slot);
  }

  *#slotsOf(namespace: string | undefined): Generator<number> {
    const slots = this.#slots;
    for (
      let slot = slots.nextUsed(0);
      slot >= 0;
      slot = slots.nextUsed(slot + 1)
    ) {
      if (namespace === undefined || slots.isIn(slot, namespace)) yield slot;
    }
  }

  #matches(slot: number, requirements: readonly LabelRequirement[]): boolean {
    const body = this.#present(slot, this.#bodies.read(slot)) as ByteRange;
    const { labels } = this.#scanner.scanObject(body);
    return matchesLabels(requirements, labels);
  }

  /** What is there of an object, unless only its key is kept. */
  #present<V>(slot: number, value: V | undefined): V | undefined {
    if (value === undefined) {
      throw new Error(
        `Cannot get ${this.kind.kind} ${
          keyText(this.#slots.key(slot))
        } at once: only its key is kept, and read() would fetch it: received a call of get`,
      );
    }
    return value;
  }

  /** Whether a header of the stored version is that of the stored object. */
  #isSame(slot: number, header: ObjectHeader): boolean {
    return header.has("resourceVersion") && this.#slots.hasUid(slot, header);
  }

  async #fetchObject(
    key: ObjectKey,
    fetch: FetchObject,
  ): Promise<T | undefined> {
    const bytes = await fetch(key);
    const slot = this.#slots.find(key);
    if (bytes === undefined || slot < 0) return undefined;
    const header = this.#scanner.scanObject(wholeRange(bytes));
    if (this.#slots.compareVersion(slot, header) > 0) {
      // An event came meanwhile and told more.
      const object = this.#decoder.get(slot);
      if (object !== undefined) return object;
    }
    // The index stays as it is: the event of this version is yet to come.
    const body = this.#writer.write(header);
    const object = this.#slots.hasUid(slot, header)
      ? this.#decoder.keep(slot, body)
      : this.#decoder.decode(body);
    this.#charge();
    return object;
  }

  /** Tells the budget what is used. */
  #charge(): void {
    const budget = this.#budget;
    if (budget === undefined) {
      this.#decoder.limit = DEFAULT_DECODED_BYTES;
      return;
    }
    this.#decoder.limit = budget.limit * DECODED_SHARE;
    const held = this.#slots.allocatedBytes + this.#indexes.allocatedBytes +
      this.#bodies.allocatedBytes + this.#decoder.usage.bytes;
    if (held !== this.#charged || budget.isExceeded) {
      this.#charged = held;
      budget.charge(this, held);
    }
  }
}
