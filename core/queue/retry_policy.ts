import { type Duration, milliseconds } from "../api/duration.ts";
import { checkOptions, type OptionRules } from "../api/options.ts";

/** How failed runs are repeated. */
export interface RetryPolicyOptions {
  /**
   * The pause before the first retry.
   *
   * @default {"2s"}
   */
  readonly initial?: Duration | undefined;
  /**
   * By how much each pause is longer than the one before; at least 1.
   *
   * @default {1.5}
   */
  readonly multiplier?: number | undefined;
  /**
   * The longest pause.
   *
   * @default {"15187ms", what the other defaults lead to}
   */
  readonly max?: Duration | undefined;
  /**
   * How many retries follow a failed run; infinite is allowed. After the last
   * one the object waits for an event or the maximal interval.
   *
   * @default {5}
   */
  readonly maxAttempts?: number | undefined;
  /**
   * By what share a pause is made longer or shorter at random, so that objects
   * that failed together do not retry together; from 0 to 1.
   *
   * @default {0.1}
   */
  readonly jitter?: number | undefined;
}

/** Decides whether and when a failed run is repeated. Pure. */
export interface RetryPolicy {
  /** How many retries follow a failed run; infinite is allowed. */
  readonly maxAttempts: number;
  /**
   * The pause before a retry, in milliseconds.
   *
   * @param attempt Which retry: 1 for the first.
   * @param random A number from 0 to below 1.
   */
  delay(attempt: number, random: number): number;
}

/** A policy that never retries. */
export const noRetry: RetryPolicy = { maxAttempts: 0, delay: () => 0 };

/** What the options must be. */
export const RETRY_POLICY_RULES: OptionRules<RetryPolicyOptions> = {
  initial: "duration?",
  multiplier: "number?",
  max: "duration?",
  maxAttempts: "number?",
  jitter: "number?",
};

/**
 * Pauses that grow by a factor up to a longest one. The defaults are those of the
 * Java Operator SDK, but for the jitter.
 *
 * @throws {TypeError | RangeError | SyntaxError} If an option makes no sense.
 *
 * @example The default pauses
 * ```ts
 * import { exponentialBackoff } from "@coracle/operator/core";
 *
 * const policy = exponentialBackoff({ jitter: 0 });
 * const pauses = [1, 2, 3].map((attempt) => policy.delay(attempt, 0));
 * if (pauses.join() !== "2000,3000,4500") throw new Error("Unexpected pauses");
 * ```
 */
export function exponentialBackoff(
  options: RetryPolicyOptions = {},
): RetryPolicy {
  checkOptions(options, RETRY_POLICY_RULES, "retry");
  const { multiplier = 1.5, maxAttempts = 5, jitter = 0.1 } = options;
  const initial = milliseconds(options.initial ?? 2_000, "retry.initial");
  const max = milliseconds(
    options.max ?? Math.max(initial, initial * multiplier ** 5),
    "retry.max",
  );
  const rules: readonly (readonly [boolean, string, string, unknown])[] = [
    [multiplier >= 1, "multiplier", "at least 1", multiplier],
    [jitter >= 0 && jitter <= 1, "jitter", "from 0 to 1", jitter],
    [max >= initial, "max", 'at least "retry.initial"', max],
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
      // The exponent is bounded, so that the power never becomes infinite.
      const growth = multiplier ** Math.min(attempt - 1, 1_000);
      const pause = Math.min(initial * growth, max);
      return pause * (1 + jitter * (2 * random - 1));
    },
  };
}
