/**
 * Pacing of repeated work: pauses that grow, rates, and limits of how much runs at
 * the same time. Time, or the clock, is passed in. A write that conflicts is repeated by
 * `client/retry_on_conflict.ts`.
 *
 * @module
 */

import type { Clock } from "./clock.ts";

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

/** Longest pause that a server may request, in milliseconds. */
const MAX_REQUESTED_MS = 5 * 60_000;

/** Settings of a {@linkcode BackOff}, in milliseconds. */
interface BackOffSettings {
  /** First pause. */
  readonly initialDelay: number;
  /** Longest pause, before jitter. */
  readonly maxDelay: number;
  /** Time without failures after which pauses start again from the first. */
  readonly resetAfter: number;
}

/**
 * Exponential backoff between connection attempts: pauses double up to a cap, are
 * lengthened by up to themselves at random so that the clients of a server that
 * restarts do not reconnect together, and start again from the first after a time
 * without failures.
 *
 * That time is measured from the end of the last pause, not from a successful
 * connection: a server that accepts and drops connections must be protected.
 */
export class BackOff {
  readonly #settings: BackOffSettings;
  readonly #clock: Clock;
  readonly #random: () => number;
  /** Number of failures in a row. */
  #failures = 0;
  /** Time at which the last pause ended; undefined before the first pause. */
  #resumed: number | undefined;

  constructor(settings: BackOffSettings, clock: Clock, random: () => number) {
    this.#settings = settings;
    this.#clock = clock;
    this.#random = random;
  }

  /**
   * Next pause in milliseconds.
   *
   * @param atLeast Pause that the server requested, at most five minutes; jitter is
   * added to it.
   */
  next(atLeast = 0): number {
    const { initialDelay: initial, maxDelay: max, resetAfter } = this.#settings;
    const now = this.#clock.now();
    // NaN, from an error of other middleware, would be no pause at all.
    const requested = atLeast > 0 ? Math.min(atLeast, MAX_REQUESTED_MS) : 0;
    if (this.#resumed !== undefined && now - this.#resumed >= resetAfter) {
      this.#failures = 0;
    }
    const pause = Math.max(
      pauseAfter(++this.#failures, { initial, max }) * (1 + this.#random()),
      requested * (1 + this.#random() / 10),
    );
    this.#resumed = now + pause;
    return pause;
  }

  /** Pause as after the first failure, with jitter; the next one is not longer. */
  short(): number {
    return this.#settings.initialDelay * (1 + this.#random());
  }
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
 * Limit of how many tasks run at the same time, or of their weight together, such as
 * bytes; they start in the order in which they enter. A task that weighs more than the
 * limit runs alone.
 */
export class ConcurrencyLimit {
  readonly #limit: number;
  /** Tasks that wait, with their weights. */
  readonly #waiting: Map<() => void, number> = new Map();
  #weight = 0;

  /**
   * Creates a limit.
   *
   * @param limit Number of tasks, or weight: from 1, or Infinity.
   */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Number of waiting tasks. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Takes a place; a promise if none exists now, resolved with the place.
   *
   * @param signal Signal that ends the wait; the promise rejects with its reason.
   * @param weight Weight of the task.
   */
  enter(signal?: AbortSignal, weight = 1): Promise<void> | undefined {
    if (this.#waiting.size === 0 && this.#fits(weight)) {
      this.#weight += weight;
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
        this.#admit();
      };
      if (signal?.aborted) return reject(signal.reason);
      this.#waiting.set(begin, weight);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  /**
   * Gives the place of a task to those that wait.
   *
   * @param weight Weight with which it entered.
   */
  leave(weight = 1): void {
    this.#weight -= weight;
    this.#admit();
  }

  #fits(weight: number): boolean {
    return this.#weight === 0 || this.#weight + weight <= this.#limit;
  }

  #admit(): void {
    for (const [begin, weight] of this.#waiting) {
      if (!this.#fits(weight)) return;
      this.#waiting.delete(begin);
      this.#weight += weight;
      begin();
    }
  }
}
