/**
 * Limit of how many tasks run at the same time; they start in the order in which
 * they enter.
 */
export class ConcurrencyLimit {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(limit: number) {
    this.#free = limit;
  }

  /** Takes a slot; a promise if none is free, resolved with the slot. */
  enter(): Promise<void> | undefined {
    if (this.#free === 0) {
      return new Promise((resolve) => this.#waiting.push(resolve));
    }
    this.#free--;
    return undefined;
  }

  /** Hands a slot over to the next task. */
  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}
