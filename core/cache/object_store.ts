import type { Kind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { ObjectKey } from "../api/object_key.ts";
import type { LabelRequirement } from "../api/label_requirement.ts";
import type { LabelSelector } from "../api/label_selector.ts";
import type { ObjectHeader } from "../json/object_header.ts";
import type { MemoryBudget } from "./memory_budget.ts";

/**
 * What a put did: `unchanged` means that uid and resourceVersion are those
 * stored; `stale` that a newer version of the same object is stored. Neither
 * changes the store.
 */
export type PutOutcome = "added" | "updated" | "unchanged" | "stale";

/** Computes under which values an object is found in an index. */
export type IndexFunction<T extends KubernetesObject> = (
  object: T,
) => readonly string[];

/**
 * How an index finds its values. Those by label, annotation and owner read the
 * bytes; a function costs a parse for every put.
 */
export type IndexDefinition<T extends KubernetesObject> =
  | { readonly byLabel: string }
  | { readonly byAnnotation: string }
  | { readonly byOwner: true }
  | { readonly byFunction: IndexFunction<T> };

/** Fetches an object of which only the key was kept; undefined if it is gone. */
export type FetchObject = (
  key: ObjectKey,
) => Promise<Uint8Array | undefined>;

/** Options of {@linkcode ObjectStore}. */
export interface ObjectStoreOptions<T extends KubernetesObject> {
  /** Restored on objects that came as items of a list, which leave it out. */
  readonly kind: Kind<T>;
  /**
   * Paths that are not kept; reading one throws an error that names it.
   *
   * @default {[]}
   */
  readonly prune?: readonly string[] | undefined;
  /**
   * Indexes from the start, by name.
   *
   * @default {{}}
   */
  readonly indexes?:
    | Readonly<Record<string, IndexDefinition<T>>>
    | undefined;
  /**
   * The bytes that this store shares with others; without one nothing sinks.
   *
   * @default {undefined}
   */
  readonly budget?: MemoryBudget | undefined;
  /**
   * Allows the store to keep the keys alone of what does not fit into the
   * budget; {@linkcode ObjectStore.read} then fetches an object.
   *
   * @default {undefined}
   */
  readonly fetch?: FetchObject | undefined;
  /**
   * Told when an index function throws; the object then has no values there.
   *
   * @default {() => {}}
   */
  readonly onIndexError?: ((index: string, error: unknown) => void) | undefined;
}

/** Objects and bytes of one tier. */
export interface TierUsage {
  readonly objects: number;
  readonly bytes: number;
}

/** How much memory a store uses, in bytes. */
export interface StoreUsage {
  /** Parsed objects that were read lately; they are in another tier, too. */
  readonly decoded: TierUsage;
  /** JSON bytes. */
  readonly bytes: TierUsage;
  /** JSON bytes in compressed pages. */
  readonly compressed: TierUsage;
  /** Only the key, uid and resourceVersion. */
  readonly keyOnly: TierUsage;
  /** Keys and where each object is. */
  readonly index: number;
  /** Everything together. */
  readonly total: number;
}

/** Which objects to list. */
export interface StoreListOptions {
  /**
   * Only this namespace.
   *
   * @default {undefined}
   */
  readonly namespace?: string | undefined;
  /**
   * Only objects whose labels match; decided on the bytes.
   *
   * @default {undefined}
   */
  readonly labelSelector?:
    | string
    | LabelSelector
    | readonly LabelRequirement[]
    | undefined;
}

/** Options of {@linkcode ObjectStore.put}. */
export interface PutOptions {
  /**
   * Takes an older version, too: for the answer of a server whose
   * resourceVersions began anew.
   *
   * @default {false}
   */
  readonly force?: boolean | undefined;
}

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
 * @typeParam T The type of the objects.
 */
export declare class ObjectStore<T extends KubernetesObject> {
  /**
   * @param options Which kind, and what is kept of it.
   * @throws {SyntaxError} If a prune path is malformed.
   */
  constructor(options: ObjectStoreOptions<T>);

  readonly kind: Kind<T>;
  /** How many objects there are, in all tiers. */
  get size(): number;

  /**
   * Takes the object that a header describes; its bytes are copied.
   *
   * @throws {TypeError} If the object has no name.
   */
  put(header: ObjectHeader, options?: PutOptions): PutOutcome;
  /** Removes an object; tells whether it was there. */
  delete(key: ObjectKey): boolean;
  /** Removes everything. */
  clear(): void;

  has(key: ObjectKey): boolean;
  /** The resourceVersion stored, without decoding. */
  resourceVersion(key: ObjectKey): string | undefined;
  /** The uid stored, without decoding. */
  uid(key: ObjectKey): string | undefined;
  /** The generation stored, without decoding; 0 for kinds without it. */
  generation(key: ObjectKey): number | undefined;

  /**
   * The object, frozen; undefined if there is none.
   *
   * @throws {Error} If only its key is kept: use {@linkcode ObjectStore.read}.
   */
  get(key: ObjectKey): T | undefined;
  /** The object, frozen, fetched if only its key is kept. */
  read(key: ObjectKey): Promise<T | undefined>;
  /** A fresh object that the caller may change. */
  copy(key: ObjectKey): T | undefined;
  /** The stored JSON, as a copy. */
  bytes(key: ObjectKey): Uint8Array | undefined;
  /** The header of the stored bytes, valid until the next call. */
  header(key: ObjectKey): ObjectHeader | undefined;

  /** All keys, or those of one namespace. */
  keys(namespace?: string): IterableIterator<ObjectKey>;
  /** Objects one after the other, each decoded when it is reached. */
  values(options?: StoreListOptions): IterableIterator<T>;
  /** Objects as an array. */
  list(options?: StoreListOptions): T[];

  /** Adds an index over what is there and what will come. */
  addIndex(name: string, definition: IndexDefinition<T>): void;
  removeIndex(name: string): void;
  /** @throws {RangeError} If there is no such index. */
  byIndex(name: string, value: string): T[];
  /** @throws {RangeError} If there is no such index. */
  keysByIndex(name: string, value: string): ObjectKey[];
  /** Every value of an index that some object has. */
  indexValues(name: string): string[];

  /** Begins a relist: what is put from now on counts as seen. */
  beginRelist(): void;
  /**
   * Ends a relist: removes what was not seen since its begin, unless it is
   * newer than the list.
   *
   * @param resourceVersion That of the list.
   * @param onRemove Told of each object before it is removed, while it can
   * still be read.
   * @returns How many were removed.
   */
  sweep(resourceVersion: string, onRemove?: (key: ObjectKey) => void): number;

  /** How much memory is used by what. */
  usage(): StoreUsage;
  /** Gives all memory back and leaves the budget. */
  close(): void;
}
