/** Random numbers that are the same for the same seed. */
export class Random {
  #state: number;

  /** @param seed Any integer. */
  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Number of at least 0 and below 1 (mulberry32). */
  readonly next = (): number => {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };

  /** Integer of at least 0 and below a limit. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  /** Random element of a list. */
  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }
}
