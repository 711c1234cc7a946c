import { type Duration, milliseconds } from "../api/duration.ts";
import { checkOptions, type OptionRules } from "../api/options.ts";
import { TokenBucket } from "../pace.ts";

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
 * Current periods of the rows of a queue: each allows a number of runs, and starts
 * with the first of them. Further runs wait for its end. Keys are independent of
 * each other.
 */
export class RunWindows {
  readonly #limit: number;
  readonly #period: number;
  /** Rows with a period, which may be over, in the order of their starts. */
  readonly #open: Set<number> = new Set();
  readonly #starts: number[] = [];
  readonly #runs: number[] = [];

  /** @throws {TypeError | RangeError | SyntaxError} If an option is invalid. */
  constructor(options: RateLimitWindow) {
    checkOptions(options, WINDOW_RULES, "a rate limit");
    const { limit, period = 10_000 } = options;
    this.#limit = limit;
    this.#period = milliseconds(period, "rateLimit.period");
  }

  /** Whether a row has a period. */
  has(row: number): boolean {
    return this.#open.has(row);
  }

  /** Admits a run and returns 0, or returns the milliseconds to wait. */
  admit(row: number, now: number): number {
    if (!this.#open.has(row)) {
      this.#open.add(row);
      this.#starts[row] = now;
      this.#runs[row] = 0;
    }
    if ((this.#runs[row] as number)++ < this.#limit) return 0;
    this.#runs[row] = this.#limit;
    const end = this.#starts[row] as number + this.#period;
    return Math.max(MIN_WAIT_MS, end - now);
  }

  /** Ends the periods that are over, and gives their rows. */
  *end(now: number): Generator<number, void, undefined> {
    for (const row of this.#open) {
      if (now - (this.#starts[row] as number) < this.#period) return;
      this.#open.delete(row);
      yield row;
    }
  }
}

/** Options of a token bucket, which limits the runs of a controller. */
export interface TokenBucketOptions {
  /** Average number of runs per period. */
  readonly limit: number;
  /**
   * Length of a period.
   *
   * @default {"1s"}
   */
  readonly period?: Duration | undefined;
  /**
   * Maximum number of runs in a burst. Defaults to `limit`, and at least 1.
   */
  readonly burst?: number | undefined;
}

export const BUCKET_RULES: OptionRules<TokenBucketOptions> = {
  limit: "positive",
  period: "duration?",
  burst: "positive?",
};

/**
 * Token bucket of a controller.
 *
 * @throws {TypeError | RangeError | SyntaxError} If an option is invalid.
 */
export function tokenBucket(options: TokenBucketOptions): TokenBucket {
  checkOptions(options, BUCKET_RULES, "a token bucket");
  const { limit, period = 1_000, burst = Math.max(1, limit) } = options;
  if (!(burst >= 1)) {
    throw new RangeError(
      `Cannot limit the runs of a controller: "burst" must be at least 1: received ${burst}`,
    );
  }
  return new TokenBucket(milliseconds(period, "period") / limit, burst);
}
