import { checkOptions, type OptionRules } from "../../api/options.ts";

/** No entry: the end of the list. */
const NONE = -1;
/** Of the two links of an entry, the one to what was used before it. */
const OLDER = 1;
const FIRST_CAPACITY = 16;

/** Options of {@linkcode LruCache}. */
export interface LruCacheOptions {
  /** The sum of sizes up to which entries are kept, in the unit of those. */
  readonly maxSize: number;
}

/**
 * A map that forgets what was not used for longest once the sizes of its
 * entries, in any unit, exceed a limit.
 *
 * The order of use is a doubly linked list in typed arrays: a hit moves numbers
 * and makes no object.
 *
 * @typeParam K The type of the keys.
 * @typeParam V The type of the values.
 *
 * @example A limit in characters
 * ```ts
 * import { LruCache } from "@coracle/operator/core";
 *
 * const cache = new LruCache<string, string>({ maxSize: 10 });
 * for (const word of ["river", "boat", "oar"]) cache.set(word, word, word.length);
 * if (cache.get("river") !== undefined || cache.size !== 7) throw new Error("No");
 * ```
 */
export class LruCache<K, V> {
  readonly #entries: Map<K, number> = new Map();
  #keys: (K | undefined)[] = [];
  #values: (V | undefined)[] = [];
  #sizes: Float64Array = new Float64Array(FIRST_CAPACITY);
  /** The neighbours: what was used next later, and next earlier. */
  #links: Int32Array = new Int32Array(2 * FIRST_CAPACITY);
  #newest = NONE;
  #oldest = NONE;
  /** Entries that were removed, linked as if used earlier. */
  #free = NONE;
  #used = 0;
  #size = 0;
  #maxSize: number;

  /**
   * Makes an empty cache.
   *
   * @param options How much is kept.
   * @throws {RangeError} If `maxSize` is negative or not a number.
   */
  constructor(options: LruCacheOptions) {
    checkOptions(options, RULES, "an LruCache");
    this.#maxSize = checkedSize(options.maxSize);
  }

  /** How many entries there are. */
  get count(): number {
    return this.#entries.size;
  }

  /** The sum of their sizes. */
  get size(): number {
    return this.#size;
  }

  /**
   * The limit, in the unit of the sizes; lowering it forgets entries at once.
   *
   * @throws {RangeError} If it is set to what is negative or not a number.
   */
  get maxSize(): number {
    return this.#maxSize;
  }

  set maxSize(maxSize: number) {
    this.#maxSize = checkedSize(maxSize);
    this.trim(maxSize);
  }

  /** The value of a key, which becomes the one used last. */
  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry !== this.#newest) this.#renew(entry);
    return this.#values[entry];
  }

  /** The value of a key, without counting as a use. */
  peek(key: K): V | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined ? undefined : this.#values[entry];
  }

  /**
   * Keeps a value; it becomes the one used last. One that is larger than the
   * limit is not kept, and takes the former one with it.
   *
   * @param size What it counts against the limit.
   */
  set(key: K, value: V, size: number): void {
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      entry = this.#take();
      this.#entries.set(key, entry);
      this.#keys[entry] = key;
    } else {
      this.#unlink(entry);
      this.#size -= this.#sizes[entry] as number;
    }
    this.#values[entry] = value;
    this.#sizes[entry] = size;
    this.#size += size;
    this.#linkNewest(entry);
    if (size > this.#maxSize) this.delete(key);
    else this.trim(this.#maxSize);
  }

  /** Forgets a key; tells whether it was there. */
  delete(key: K): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    this.#entries.delete(key);
    this.#unlink(entry);
    this.#size -= this.#sizes[entry] as number;
    this.#keys[entry] = undefined;
    this.#values[entry] = undefined;
    this.#links[2 * entry + OLDER] = this.#free;
    this.#free = entry;
    return true;
  }

  /** Forgets everything. */
  clear(): void {
    this.#entries.clear();
    this.#keys = [];
    this.#values = [];
    this.#newest = this.#oldest = this.#free = NONE;
    this.#used = 0;
    this.#size = 0;
  }

  /**
   * Forgets what was not used for longest until no more is left than a size.
   *
   * @param size In the unit of the sizes.
   */
  trim(size: number): void {
    while (this.#size > size && this.#oldest !== NONE) {
      this.delete(this.#keys[this.#oldest] as K);
    }
  }

  #take(): number {
    const entry = this.#free;
    if (entry !== NONE) {
      this.#free = this.#links[2 * entry + OLDER] as number;
      return entry;
    }
    if (this.#used === this.#sizes.length) this.#grow();
    return this.#used++;
  }

  #grow(): void {
    const capacity = 2 * this.#used;
    const sizes = new Float64Array(capacity);
    const links = new Int32Array(2 * capacity);
    sizes.set(this.#sizes);
    links.set(this.#links);
    this.#sizes = sizes;
    this.#links = links;
  }

  /** Makes an entry the newest that is not. */
  #renew(entry: number): void {
    const links = this.#links;
    const newest = this.#newest;
    const newer = links[2 * entry] as number;
    const older = links[2 * entry + OLDER] as number;
    links[2 * newer + OLDER] = older;
    if (older === NONE) this.#oldest = newer;
    else links[2 * older] = newer;
    links[2 * newest] = entry;
    links[2 * entry] = NONE;
    links[2 * entry + OLDER] = newest;
    this.#newest = entry;
  }

  #unlink(entry: number): void {
    const links = this.#links;
    const newer = links[2 * entry] as number;
    const older = links[2 * entry + OLDER] as number;
    if (newer === NONE) this.#newest = older;
    else links[2 * newer + OLDER] = older;
    if (older === NONE) this.#oldest = newer;
    else links[2 * older] = newer;
  }

  #linkNewest(entry: number): void {
    const links = this.#links;
    const newest = this.#newest;
    links[2 * entry] = NONE;
    links[2 * entry + OLDER] = newest;
    if (newest === NONE) this.#oldest = entry;
    else links[2 * newest] = entry;
    this.#newest = entry;
  }
}

const RULES: OptionRules<LruCacheOptions> = { maxSize: "number" };

function checkedSize(maxSize: number): number {
  if (!(maxSize >= 0)) {
    throw new RangeError(
      `Cannot limit an LruCache: "maxSize" must not be negative: received ${maxSize}`,
    );
  }
  return maxSize;
}
