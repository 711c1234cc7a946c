/**
 * Wrappers for retry policies and limiters of users: their errors are reported,
 * and the queue of the controller uses a default instead.
 *
 * @module
 */
import { immediate } from "../../callback.ts";
import type { Limiter, RateLimitWindow } from "../../queue/limits.ts";
import {
  exponentialBackoff,
  type RetryPolicy,
} from "../../queue/retry_policy.ts";

/** Handler of an error that user code has thrown, or of an invalid number. */
type OnFault = (what: string, error: unknown) => void;

/** Wraps a retry policy; where it fails, the default policy gives the delay. */
export function guardedRetry(
  policy: RetryPolicy,
  onFault: OnFault,
): RetryPolicy {
  const fallback = exponentialBackoff();
  return {
    maxAttempts: policy.maxAttempts,
    delay: (attempt, random) =>
      checked(() => policy.delay(attempt, random), onFault, "plan a retry") ??
        fallback.delay(attempt, random),
  };
}

/** Wraps a limiter of a user; where it fails, the key is admitted. */
export function guardedLimiter<L extends RateLimitWindow | Limiter | undefined>(
  limiter: L,
  onFault: OnFault,
): L | Limiter {
  if (limiter === undefined || !("admit" in limiter)) return limiter;
  return {
    admit: (key, now) =>
      checked(() => limiter.admit(key, now), onFault, "limit runs") ?? 0,
  };
}

function checked(
  call: () => number,
  onFault: OnFault,
  what: string,
): number | undefined {
  try {
    const value = immediate(call(), "a function that plans runs");
    if (value >= 0) return value;
    throw new RangeError(
      `Cannot ${what}: it must be a number of milliseconds from 0: received ${value}`,
    );
  } catch (error) {
    onFault(what, error);
    return undefined;
  }
}
