/** How many states are read anew at once unless told otherwise. */
const MOST_AT_ONCE = 2;

/**
 * Staggers relists. When a server comes back, everything that was watched is
 * listed anew; all at once would need the memory and the time of all.
 *
 * First come, first served. Who waits is let in when somebody leaves.
 */
export class RelistQueue {
  readonly #most: number;
  readonly #waiting: (() => void)[] = [];
  #inside = 0;

  /**
   * Makes a queue in which nobody is.
   *
   * @param most How many are let in at once.
   * @throws {RangeError} If it is no positive whole number.
   */
  constructor(most: number = MOST_AT_ONCE) {
    if (!Number.isInteger(most) || most < 1) {
      throw new RangeError(
        `Cannot stagger relists: there must be room for one or more: received ${most}`,
      );
    }
    this.#most = most;
  }

  /** How many wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Waits for the turn.
   *
   * @param signal Ends the waiting, by rejecting with its reason.
   * @returns Must be called when the state was read, or reading it has failed;
   * safe to repeat.
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#inside >= this.#most) await this.#turn(signal);
    else this.#inside++;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      const next = this.#waiting.shift();
      if (next === undefined) this.#inside--;
      else next(); // who comes takes the place of who goes
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
