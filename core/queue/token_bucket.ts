import { type Duration, milliseconds } from "../api/duration.ts";
import { checkOptions, type OptionRules } from "../api/options.ts";

/** How many runs a controller may begin, over all its objects. */
export interface TokenBucketOptions {
  /** How many runs may begin within a period in the long run. */
  readonly limit: number;
  /**
   * How long a period is.
   *
   * @default {"1s"}
   */
  readonly period?: Duration | undefined;
  /**
   * How many runs may begin at once after a quiet time.
   *
   * @default {as `limit`}
   */
  readonly burst?: number | undefined;
}

/** What the options must be. */
export const BUCKET_RULES: OptionRules<TokenBucketOptions> = {
  limit: "positive",
  period: "duration?",
  burst: "positive?",
};

/**
 * A token bucket. Its whole state is one moment: when the bucket will be, or
 * was, full.
 *
 * @example Two at once, then one a second
 * ```ts
 * import { TokenBucket } from "@coracle/operator/core";
 *
 * const bucket = new TokenBucket({ limit: 1, period: "1s", burst: 2 });
 * const waits = [bucket.take(0), bucket.take(0), bucket.take(0)];
 * if (waits.join() !== "0,0,1000") throw new Error("Unexpected waits");
 * ```
 */
export class TokenBucket {
  readonly #interval: number;
  readonly #capacity: number;
  #fullAt = -Infinity;

  /**
   * Makes a full bucket.
   *
   * @param options Rate and burst.
   * @throws {TypeError | RangeError | SyntaxError} If an option makes no sense.
   */
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
   * @param now Milliseconds on any scale that never goes backwards.
   * @returns Zero, or how many milliseconds later there will be one.
   */
  take(now: number): number {
    const fullAt = Math.max(this.#fullAt, now) + this.#interval;
    const wait = fullAt - now - this.#capacity;
    // What sums of fractions leave over is no wait.
    if (wait > 1e-6) return wait;
    this.#fullAt = fullAt;
    return 0;
  }
}
