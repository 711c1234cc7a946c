/** Map of a limited number of keys: beyond it, the key that was set first is removed. */
export class LatestMap<V> {
  readonly #limit: number;
  readonly #values: Map<string, V> = new Map();
  // One iterator, as a new one would pass over all keys that were removed.
  readonly #oldest: Iterator<string, undefined> = this.#values.keys();

  /** @param limit Maximum number of keys. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#values.size;
  }

  get(key: string): V | undefined {
    return this.#values.get(key);
  }

  /** Keys, the latest first. */
  latest(limit: number): string[] {
    return [...this.#values.keys()].slice(-limit).reverse();
  }

  /** Sets a value; its key becomes the latest. */
  set(key: string, value: V): void {
    this.#values.delete(key);
    this.#values.set(key, value);
    if (this.#values.size > this.#limit) {
      this.#values.delete(this.#oldest.next().value as string);
    }
  }

  delete(key: string): void {
    this.#values.delete(key);
  }

  clear(): void {
    this.#values.clear();
  }
}
