const CONCURRENT_RELISTS = 2;

/**
 * First-in, first-out queue that limits concurrent relists. When a server returns
 * after an outage, all watched kinds are listed again; without a limit, they would
 * need memory and time for all of them together.
 */
export class RelistQueue {
  readonly #limit: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  /**
   * Creates an empty queue.
   *
   * @param limit Number of concurrent relists.
   * @throws {RangeError} If it is not a positive whole number.
   */
  constructor(limit: number = CONCURRENT_RELISTS) {
    if (!Number.isInteger(limit) || limit < 1) {
      throw new RangeError(
        `Cannot make a relist queue: the limit must be a positive whole number: received ${limit}`,
      );
    }
    this.#limit = limit;
  }

  /** Number of waiting relists. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Waits until a relist may begin.
   *
   * @param signal Signal that ends the wait; the promise rejects with its reason.
   * @returns Function to call when the state was read, or reading it has failed;
   * safe to repeat.
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#running >= this.#limit) await this.#turn(signal);
    else this.#running++;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next(); // takes over the slot
    };
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(signal.reason);
      };
      const enter = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      this.#waiting.push(enter);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }
}
