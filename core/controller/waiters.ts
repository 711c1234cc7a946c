/** Those who wait for something to happen. */
export class Waiters {
  readonly #waiting: (() => void)[] = [];

  /** Fulfilled when it happens next. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Tells all that it has happened. */
  tell(): void {
    // It may happen with every run, and mostly nobody waits.
    if (this.#waiting.length === 0) return;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
