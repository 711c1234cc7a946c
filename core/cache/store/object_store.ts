/**
 * Store of a cache: objects as bytes in memory tiers, their keys and indexes,
 * and the memory budget that stores share.
 *
 * Guarantees: about 64 bytes per object for its key and version, outside the
 * JavaScript heap; bodies move to lower tiers when the budget is exceeded, keys
 * never do; no step takes longer than a few milliseconds.
 *
 * Borrow rule: byte ranges, headers and results of changes that a store returns
 * are valid until its next call, decoded objects indefinitely.
 *
 * It imports `api` and `json` only: it knows neither clients nor informers.
 *
 * @module
 */
import type { Kind } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { keyText, type ObjectKey } from "../../api/object_key.ts";
import {
  type ByteRange,
  equalRanges,
  parseRange,
  wholeRange,
} from "../../json/byte_range.ts";
import { EventScanner } from "../../json/event_scanner.ts";
import type { ObjectHeader } from "../../json/object_header.ts";
import type { AdoptedPage, PageEntry } from "./adopted_page.ts";
import { BodyCopy, BodyWriter } from "./bodies.ts";
import type { BudgetMember, MemoryBudget } from "./memory_budget.ts";
import { ObjectDecoder } from "./object_decoder.ts";
import {
  type IndexDefinition,
  ObjectIndexes,
  type OnIndexError,
} from "./object_indexes.ts";
import { ObjectTable } from "./object_table.ts";
import type { StoreUsage } from "./store_usage.ts";
import { Tiers } from "./tiers.ts";

/** Size limit of decoded objects of a store without a budget, in bytes. */
const DEFAULT_DECODED_BYTES = 8 * 1024 * 1024;
/** Share of a budget that decoded objects of one store may take. */
const DECODED_SHARE = 1 / 8;
/**
 * Number of fetches after which a read fails because the server keeps answering
 * with an older state than the watch delivered. Both causes are rare: an object
 * that changes faster than it can be read, and a server that has lost its latest
 * states.
 */
const MAX_FETCHES = 5;

const CONCURRENT_READS = 16;

/**
 * Function that fetches the JSON of an object whose body is not stored; undefined
 * if the object was deleted.
 */
export type FetchObject = (key: ObjectKey) => Promise<Uint8Array | undefined>;

export interface ObjectStoreOptions<T extends KubernetesObject> {
  /** Kind of the objects; restored on items of lists, which leave it out. */
  readonly kind: Kind<T>;
  /** Field paths that are not stored; reading one throws an error that names it. */
  readonly prune?: readonly string[] | undefined;
  /**
   * Memory budget that this store shares with others. Without one all objects
   * stay uncompressed, and up to 8 MiB of decoded objects are kept.
   */
  readonly budget?: MemoryBudget | undefined;
  /**
   * Function that fetches an object. With it, the store may keep only the keys of
   * objects that do not fit into the budget; `read` then fetches them.
   */
  readonly fetch?: FetchObject | undefined;
  /**
   * Callback for exceptions of index functions; the object then has no values in
   * that index.
   */
  readonly onIndexError?: OnIndexError | undefined;
}

export interface PutOptions {
  /**
   * Whether an older resourceVersion replaces a newer one, for instance after the
   * versions of the server have started over.
   */
  readonly force?: boolean | undefined;
  /**
   * Whether a different state of the same resourceVersion replaces the stored one,
   * for instance when a restored server assigns versions a second time.
   */
  readonly rewrite?: boolean | undefined;
  /** Whether a body that cannot be read is replaced at the same resourceVersion. */
  readonly repair?: boolean | undefined;
  /** Whether the replaced state is copied to {@linkcode StoreChange.previous}. */
  readonly keepPrevious?: boolean | undefined;
}

/**
 * Outcome of a put or delete:
 *
 * - `added`, `updated` and `deleted`: the store changed;
 * - `unchanged`: the stored object has the same UID and resourceVersion;
 * - `stale`: a newer version is stored;
 * - `recreated`: the stored object of the same name has another UID. It must be
 *   deleted before the new one can be put;
 * - `absent`: there was nothing to delete.
 */
export type StoreOutcome =
  | "added"
  | "updated"
  | "unchanged"
  | "stale"
  | "recreated"
  | "deleted"
  | "absent";

/**
 * Result of a put or delete. A store reuses it: it is valid until the next put
 * or delete.
 */
export interface StoreChange {
  /** Outcome; only `added`, `updated` and `deleted` changed the store. */
  readonly outcome: StoreOutcome;
  /** Slot of the object, which it keeps while it is stored; -1 if absent. */
  readonly slot: number;
  /**
   * JSON of the replaced or deleted state, with `keepPrevious` and if its body was
   * stored. It is valid until the next change with `keepPrevious`.
   */
  readonly previous: ByteRange | undefined;
}

/** Follower of all changes of a store. */
export interface StoreFollower {
  /** Called after the object in a slot was stored. */
  written(slot: number): void;
  /** Called before an object is removed from its slot. */
  removed(slot: number): void;
  /** Called if the body of an object could not be read. */
  unreadable(slot: number, error: unknown): void;
}

/** Number of stores that were created. */
let created = 0;

/**
 * Store of the objects of one kind: kept as JSON bytes, decoded when they are
 * read.
 *
 * Guarantees:
 * - a read returns the state that was put last, whatever tier it is in;
 * - keys and index entries are never evicted, only bodies are;
 * - reads never change the outcome of a later put;
 * - objects returned are frozen and stay valid.
 *
 * Methods with a key accept a header, too, whose name is then not decoded.
 * Headers that the store returns are borrowed: they are valid until its next call.
 *
 * It consists of a table of all objects by slot, the bodies in their tiers, a
 * decoder with a cache of decoded objects, and the indexes.
 */
export class ObjectStore<T extends KubernetesObject> implements BudgetMember {
  readonly kind: Kind<T>;
  /** Number of the store, different for all stores of a process. */
  readonly number: number = ++created;
  /** Follower of the changes; undefined if nothing follows them. */
  follower: StoreFollower | undefined;

  readonly #table: ObjectTable = new ObjectTable();
  readonly #tiers: Tiers = new Tiers(this.#table);
  readonly #indexes: ObjectIndexes<T>;
  readonly #writer: BodyWriter;
  readonly #decoder: ObjectDecoder<T>;
  readonly #scanner: EventScanner = new EventScanner();
  /** Budget that it shares; undefined once it was closed. */
  #budget: MemoryBudget | undefined;
  readonly #fetch: FetchObject | undefined;
  /** Fetches in progress, by key; concurrent reads of an object share one. */
  readonly #fetching: Map<string, Promise<T | undefined>> = new Map();
  readonly #change: { -readonly [F in keyof StoreChange]: StoreChange[F] } = {
    outcome: "absent",
    slot: -1,
    previous: undefined,
  };
  readonly #previous: BodyCopy = new BodyCopy();
  /** Usage that was last reported to the budget, in bytes. */
  #charged = -1;
  #isRegular = true;

  /** @throws {SyntaxError} If a path to prune is malformed. */
  constructor(options: ObjectStoreOptions<T>) {
    const { kind, prune = [], budget } = options;
    this.kind = kind;
    this.#writer = new BodyWriter(kind, prune);
    this.#decoder = new ObjectDecoder(this.#tiers, this.#writer);
    this.#indexes = new ObjectIndexes(options.onIndexError ?? (() => {}));
    this.#budget = budget;
    this.#fetch = options.fetch;
    this.#charge();
  }

  get size(): number {
    return this.#table.size;
  }

  /** Whether the JSON of all objects so far has `metadata` only once. */
  get isRegular(): boolean {
    return this.#isRegular;
  }

  /**
   * Stores the object of a header; its bytes are copied.
   *
   * @throws {TypeError} If the object has no name.
   * @throws {SyntaxError} If it is not well-formed where a pruned path leads.
   */
  put(header: ObjectHeader, options?: PutOptions): StoreChange {
    const { start, end } = header.string("name");
    if (start >= end) {
      throw new TypeError(
        `Cannot store ${this.kind.kind}: it must have a name`,
      );
    }
    if (header.repeatsMetadata) this.#isRegular = false;
    const table = this.#table;
    const found = table.lookup(header);
    if (found.slot < 0) {
      const body = this.#writer.take(header); // may throw: before any change
      const slot = table.add(found);
      table.setUid(slot, header);
      table.markSeen(slot);
      this.#write(slot, header, body);
      return this.#changed("added", slot);
    }
    const { slot } = found;
    table.markSeen(slot);
    if (!table.hasUid(slot, header)) return this.#changed("recreated", slot);
    const order = table.compareVersion(slot, header);
    if (
      order === 0 && header.has("resourceVersion") &&
      !(options?.rewrite === true && this.#differs(slot, header)) &&
      !(options?.repair === true && !this.#isReadable(slot))
    ) {
      return this.#changed("unchanged", slot);
    }
    if (order > 0 && options?.force !== true) {
      return this.#changed("stale", slot);
    }
    const body = this.#writer.take(header);
    const isCopied = options?.keepPrevious === true &&
      this.#tiers.copy(slot, this.#previous);
    this.#write(slot, header, body);
    return this.#changed("updated", slot, isCopied);
  }

  #differs(slot: number, header: ObjectHeader): boolean {
    const body = this.#writer.write(header);
    const kept = this.#tiers.tryRead(slot);
    return kept === undefined || !equalRanges(body, kept);
  }

  #isReadable(slot: number): boolean {
    try {
      this.#decoder.peek(slot);
      return true;
    } catch {
      return false;
    }
  }

  delete(
    key: ObjectKey | ObjectHeader,
    options?: Pick<PutOptions, "keepPrevious">,
  ): StoreChange {
    const slot = this.#table.find(key);
    if (slot < 0) return this.#changed("absent", slot);
    const isCopied = options?.keepPrevious === true &&
      this.#tiers.copy(slot, this.#previous);
    this.#remove(slot);
    return this.#changed("deleted", slot, isCopied);
  }

  has(key: ObjectKey | ObjectHeader): boolean {
    return this.#table.find(key) >= 0;
  }

  /** Keys, UIDs and versions of the objects by their slots. */
  get slots(): Pick<
    ObjectTable,
    | "compareVersion"
    | "copyUid"
    | "find"
    | "generation"
    | "hasUid"
    | "reserve"
    | "uid"
    | "version"
  > {
    return this.#table;
  }

  /** Stored resourceVersion, without decoding the object. */
  resourceVersion(key: ObjectKey | ObjectHeader): string | undefined {
    const slot = this.#table.find(key);
    return slot < 0 ? undefined : this.#table.version(slot);
  }

  /**
   * Stored object, frozen; undefined if absent.
   *
   * @throws {Error} If only its key is stored: use {@linkcode ObjectStore.read}.
   * @throws {SyntaxError} If its bytes are not well-formed.
   */
  get(key: ObjectKey | ObjectHeader): T | undefined {
    const slot = this.#table.find(key);
    return slot < 0 ? undefined : this.#present(slot, this.#decoded(slot));
  }

  /** Stored object, frozen; undefined if absent or if only its key is stored. */
  find(key: ObjectKey | ObjectHeader): T | undefined {
    const slot = this.#table.find(key);
    return slot < 0 ? undefined : this.#decoded(slot);
  }

  /**
   * Stored object, frozen; fetched from the server if only its key is stored. A
   * fetched object may be newer than the state that was put. Undefined if there is
   * no such object, in the store or on the server.
   *
   * @throws {Error} If the server repeatedly answers with an older state than the
   * stored one.
   */
  async read(key: ObjectKey | ObjectHeader): Promise<T | undefined> {
    const slot = this.#table.find(key);
    if (slot < 0) return undefined;
    const object = this.#decoded(slot);
    if (object !== undefined || this.#fetch === undefined) {
      return this.#present(slot, object);
    }
    const found = this.#table.key(slot);
    const text = keyText(found);
    let fetching = this.#fetching.get(text);
    if (fetching === undefined) {
      fetching = this.#fetchObject(found, this.#fetch)
        .finally(() => this.#fetching.delete(text));
      this.#fetching.set(text, fetching);
    }
    return await fetching;
  }

  /** All objects, or those of one namespace; fetched if only keys are stored. */
  async readList(namespace?: string): Promise<T[]> {
    return this.#tiers.keyOnly.objects === 0
      ? this.list(namespace)
      : await this.#readEach(this.keys(namespace));
  }

  /** Objects with a value in an index; fetched if only their keys are stored. */
  async readByIndex(name: string, value: string): Promise<T[]> {
    return await this.#readEach(this.keysByIndex(name, value));
  }

  /** Reads objects, a few at a time, in the order of their keys. */
  async #readEach(keys: Iterable<ObjectKey>): Promise<T[]> {
    const objects: (T | undefined)[] = [];
    const waiting = [...keys].entries();
    let failed = false;
    const readInTurn = async () => {
      for (const [at, key] of waiting) {
        if (failed) return;
        objects[at] = await this.read(key);
      }
    };
    try {
      await Promise.all(Array.from({ length: CONCURRENT_READS }, readInTurn));
    } finally {
      failed = true; // the others are not awaited
    }
    return objects.filter((object) => object !== undefined);
  }

  async #fetchObject(
    key: ObjectKey,
    fetch: FetchObject,
  ): Promise<T | undefined> {
    let version = "";
    for (let fetches = 0; fetches < MAX_FETCHES; fetches++) {
      const bytes = await fetch(key);
      const slot = this.#table.find(key);
      if (bytes === undefined || slot < 0) return undefined;
      const header = this.#scanner.scanObject(wholeRange(bytes));
      if (this.#table.compareVersion(slot, header) <= 0) {
        return this.#keepFetched(slot, header);
      }
      // An event delivered a newer state during the fetch. Its body may have
      // been dropped again by now.
      version = header.resourceVersion;
      const object = this.#decoded(slot);
      if (object !== undefined) return object;
    }
    throw new Error(
      `Cannot read ${
        keyText(key)
      }: the server must return a state at least as new as its watch delivered: received version ${version}`,
    );
  }

  /**
   * Decodes a fetched object and caches it. The table is not changed: the watch
   * will deliver the event of this version later.
   */
  #keepFetched(slot: number, header: ObjectHeader): T {
    const body = this.#writer.write(header);
    const object = this.#table.hasUid(slot, header)
      ? this.#decoder.keep(slot, body)
      : this.#decoder.decode(body);
    this.#charge();
    return object;
  }

  /**
   * Decodes any object of the kind as reads return it, frozen and without the
   * pruned paths, whether it is stored or not.
   *
   * @throws {SyntaxError} If its bytes are not well-formed.
   */
  decode(header: ObjectHeader): T {
    return this.#decoder.decode(this.#writer.write(header));
  }

  /**
   * Plain value of any object of the kind, without the pruned paths and their
   * guards, whether it is stored or not.
   *
   * @throws {SyntaxError} If its bytes are not well-formed.
   */
  parse(header: ObjectHeader): T {
    return parseRange(this.#writer.write(header)) as T;
  }

  /**
   * Header of an object; a partial one if only its key is stored; undefined if
   * there is no object.
   */
  header(key: ObjectKey | ObjectHeader): ObjectHeader | undefined {
    const slot = this.#table.find(key);
    return slot < 0 ? undefined : this.headerAt(slot);
  }

  /**
   * Object in a slot, frozen; undefined if none exists.
   *
   * @param by `read` by who neither changes the object nor hands it out: it is not
   * kept decoded, and perhaps not frozen.
   * @throws {Error} If only its key is stored.
   */
  getAt(slot: number, by: "get" | "read" = "get"): T | undefined {
    return this.#table.isUsed(slot)
      ? this.#present(slot, this.#decoded(slot, by))
      : undefined;
  }

  /** Slot of an object, which it keeps until it is removed; -1 if absent. */
  slotOf(key: ObjectKey): number {
    return this.#table.find(key);
  }

  /** Key of the object in a slot; undefined if none exists. */
  keyAt(slot: number): ObjectKey | undefined {
    return this.#table.isUsed(slot) ? this.#table.key(slot) : undefined;
  }

  /** First used slot from a given one on; -1 if none exists. */
  nextSlot(slot: number): number {
    return this.#table.nextUsed(slot);
  }

  /** Bytes of the object in a used slot; undefined if only its key is stored. */
  bodyAt(slot: number): ByteRange | undefined {
    try {
      return this.#tiers.read(slot);
    } catch (error) {
      throw this.#unreadable(slot, error);
    }
  }

  /**
   * Header of the object in a used slot; partial if only its key is stored, or its
   * body cannot be read.
   */
  headerAt(slot: number): ObjectHeader {
    try {
      const body = this.#tiers.read(slot);
      if (body !== undefined) return this.#scanner.scanObject(body);
    } catch (error) {
      // Of a snapshot: bodies that were put have been scanned.
      this.#unreadable(slot, error);
    }
    const table = this.#table;
    const generation = table.generation(slot);
    const text = JSON.stringify({
      metadata: {
        ...table.key(slot),
        uid: table.uid(slot),
        resourceVersion: table.version(slot),
        ...(generation !== 0 && { generation }),
      },
    });
    const header = this.#scanner.scanObject(wholeRange(text)).copy();
    header.isPartial = true;
    return header;
  }

  /** Compressed pages of the bodies, for a snapshot. */
  get pages(): Pick<
    Tiers,
    "adoptDictionary" | "dictionary" | "ensureDictionary" | "storedPage"
  > {
    return this.#tiers;
  }

  /** Values of the objects in the indexes that a snapshot saves. */
  get indexes(): Pick<ObjectIndexes<T>, "saved" | "savedValues"> {
    return this.#indexes;
  }

  /**
   * Takes over a compressed page as it is: no body is read, unless an index has no
   * values for it. The follower is not told.
   *
   * @param isWanted Selects the objects, of those that are not stored.
   * @param onAdded Called with the slot of each object that was added.
   * @throws {RangeError} If the entries are not in the order of the bodies.
   */
  adopt(
    { page, definitions, entries }: AdoptedPage,
    isWanted: (entry: PageEntry) => boolean,
    onAdded: (slot: number) => void,
  ): void {
    const table = this.#table;
    const tiers = this.#tiers;
    const first = tiers.adopt(page);
    let next = 0;
    let isSparse = false;
    let last = -1;
    const skip = (end: number) => {
      while (next < end) isSparse = tiers.skipAdopted(first + next++);
    };
    try {
      for (
        let entry = entries.next();
        entry !== undefined;
        entry = entries.next()
      ) {
        const { ordinal, uid, version, generation } = entry;
        if (ordinal < next || ordinal >= page.count) {
          throw new RangeError(
            `Cannot take over a page: its objects must be in order: received ${ordinal} of ${page.count}`,
          );
        }
        skip(ordinal);
        const found = table.lookupBytes(entry.namespace, entry.name);
        if (found.slot >= 0 || !isWanted(entry)) continue;
        last = table.add(found);
        next++;
        table.setIdentity(last, uid, version, generation);
        table.markSeen(last);
        tiers.placeAdopted(last, first + ordinal);
        const missing = this.#indexes.adopt(last, definitions, entry.values);
        for (const name of missing) {
          this.#index(last, this.headerAt(last), name);
        }
        onAdded(last);
      }
    } finally {
      skip(page.count);
    }
    if (isSparse && last >= 0) tiers.rescuePage(last);
    this.#charge();
  }

  /** Notes that some JSON has `metadata` several times. */
  markIrregular(): void {
    this.#isRegular = false;
  }

  /** All keys, or those of one namespace. */
  *keys(namespace?: string): IterableIterator<ObjectKey> {
    for (const slot of this.#table.slots(namespace)) {
      yield this.#table.key(slot);
    }
  }

  /**
   * All objects, or those of one namespace, decoded and not cached.
   *
   * @throws {Error} If only the key of an object is stored.
   */
  list(namespace?: string): T[] {
    return Array.from(
      this.#table.slots(namespace),
      (slot) => this.#present(slot, this.#decode(slot, "peek")),
    );
  }

  /**
   * Adds an index over the present and future objects.
   *
   * @throws {RangeError} If only the keys of some objects are stored.
   */
  addIndex(name: string, definition: IndexDefinition<T>): void {
    if (this.#tiers.keyOnly.objects > 0) {
      throw new RangeError(
        `Cannot add the index "${name}": the bodies of some objects are no longer stored`,
      );
    }
    if (!this.#indexes.add(name, definition)) return;
    for (const slot of this.#table.slots()) {
      this.#index(slot, this.headerAt(slot), name);
    }
    this.#charge();
  }

  /** Removes the index of a name, if it exists. */
  removeIndex(name: string): void {
    this.#indexes.delete(name);
    this.#charge();
  }

  byIndex(name: string, value: string): T[] {
    return this.#indexes.postings(name).slots(value).map((slot) =>
      this.#present(slot, this.#decoded(slot))
    );
  }

  keysByIndex(name: string, value: string): ObjectKey[] {
    return this.#indexes.postings(name).slots(value).map((slot) =>
      this.#table.key(slot)
    );
  }

  /** Starts a relist: only objects that are put from now on count as seen. */
  beginRelist(): void {
    this.#table.beginRelist();
  }

  /**
   * Keys of the objects that were not put since the relist began, for the caller
   * to delete. Objects may be put and deleted between two steps.
   *
   * @param resourceVersion Version of the list: newer objects count as seen,
   * unless it is empty.
   */
  *unseen(resourceVersion: string): Generator<ObjectKey, void, undefined> {
    for (const slot of this.#table.unseen(resourceVersion)) {
      yield this.#table.key(slot);
    }
  }

  usage(): StoreUsage {
    const { bytes, compressed, keyOnly } = this.#tiers;
    const { count, size } = this.#decoder.cache;
    const decoded = { objects: count, bytes: size };
    const index = this.#indexBytes;
    const total = index + bytes.bytes + compressed.bytes + decoded.bytes;
    return { decoded, bytes, compressed, keyOnly, index, total };
  }

  /** Removes all objects and leaves the budget; the follower is not told. */
  close(): void {
    this.follower = undefined;
    this.#tiers.clear();
    this.#table.clear();
    this.#indexes.clear();
    this.#decoder.cache.trim(-1);
    this.#budget?.leave(this);
    // What is done with a closed store charges nobody.
    this.#budget = undefined;
  }

  /** Number of bytes that the budget could move to a lower tier or drop. */
  get demotableBytes(): number {
    const { compressibleBytes, compressed } = this.#tiers;
    const droppable = this.#fetch !== undefined && compressed.objects > 0
      ? compressed.bytes
      : 0;
    return this.#decoder.shrinkableBytes + compressibleBytes + droppable;
  }

  /** Moves some cold objects to a lower tier, in about a millisecond. */
  demote(): void {
    const tiers = this.#tiers;
    const mayDrop = this.#fetch !== undefined;
    if (tiers.compressibleBytes > 0) {
      // If the keys alone exceed the budget, compressing would be wasted.
      const isFullOfKeys =
        this.#indexBytes >= (this.#budget?.allowed ?? Infinity);
      if (mayDrop && isFullOfKeys) tiers.drop("bytes");
      else tiers.compress();
    } else if (this.#decoder.shrinkableBytes > 0) this.#decoder.shrink();
    else if (mayDrop) tiers.drop("compressed");
    this.#charge();
  }

  shrinkDecoded(): void {
    this.#decoder.shrink();
    this.#charge();
  }

  get #indexBytes(): number {
    return this.#table.allocatedBytes + this.#indexes.allocatedBytes;
  }

  #decoded(slot: number, by: "get" | "read" = "get"): T | undefined {
    const object = this.#decode(slot, by);
    this.#charge();
    return object;
  }

  #decode(slot: number, by: "get" | "peek" | "read"): T | undefined {
    try {
      return this.#decoder[by](slot);
    } catch (error) {
      throw this.#unreadable(slot, error);
    }
  }

  #unreadable(slot: number, error: unknown): unknown {
    this.follower?.unreadable(slot, error);
    return error;
  }

  #present<V>(slot: number, value: V | undefined): V {
    if (value !== undefined) return value;
    throw new Error(
      `Cannot get ${this.kind.kind} ${
        keyText(this.#table.key(slot))
      } synchronously: only its key is stored; read() fetches it`,
    );
  }

  #changed(
    outcome: StoreOutcome,
    slot: number,
    isCopied: boolean = false,
  ): StoreChange {
    const change = this.#change;
    change.outcome = outcome;
    change.slot = slot;
    change.previous = isCopied ? this.#previous : undefined;
    return change;
  }

  /** Stores the body and version of an object in its slot. */
  #write(slot: number, header: ObjectHeader, body: BodyWriter): void {
    this.#tiers.write(slot, body);
    this.#table.setVersion(slot, header);
    this.#decoder.cache.delete(slot);
    if (!this.#indexes.isEmpty) this.#index(slot, header);
    this.follower?.written(slot);
    this.#charge();
  }

  #remove(slot: number): void {
    this.follower?.removed(slot);
    this.#indexes.remove(slot);
    this.#decoder.cache.delete(slot);
    this.#tiers.remove(slot);
    this.#table.remove(slot);
    this.#charge();
  }

  #index(slot: number, header: ObjectHeader, only?: string): void {
    const object = () => this.#decode(slot, "get") as T;
    this.#indexes.update(slot, { header, object, only });
  }

  /** Reports the memory in use to the budget. */
  #charge(): void {
    const budget = this.#budget;
    if (budget === undefined) {
      this.#decoder.cache.maxSize = DEFAULT_DECODED_BYTES;
      return;
    }
    this.#decoder.cache.maxSize = budget.allowed * DECODED_SHARE;
    const held = this.#indexBytes + this.#tiers.allocatedBytes +
      this.#decoder.cache.size;
    if (held !== this.#charged || budget.isExceeded) {
      this.#charged = held;
      budget.charge(this, held, this.#decoder.cache.size);
    }
  }
}
