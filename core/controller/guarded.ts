/**
 * Code of users that the queue of a controller calls, kept from harming it: what
 * it throws is reported, and the queue goes on as if it had said nothing.
 *
 * @module
 */
import type { KubernetesObject } from "../api/object.ts";
import type { Limiter } from "../queue/limiter.ts";
import { exponentialBackoff, type RetryPolicy } from "../queue/retry_policy.ts";
import type { RunObserver } from "./run_observer.ts";

/** Told of what user code has thrown, or gave in place of a number. */
export type OnFault = (what: string, error: unknown) => void;

/** Several observers in one; each is told, whatever the others throw. */
export function guardedObserver<P extends KubernetesObject>(
  observers: readonly RunObserver<P>[],
  onFault: OnFault,
): Required<RunObserver<P>> {
  const tell = (told: (observer: RunObserver<P>) => void): void => {
    for (const observer of observers) {
      try {
        told(observer);
      } catch (error) {
        onFault("tell of a run", error);
      }
    }
  };
  return {
    started: (run) => tell((observer) => observer.started?.(run)),
    ended: (run, result, plan) =>
      tell((observer) => observer.ended?.(run, result, plan)),
    forgotten: (key) => tell((observer) => observer.forgotten?.(key)),
  };
}

/** A retry policy that gives the pauses of the default one when it cannot say. */
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

/** A limiter that lets a key run when it cannot say. */
export function guardedLimiter(limiter: Limiter, onFault: OnFault): Limiter {
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
    const value = call();
    if (value >= 0) return value;
    throw new RangeError(
      `Cannot ${what}: it takes milliseconds from 0: received ${value}`,
    );
  } catch (error) {
    onFault(what, error);
    return undefined;
  }
}
