/** Mark of the end of the list of entries. */
const END = -1;

/**
 * Map that evicts the least recently used entries when the sum of the sizes of its
 * entries exceeds a limit.
 *
 * Entries are slots of arrays, linked by numbers in the order of their use. A
 * `Map` from keys to values would keep removed values reachable; see `SlotMap`.
 */
export class LruCache<K, V> {
  readonly #slots: Map<K, number> = new Map();
  readonly #keys: (K | undefined)[] = [];
  readonly #values: (V | undefined)[] = [];
  readonly #sizes: number[] = [];
  /** Neighbours of each slot in the order of use: earlier and later. */
  readonly #earlier: number[] = [];
  readonly #later: number[] = [];
  readonly #free: number[] = [];
  /** Least and most recently used slots. */
  #oldest = END;
  #newest = END;
  #size = 0;
  #maxSize: number;

  /** @param maxSize Limit of the sum of the sizes of all entries, in any unit. */
  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  get count(): number {
    return this.#slots.size;
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
    const slot = this.#slots.get(key);
    if (slot === undefined) return undefined;
    if (slot !== this.#newest) {
      this.#unlink(slot);
      this.#append(slot);
    }
    return this.#values[slot];
  }

  /** Value of a key; the read does not count as a use. */
  peek(key: K): V | undefined {
    const slot = this.#slots.get(key);
    return slot === undefined ? undefined : this.#values[slot];
  }

  /**
   * Sets the value of a key, which becomes the most recently used one. A value
   * larger than the limit is not stored, and the former value is removed.
   *
   * @param size Size of the value, counted against the limit.
   */
  set(key: K, value: V, size: number): void {
    this.delete(key);
    if (size > this.#maxSize) return;
    const slot = this.#free.pop() ?? this.#keys.length;
    this.#slots.set(key, slot);
    this.#keys[slot] = key;
    this.#values[slot] = value;
    this.#sizes[slot] = size;
    this.#append(slot);
    this.#size += size;
    this.trim(this.#maxSize);
  }

  delete(key: K): void {
    const slot = this.#slots.get(key);
    if (slot === undefined) return;
    this.#slots.delete(key);
    this.#unlink(slot);
    this.#size -= this.#sizes[slot] as number;
    this.#keys[slot] = this.#values[slot] = undefined;
    this.#free.push(slot);
  }

  /** Evicts the least recently used entries until their total size fits. */
  trim(size: number): void {
    while (this.#size > size && this.#oldest !== END) {
      this.delete(this.#keys[this.#oldest] as K);
    }
  }

  /** Appends a slot as the most recently used one. */
  #append(slot: number): void {
    const newest = this.#newest;
    this.#earlier[slot] = newest;
    this.#later[slot] = END;
    if (newest === END) this.#oldest = slot;
    else this.#later[newest] = slot;
    this.#newest = slot;
  }

  #unlink(slot: number): void {
    const earlier = this.#earlier[slot] as number;
    const later = this.#later[slot] as number;
    if (earlier === END) this.#oldest = later;
    else this.#later[earlier] = later;
    if (later === END) this.#newest = earlier;
    else this.#earlier[later] = earlier;
  }
}
