/**
 * Map for short-lived values, such as requests in progress.
 *
 * A `Map` of V8 moves its entries to a new table from time to time. A former table
 * keeps the entries that it had, and the next table, reachable until the next
 * major garbage collection: most short-lived values would be promoted to the old
 * generation. Here the tables have numbers only, and the values are in an array.
 */
export class SlotMap<K, V extends object> {
  /** Slots of the values, by their keys. */
  readonly #slots: Map<K, number> = new Map();
  readonly #values: (V | undefined)[] = [];
  readonly #free: number[] = [];

  /** Number of values. */
  get size(): number {
    return this.#slots.size;
  }

  /** Value of a key. */
  get(key: K): V | undefined {
    const slot = this.#slots.get(key);
    return slot === undefined ? undefined : this.#values[slot];
  }

  /** Sets the value of a key. */
  set(key: K, value: V): void {
    let slot = this.#slots.get(key);
    if (slot === undefined) {
      slot = this.#free.pop() ?? this.#values.length;
      this.#slots.set(key, slot);
    }
    this.#values[slot] = value;
  }

  /** Removes a key; returns whether it was in the map. */
  delete(key: K): boolean {
    const slot = this.#slots.get(key);
    if (slot === undefined) return false;
    this.#slots.delete(key);
    this.#values[slot] = undefined;
    this.#free.push(slot);
    return true;
  }

  /** Removes all keys. */
  clear(): void {
    this.#slots.clear();
    this.#values.length = this.#free.length = 0;
  }

  /** All keys, in the order in which they were added. */
  keys(): MapIterator<K> {
    return this.#slots.keys();
  }

  /** All keys and values; the current one may be removed. */
  *[Symbol.iterator](): Generator<[K, V], void, undefined> {
    for (const [key, slot] of this.#slots) yield [key, this.#values[slot] as V];
  }

  /** All values; the current one may be removed. */
  *values(): Generator<V, void, undefined> {
    for (const [, value] of this) yield value;
  }
}
