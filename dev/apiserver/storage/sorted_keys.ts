import { compareTexts } from "@coracle/operator/internal";

/**
 * Maximum number of keys that are inserted one by one; more are appended and
 * sorted.
 */
const MAX_INSERTED = 16;

/**
 * Sorted set of keys. Sorting happens on access, so that a burst of writes
 * sorts once.
 */
export class SortedKeys {
  #keys: string[] = [];
  #added: Set<string> = new Set();
  #deleted: Set<string> = new Set();

  /** Adds a key that is not in the set. */
  add(key: string): void {
    if (!this.#deleted.delete(key)) this.#added.add(key);
  }

  /** Removes a key that is in the set. */
  delete(key: string): void {
    if (!this.#added.delete(key)) this.#deleted.add(key);
  }

  /** Keys from `start` (inclusive) to `end` (exclusive), in order. */
  range(start: string, end: string | undefined): string[] {
    this.#settle();
    const from = start === "" ? 0 : this.#lowerBound(start);
    const to = end === undefined ? this.#keys.length : this.#lowerBound(end);
    return this.#keys.slice(from, to);
  }

  #settle(): void {
    if (this.#added.size + this.#deleted.size > MAX_INSERTED) {
      if (this.#deleted.size > 0) {
        this.#keys = this.#keys.filter((key) => !this.#deleted.has(key));
      }
      if (this.#added.size > 0) {
        for (const key of this.#added) this.#keys.push(key);
        // The engine's sort is fast for runs that are already sorted.
        this.#keys.sort(compareTexts);
      }
    } else {
      for (const key of this.#deleted) {
        this.#keys.splice(this.#lowerBound(key), 1);
      }
      for (const key of this.#added) {
        this.#keys.splice(this.#lowerBound(key), 0, key);
      }
    }
    this.#added.clear();
    this.#deleted.clear();
  }

  #lowerBound(key: string): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#keys[middle] as string) < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
