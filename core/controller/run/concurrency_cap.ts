/**
 * How many runs there may be at once over several controllers. Who was refused
 * is told when there is room again, each in turn, so that none starves.
 */
export class ConcurrencyCap {
  readonly #limit: number;
  readonly #waiting: Set<() => void> = new Set();
  #running = 0;

  /**
   * @param limit How many runs; infinite for no cap.
   * @throws {RangeError} If it is not a positive whole number or infinite.
   */
  constructor(limit: number) {
    if (limit !== Infinity && (!Number.isInteger(limit) || limit < 1)) {
      throw new RangeError(
        `Cannot cap the runs of an operator: "concurrency" must be a whole number from 1: received ${limit}`,
      );
    }
    this.#limit = limit;
  }

  /** How many runs there are. */
  get running(): number {
    return this.#running;
  }

  /**
   * Makes room for one run.
   *
   * @param retry Called once, if there is none now, when there may be.
   * @returns Whether there was.
   */
  acquire(retry: () => void): boolean {
    if (this.#running >= this.#limit) {
      this.#waiting.add(retry);
      return false;
    }
    this.#running++;
    return true;
  }

  /** A run has ended. */
  release(): void {
    this.#running--;
    this.offer();
  }

  /**
   * Tells the longest waiting one if there is room. Who was told and makes no use
   * of it must call this, or the others would wait for a run that never ends.
   */
  offer(): void {
    if (this.#running >= this.#limit) return;
    const [next] = this.#waiting;
    if (next === undefined) return;
    // Asking again puts it at the end.
    this.#waiting.delete(next);
    next();
  }

  /** Does not tell this one any more. */
  forget(retry: () => void): void {
    this.#waiting.delete(retry);
  }
}
