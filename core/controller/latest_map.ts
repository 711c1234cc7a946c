/**
 * Map that forgets old keys. It has two generations: a value is set in the
 * newer one, and once that has `limit` keys, it replaces the older one. So the
 * map keeps the `limit` keys that were set last, and never more than twice as
 * many. A key set again stays in the older one, too, where it is hidden.
 */
export class LatestMap<V> {
  readonly #limit: number;
  #newer: Map<string, V> = new Map();
  #older: Map<string, V> = new Map();

  /** Creates a map of `limit` keys per generation, which may be `Infinity`. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.entries().length;
  }

  get(key: string): V | undefined {
    return this.#newer.get(key) ?? this.#older.get(key);
  }

  set(key: string, value: V): void {
    if (this.#newer.size === this.#limit && !this.#newer.has(key)) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#newer.set(key, value);
  }

  delete(key: string): void {
    this.#newer.delete(key);
    this.#older.delete(key);
  }

  clear(): void {
    this.#newer.clear();
    this.#older.clear();
  }

  entries(): [string, V][] {
    const older = [...this.#older].filter(([key]) => !this.#newer.has(key));
    return [...older, ...this.#newer];
  }
}
