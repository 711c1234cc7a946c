/**
 * Pacing of repeated work: pauses that grow, rates, and limits of how much runs at
 * the same time. Time is passed in. A write that conflicts is repeated by
 * `client/retry_on_conflict.ts`.
 *
 * @module
 */

/** Pauses that grow by a factor with each failure in a row. */
export interface GrowingPause {
  /** First pause, in milliseconds. */
  readonly initial: number;
  /** Longest pause, in milliseconds. */
  readonly max: number;
  /**
   * Factor between two pauses.
   *
   * @default {2}
   */
  readonly multiplier?: number;
}

/**
 * Pause after a failure, in milliseconds, without jitter.
 *
 * @param failures Number of failures in a row, from 1.
 */
export function pauseAfter(
  failures: number,
  { initial, max, multiplier = 2 }: GrowingPause,
): number {
  // The exponent is bounded, so that the power is never infinite.
  return Math.min(initial * multiplier ** Math.min(failures - 1, 1_000), max);
}

/**
 * Token bucket, which keeps an average rate and allows bursts. Its only state is
 * the time at which it will be, or was, full.
 */
export class TokenBucket {
  readonly #interval: number;
  readonly #capacity: number;
  #fullAt = -Infinity;

  /**
   * Creates a full bucket.
   *
   * @param interval Milliseconds until a token is replaced.
   * @param burst Number of tokens in the full bucket; at least 1.
   */
  constructor(interval: number, burst: number) {
    this.#interval = interval;
    this.#capacity = burst * interval;
  }

  /**
   * Takes a token, even if it is still to come.
   *
   * @param now Current time in milliseconds of a monotonic clock.
   * @returns Zero, or the milliseconds until the token is there.
   */
  reserve(now: number): number {
    this.#fullAt = Math.max(this.#fullAt, now) + this.#interval;
    const wait = this.#fullAt - now - this.#capacity;
    // Rounding errors are no wait.
    return wait > 1e-6 ? wait : 0;
  }

  /** Gives a reserved token back. */
  giveBack(): void {
    this.#fullAt -= this.#interval;
  }

  /**
   * Takes a token, if there is one.
   *
   * @param now Current time in milliseconds of a monotonic clock.
   * @returns Zero, or the milliseconds until the next token.
   */
  take(now: number): number {
    const wait = this.reserve(now);
    if (wait > 0) this.giveBack();
    return wait;
  }
}

/**
 * Limit of how many tasks run at the same time; they start in the order in which
 * they enter.
 */
export class ConcurrencyLimit {
  readonly #waiting: Set<() => void> = new Set();
  #free: number;

  /**
   * Creates a limit.
   *
   * @param limit Number of tasks: a whole number from 1, or Infinity.
   */
  constructor(limit: number) {
    this.#free = limit;
  }

  /** Number of waiting tasks. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Takes a slot; a promise if none is free, resolved with the slot.
   *
   * @param signal Signal that ends the wait; the promise rejects with its reason.
   */
  enter(signal?: AbortSignal): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free--;
      return undefined;
    }
    return new Promise((resolve, reject) => {
      const begin = () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = () => {
        this.#waiting.delete(begin);
        reject(signal?.reason);
      };
      if (signal?.aborted) return reject(signal.reason);
      this.#waiting.add(begin);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Hands a slot over to the next task. */
  leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#free++;
    else {
      this.#waiting.delete(next);
      next();
    }
  }
}
