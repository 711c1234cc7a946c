/** So many keys are put in one by one; more are sorted in together. */
const FEW = 16;

/**
 * A set of keys in order. Adding is cheap; the order is made when it is asked
 * for, so that a burst of writes sorts once.
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

  /** The keys from `start` up to and without `end`, in order. */
  range(start: string, end: string | undefined): string[] {
    this.#settle();
    const from = start === "" ? 0 : this.#lowerBound(start);
    const to = end === undefined ? this.#keys.length : this.#lowerBound(end);
    return this.#keys.slice(from, to);
  }

  #settle(): void {
    if (this.#added.size + this.#deleted.size > FEW) {
      if (this.#deleted.size > 0) {
        this.#keys = this.#keys.filter((key) => !this.#deleted.has(key));
      }
      if (this.#added.size > 0) {
        for (const key of this.#added) this.#keys.push(key);
        // The sort is made for runs that are in order already.
        this.#keys.sort((a, b) => a < b ? -1 : a > b ? 1 : 0);
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
