import { type Duration, milliseconds } from "../api/duration.ts";
import { checkOptions, type OptionRules } from "../api/options.ts";

/** Limiter that decides how often each key may run. */
export interface Limiter {
  /**
   * Admits a run of a key, or delays it. Called when a key is about to be taken.
   *
   * @param key Key of the object.
   * @param now Time of the queue's clock, in milliseconds.
   * @returns Zero to admit the run, which then counts; otherwise the delay in
   * milliseconds until the next call.
   */
  admit(key: string, now: number): number;
}

/** Rate limit of a single object. */
export interface RateLimitWindow {
  /** Maximum number of runs of an object per period; at least 1. */
  readonly limit: number;
  /**
   * Length of a period.
   *
   * @default {"10s"}
   */
  readonly period?: Duration | undefined;
}

export const WINDOW_RULES: OptionRules<RateLimitWindow> = {
  limit: "count",
  period: "duration?",
};

/** Minimum delay, so that the limiter is not called again too early. */
const MIN_WAIT_MS = 50;

/**
 * Limiter that allows each key a number of runs per period, which starts with the
 * first of them. Further runs wait for the end of the period. Keys are
 * independent of each other, and periods that are over take no memory.
 */
export class WindowLimiter implements Limiter {
  readonly #limit: number;
  readonly #period: number;
  /** Current period of each key, in the order of their starts. */
  readonly #windows: Map<string, { start: number; runs: number }> = new Map();

  /** @throws {TypeError | RangeError | SyntaxError} If an option is invalid. */
  constructor(options: RateLimitWindow) {
    checkOptions(options, WINDOW_RULES, "a rate limit");
    const { limit, period = 10_000 } = options;
    this.#limit = limit;
    this.#period = milliseconds(period, "rateLimit.period");
  }

  /** Number of keys with a stored period, which may be over. */
  get size(): number {
    return this.#windows.size;
  }

  /** Admits a run and returns 0, or returns the milliseconds to wait. */
  admit(key: string, now: number): number {
    this.#forget(now);
    const window = this.#windows.get(key);
    if (window === undefined) {
      this.#windows.set(key, { start: now, runs: 1 });
      return 0;
    }
    if (window.runs < this.#limit) {
      window.runs++;
      return 0;
    }
    return Math.max(MIN_WAIT_MS, window.start + this.#period - now);
  }

  #forget(now: number): void {
    for (const [key, { start }] of this.#windows) {
      if (now - start < this.#period) return;
      this.#windows.delete(key);
    }
  }
}
