import { type Duration, milliseconds } from "../api/duration.ts";
import { checkOptions, type OptionRules } from "../api/options.ts";

/** Limiter of the runs of single keys. */
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

/** How often one object may be reconciled. */
export interface RateLimitWindow {
  /** How many runs an object may have within a period; at least 1. */
  readonly limit: number;
  /**
   * How long a period is.
   *
   * @default {"10s"}
   */
  readonly period?: Duration | undefined;
}

/** What the options must be. */
export const WINDOW_RULES: OptionRules<RateLimitWindow> = {
  limit: "count",
  period: "duration?",
};

/** The shortest wait, so that a limit reached just now is not asked in vain. */
const SHORTEST_WAIT = 50;

/**
 * Allows each key a number of runs within a period, which begins with the first
 * of them. What comes after waits for the end of the period; keys do not
 * disturb each other. Periods that are over are forgotten.
 *
 * @example Twice in ten seconds
 * ```ts
 * import { WindowLimiter } from "@coracle/operator/core";
 *
 * const limiter = new WindowLimiter({ limit: 2, period: "10s" });
 * const waits = [0, 1_000, 2_000].map((now) => limiter.admit("default/a", now));
 * if (waits.join() !== "0,0,8000") throw new Error("Unexpected waits");
 * ```
 */
export class WindowLimiter implements Limiter {
  readonly #limit: number;
  readonly #period: number;
  /** In the order in which the periods began. */
  readonly #windows: Map<string, { start: number; runs: number }> = new Map();

  /**
   * Makes a limiter that has counted nothing.
   *
   * @param options The limit and the period.
   * @throws {TypeError | RangeError | SyntaxError} If an option makes no sense.
   */
  constructor(options: RateLimitWindow) {
    checkOptions(options, WINDOW_RULES, "a rate limit");
    const { limit, period = 10_000 } = options;
    this.#limit = limit;
    this.#period = milliseconds(period, "rateLimit.period");
  }

  /** How many keys have a period that may not be over. */
  get size(): number {
    return this.#windows.size;
  }

  /** Counts a run, or gives the milliseconds until one may begin. */
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
    return Math.max(SHORTEST_WAIT, window.start + this.#period - now);
  }

  #forget(now: number): void {
    for (const [key, { start }] of this.#windows) {
      if (now - start < this.#period) return;
      this.#windows.delete(key);
    }
  }
}
