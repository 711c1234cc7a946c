/** Places for work; waiting work of the lowest rank takes the next. */
export class Places {
  readonly #waiting: { readonly rank: number; readonly begin: () => void }[] =
    [];
  #free: number;

  /** @param count How many pieces of work are done at a time. */
  constructor(count: number) {
    this.#free = count;
  }

  /** Does work as soon as there is a place for it. */
  async take<T>(rank: number, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else {
      await new Promise<void>((begin) => {
        const at = this.#waiting.findIndex((other) => other.rank > rank);
        const end = this.#waiting.length;
        this.#waiting.splice(at < 0 ? end : at, 0, { rank, begin });
      });
    }
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next.begin();
    }
  }
}
