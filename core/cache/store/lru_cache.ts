/**
 * Map that evicts the least recently used entries when the sum of the sizes of
 * its entries exceeds a limit. A `Map` keeps entries in the order in which they
 * were set, so that an entry is moved by setting it again.
 */
export class LruCache<K, V> {
  readonly #entries: Map<K, { readonly value: V; readonly size: number }> =
    new Map();
  #size = 0;
  #maxSize: number;

  /** @param maxSize Limit of the sum of the sizes of all entries, in any unit. */
  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  get count(): number {
    return this.#entries.size;
  }

  /** Sum of the sizes of all entries. */
  get size(): number {
    return this.#size;
  }

  /** Limit of the sum of the sizes; lowering it evicts entries immediately. */
  get maxSize(): number {
    return this.#maxSize;
  }

  set maxSize(maxSize: number) {
    this.#maxSize = maxSize;
    this.trim(maxSize);
  }

  /** Value of a key, which becomes the most recently used one. */
  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
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
    this.#entries.set(key, { value, size });
    this.#size += size;
    this.trim(this.#maxSize);
  }

  delete(key: K): void {
    this.#size -= this.#entries.get(key)?.size ?? 0;
    this.#entries.delete(key);
  }

  /** Evicts the least recently used entries until their sum of sizes fits. */
  trim(size: number): void {
    if (this.#size <= size) return;
    for (const key of this.#entries.keys()) {
      if (this.#size <= size) return;
      this.delete(key);
    }
  }
}
