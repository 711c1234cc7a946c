import type { OptionRules } from "../api/option_rules.ts";
import type { Clock } from "../clock.ts";
import { eitherSignal, sleep } from "./retry.ts";
import type { Middleware } from "./send.ts";

/** How many requests may be sent. */
export interface RateLimitOptions {
  /** Requests a second in the long run. */
  readonly perSecond: number;
  /**
   * Requests at once after a quiet time.
   *
   * @default {twice `perSecond`}
   */
  readonly burst?: number | undefined;
}

/** What the options of a rate must be. */
export const RATE_LIMIT_RULES: OptionRules<RateLimitOptions> = {
  perSecond: "positive",
  burst: "positive?",
};

/** Where Leases are: a renewal that waits for its turn may come too late. */
const EXEMPT = "/apis/coordination.k8s.io/";

/**
 * Holds requests back so that no more than the given rate is sent, in order of
 * their arrival. Those on Leases pass at once.
 *
 * @throws {RangeError} If the rate or burst is not positive.
 */
export function rateLimit(
  options: RateLimitOptions & {
    readonly clock: Clock;
    /** Aborts when nothing may be sent any more. */
    readonly ended?: AbortSignal | undefined;
  },
): Middleware {
  const { clock, ended, perSecond } = options;
  const { burst = Math.max(1, perSecond * 2) } = options;
  if (!(perSecond > 0) || !(burst >= 1)) {
    throw new RangeError(
      `Cannot limit requests: "perSecond" must be positive and "burst" at least 1: received ${perSecond} and ${burst}`,
    );
  }
  const interval = 1000 / perSecond;
  // When the bucket was full or, in the future, when it will have a token: the
  // whole state of a token bucket is this one moment (GCRA).
  let emptyUntil = Number.NEGATIVE_INFINITY;
  return (next) => async (request) => {
    if (request.path.startsWith(EXEMPT)) return await next(request);
    const now = clock.now();
    emptyUntil = Math.max(emptyUntil, now - burst * interval) + interval;
    const delay = emptyUntil - now;
    if (delay > 0) {
      const signal = eitherSignal(request.signal, ended);
      try {
        await sleep(delay, { clock, signal });
      } catch (error) {
        // Its turn is free: many that give up must not hold back who comes.
        emptyUntil -= interval;
        throw error;
      }
    }
    return next(request);
  };
}
