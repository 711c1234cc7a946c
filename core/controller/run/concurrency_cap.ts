/**
 * Limit of the concurrent runs of several controllers. Refused controllers are
 * called back in turn when a run has ended, so that none starves.
 */
export class ConcurrencyCap {
  readonly #limit: number;
  readonly #waiting: Set<() => void> = new Set();
  #running = 0;

  /**
   * Creates a limit of runs.
   *
   * @throws {RangeError} If it is neither a positive whole number nor infinite.
   */
  constructor(limit: number) {
    if (limit !== Infinity && (!Number.isInteger(limit) || limit < 1)) {
      throw new RangeError(
        `Cannot limit the runs of an operator: "concurrency" must be a whole number from 1: received ${limit}`,
      );
    }
    this.#limit = limit;
  }

  /** Number of runs in progress. */
  get running(): number {
    return this.#running;
  }

  /**
   * Reserves one run.
   *
   * @param retry Called once after a refusal, when a run may be free.
   * @returns Whether the run was reserved.
   */
  acquire(retry: () => void): boolean {
    if (this.#running >= this.#limit) {
      this.#waiting.add(retry);
      return false;
    }
    this.#running++;
    return true;
  }

  /** Releases a run that has ended. */
  release(): void {
    this.#running--;
    this.offer();
  }

  /**
   * Calls the controller that has waited longest, if the limit is not reached.
   * A controller that was called but starts no run must call this method, since
   * no end of a run would call the next controller.
   */
  offer(): void {
    if (this.#running >= this.#limit) return;
    const [next] = this.#waiting;
    if (next === undefined) return;
    // A further call of `acquire` puts it at the end.
    this.#waiting.delete(next);
    next();
  }

  /** Cancels the callback of a controller. */
  forget(retry: () => void): void {
    this.#waiting.delete(retry);
  }
}
