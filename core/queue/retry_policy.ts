import { type Duration, milliseconds } from "../api/duration.ts";
import { checkOptions, type OptionRules } from "../api/options.ts";
import { pauseAfter } from "../pace.ts";

/** Options of exponential backoff for failed runs. */
export interface RetryPolicyOptions {
  /**
   * Delay before the first retry.
   *
   * @default {"1s"}
   */
  readonly initial?: Duration | undefined;
  /**
   * Factor between consecutive delays; at least 1.
   *
   * @default {2}
   */
  readonly multiplier?: number | undefined;
  /**
   * Maximum delay; at least `initial`, also by default.
   *
   * @default {"5m"}
   */
  readonly max?: Duration | undefined;
  /**
   * Maximum number of retries of a failed run. After the last one the object
   * waits for an event or the maximum interval.
   *
   * @default {Infinity}
   */
  readonly maxAttempts?: number | undefined;
  /**
   * Share of a delay, from 0 to 1, by which it is randomly lengthened or shortened,
   * so that objects that failed together do not retry together.
   *
   * @default {0.1}
   */
  readonly jitter?: number | undefined;
}

/** Retry policy: decides whether and when a failed run is retried. Pure. */
export interface RetryPolicy {
  /** Maximum number of retries of a failed run; may be `Infinity`. */
  readonly maxAttempts: number;
  /**
   * Returns the delay before a retry, in milliseconds.
   *
   * @param attempt Number of the retry; 1 for the first.
   * @param random Random number from 0 to below 1, for the jitter.
   */
  delay(attempt: number, random: number): number;
}

/** Retry policy without retries. */
export const noRetry: RetryPolicy = { maxAttempts: 0, delay: () => 0 };

export const RETRY_POLICY_RULES: OptionRules<RetryPolicyOptions> = {
  initial: "duration?",
  multiplier: "number?",
  max: "duration?",
  maxAttempts: "number?",
  jitter: "number?",
};

/**
 * Retry policy of exponential backoff. By default a failed run is retried until it
 * succeeds, after 1 s, 2 s, 4 s and so on up to 5 minutes, each ±10 %.
 *
 * @param options Delays and number of retries.
 * @throws {TypeError | RangeError | SyntaxError} If an option is invalid.
 *
 * @example The default delays
 * ```ts
 * import { exponentialBackoff } from "@coracle/operator/core";
 *
 * const policy = exponentialBackoff({ jitter: 0 });
 * const delays = [1, 2, 3].map((attempt) => policy.delay(attempt, 0));
 * if (delays.join() !== "1000,2000,4000") throw new Error("Unexpected delays");
 * ```
 */
export function exponentialBackoff(
  options: RetryPolicyOptions = {},
): RetryPolicy {
  checkOptions(options, RETRY_POLICY_RULES, "retry");
  const { multiplier = 2, maxAttempts = Infinity, jitter = 0.1 } = options;
  const initial = milliseconds(options.initial ?? 1_000, "retry.initial");
  const max = milliseconds(
    options.max ?? Math.max(initial, 300_000),
    "retry.max",
  );
  const rules: readonly (readonly [boolean, string, string, unknown])[] = [
    [multiplier >= 1, "multiplier", "at least 1", multiplier],
    [jitter >= 0 && jitter <= 1, "jitter", "from 0 to 1", jitter],
    [max >= initial, "max", 'at least "retry.initial", by default 1s', max],
    [
      maxAttempts === Infinity ||
      (Number.isInteger(maxAttempts) && maxAttempts >= 0),
      "maxAttempts",
      "a whole number from 0, or Infinity",
      maxAttempts,
    ],
  ];
  for (const [holds, name, rule, value] of rules) {
    if (holds) continue;
    throw new RangeError(
      `Cannot use the retry options: "retry.${name}" must be ${rule}: received ${value}`,
    );
  }
  return {
    maxAttempts,
    delay(attempt, random) {
      const pause = pauseAfter(attempt, { initial, max, multiplier });
      return pause * (1 + jitter * (2 * random - 1));
    },
  };
}
