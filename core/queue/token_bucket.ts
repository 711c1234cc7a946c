import { type Duration, milliseconds } from "../api/duration.ts";
import { checkOptions, type OptionRules } from "../api/options.ts";
import { TokenBucket } from "../pace.ts";

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
