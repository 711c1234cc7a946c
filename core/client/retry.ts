import type { OptionRules } from "../api/option_rules.ts";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { ApiRequest } from "./request.ts";
import { retryAfter } from "./response.ts";
import type { Middleware } from "./send.ts";
import type { HttpResponse } from "./transport.ts";

/** How refused and broken requests are sent again. */
export interface RetryOptions {
  /**
   * How often a request is sent at most, the first time included.
   *
   * @default {10}
   */
  readonly maxAttempts?: number | undefined;
  /**
   * The first pause in milliseconds when the server names none; it doubles.
   *
   * @default {100}
   */
  readonly initial?: number | undefined;
  /**
   * The longest pause in milliseconds; a server that asks for a longer one gets
   * no further attempt.
   *
   * @default {30_000}
   */
  readonly max?: number | undefined;
}

/** What the options of retries must be. */
export const RETRY_RULES: OptionRules<RetryOptions> = {
  maxAttempts: "positive?",
  initial: "positive?",
  max: "positive?",
};

/** What {@linkcode retry} needs beside its options. */
export interface RetryParts extends RetryOptions {
  readonly clock: Clock;
  readonly random: () => number;
  /** Told when more than one attempt in a row has failed. */
  readonly logger?: Logger | undefined;
  /** Aborts when nothing may be sent any more. */
  readonly ended?: AbortSignal | undefined;
}

/**
 * Sends a request again when the server asks for it by 429 or 503 with
 * Retry-After, and a request that changes nothing also when its connection
 * broke before an answer came. A pause is lengthened by up to a fifth, so that
 * many clients do not come back at once.
 *
 * Watches are never repeated after a broken connection: whoever reads them
 * knows better where to go on. The same holds for requests that say so
 * themselves, by `mayRetry`.
 */
export function retry(parts: RetryParts): Middleware {
  const { clock, ended, maxAttempts = 10, initial = 100, max = 30_000 } = parts;
  return (next) => async (request) => {
    if (request.mayRetry === false) return await next(request);
    let pause = initial;
    for (let attempt = 1;; attempt++) {
      const last = attempt >= maxAttempts;
      let wait: number;
      try {
        const response = await next(request);
        const asked = last ? undefined : askedPause(response);
        if (asked === undefined || asked > max) return response;
        wait = asked;
        await response.cancel();
      } catch (error) {
        if (last || ended?.aborted || !mayRepeat(request)) throw error;
        wait = pause;
        if (attempt > 1) {
          const { action } = request;
          parts.logger?.warn("No answer yet, it is tried again", {
            action,
            error,
          });
        }
      }
      pause = Math.min(pause * 2, max);
      await sleep(wait * (1 + parts.random() / 5), {
        clock,
        signal: eitherSignal(request.signal, ended),
      });
    }
  };
}

function askedPause(response: HttpResponse): number | undefined {
  return response.status === 429 || response.status === 503
    ? retryAfter(response)
    : undefined;
}

function mayRepeat(request: ApiRequest): boolean {
  return request.method === "GET" && request.verb !== "watch" &&
    !request.signal?.aborted;
}

/** A signal that aborts when one of two does. */
export function eitherSignal(
  a: AbortSignal | undefined,
  b: AbortSignal | undefined,
): AbortSignal | undefined {
  return a !== undefined && b !== undefined ? AbortSignal.any([a, b]) : a ?? b;
}

/**
 * Waits, on a clock, and no longer than a signal allows.
 *
 * @param delay How long, in milliseconds.
 */
export function sleep(
  delay: number,
  options: { readonly clock: Clock; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  const { clock, signal } = options;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = clock.setTimer(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, delay);
    const onAbort = () => {
      timer.cancel();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
