import { type Duration, milliseconds } from "../api/duration.ts";
import { checkOptions, type OptionRules } from "../api/options.ts";

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
 * Token bucket. Its only state is the time at which it will be, or was, full.
 */
export class TokenBucket {
  readonly #interval: number;
  readonly #capacity: number;
  #fullAt = -Infinity;

  /** @throws {TypeError | RangeError | SyntaxError} If an option is invalid. */
  constructor(options: TokenBucketOptions) {
    checkOptions(options, BUCKET_RULES, "a token bucket");
    const { limit, period = 1_000, burst = Math.max(1, limit) } = options;
    if (!(burst >= 1)) {
      throw new RangeError(
        `Cannot limit the runs of a controller: "burst" must be at least 1: received ${burst}`,
      );
    }
    this.#interval = milliseconds(period, "period") / limit;
    this.#capacity = burst * this.#interval;
  }

  /**
   * Takes a token, if there is one.
   *
   * @param now Current time in milliseconds of a monotonic clock.
   * @returns Zero, or the milliseconds until the next token.
   */
  take(now: number): number {
    const fullAt = Math.max(this.#fullAt, now) + this.#interval;
    const wait = fullAt - now - this.#capacity;
    // Rounding errors are no wait.
    if (wait > 1e-6) return wait;
    this.#fullAt = fullAt;
    return 0;
  }
}
