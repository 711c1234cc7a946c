import { checkOptions, type OptionRules } from "../../api/options.ts";

/** Options of an {@linkcode LruCache}. */
export interface LruCacheOptions {
  /** Limit of the sum of the sizes of all entries, in any unit. */
  readonly maxSize: number;
}

const RULES: OptionRules<LruCacheOptions> = { maxSize: "number" };

/** Element of the list of entries in order of use. */
interface Entry<K, V> {
  readonly key: K;
  value: V;
  size: number;
  newer: Entry<K, V> | undefined;
  older: Entry<K, V> | undefined;
}

/**
 * Map that evicts the least recently used entries when the sum of the sizes of
 * its entries exceeds a limit.
 *
 * @typeParam K The type of the keys.
 * @typeParam V The type of the values.
 */
export class LruCache<K, V> {
  readonly #entries: Map<K, Entry<K, V>> = new Map();
  #newest: Entry<K, V> | undefined;
  #oldest: Entry<K, V> | undefined;
  #size = 0;
  #maxSize: number;

  /**
   * Creates an empty cache.
   *
   * @param options Limit of the sizes.
   * @throws {RangeError} If `maxSize` is negative or not a number.
   */
  constructor(options: LruCacheOptions) {
    checkOptions(options, RULES, "an LruCache");
    this.#maxSize = checkedSize(options.maxSize);
  }

  /** Number of entries. */
  get count(): number {
    return this.#entries.size;
  }

  /** Sum of the sizes of all entries. */
  get size(): number {
    return this.#size;
  }

  /**
   * Limit of the sum of the sizes; lowering it evicts entries immediately.
   *
   * @throws {RangeError} If it is set to a negative value or no number.
   */
  get maxSize(): number {
    return this.#maxSize;
  }

  set maxSize(maxSize: number) {
    this.#maxSize = checkedSize(maxSize);
    this.trim(maxSize);
  }

  /** Value of a key, which becomes the most recently used one. */
  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry !== this.#newest) {
      this.#unlink(entry);
      this.#link(entry);
    }
    return entry.value;
  }

  /** Value of a key, without counting as a use. */
  peek(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  /**
   * Sets the value of a key, which becomes the most recently used one. A value
   * larger than the limit is not stored, and removes the former one.
   *
   * @param size Size of the value, counted against the limit.
   */
  set(key: K, value: V, size: number): void {
    this.delete(key);
    if (size > this.#maxSize) return;
    const entry = { key, value, size, newer: undefined, older: undefined };
    this.#entries.set(key, entry);
    this.#size += size;
    this.#link(entry);
    this.trim(this.#maxSize);
  }

  /** Removes a key; returns whether it was present. */
  delete(key: K): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    this.#entries.delete(key);
    this.#size -= entry.size;
    this.#unlink(entry);
    return true;
  }

  /** Removes all entries. */
  clear(): void {
    this.#entries.clear();
    this.#newest = this.#oldest = undefined;
    this.#size = 0;
  }

  /** Evicts the least recently used entries until their sum of sizes fits. */
  trim(size: number): void {
    while (this.#size > size && this.#oldest !== undefined) {
      this.delete(this.#oldest.key);
    }
  }

  /** Appends an entry as the newest. */
  #link(entry: Entry<K, V>): void {
    entry.older = this.#newest;
    entry.newer = undefined;
    if (this.#newest === undefined) this.#oldest = entry;
    else this.#newest.newer = entry;
    this.#newest = entry;
  }

  #unlink({ newer, older }: Entry<K, V>): void {
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
  }
}

function checkedSize(maxSize: number): number {
  if (!(maxSize >= 0)) {
    throw new RangeError(
      `Cannot limit an LruCache: "maxSize" must not be negative: received ${maxSize}`,
    );
  }
  return maxSize;
}
