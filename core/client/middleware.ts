import type { OptionRules } from "../api/option_rules.ts";
import { type Clock, deadline, sleep } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { Metrics } from "../metrics.ts";
import { linkedSignal } from "../signals.ts";
import { inSpan, spanHeaders, type Tracer } from "../tracing.ts";
import type { ApiRequest } from "./request.ts";
import { retryAfter } from "./response.ts";
import type { HttpResponse } from "./transport/transport.ts";

/** Sends a request and resolves with the head of its answer. */
export type Send = (request: ApiRequest) => Promise<HttpResponse>;

/** Something that every request passes on its way to the transport. */
export type Middleware = (next: Send) => Send;

/**
 * Puts middleware around a transport's `send`; the first sees a request first
 * and its answer last.
 */
export function compose(send: Send, middleware: readonly Middleware[]): Send {
  return middleware.reduceRight((next, wrap) => wrap(next), send);
}

/** A request with further or other headers. */
export function withHeaders(
  request: ApiRequest,
  headers: Readonly<Record<string, string>>,
): ApiRequest {
  return { ...request, headers: { ...request.headers, ...headers } };
}

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
      const { signal, unlink } = linkedSignal(request.signal, ended);
      await sleep(wait * (1 + parts.random() / 5), { clock, signal })
        .finally(unlink);
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
      const { signal, unlink } = linkedSignal(request.signal, ended);
      try {
        await sleep(delay, { clock, signal });
      } catch (error) {
        // Its turn is free: many that give up must not hold back who comes.
        emptyUntil -= interval;
        throw error;
      } finally {
        unlink();
      }
    }
    return next(request);
  };
}

/**
 * Makes middleware that aborts a request when its response does not begin in
 * time, or pauses for too long: without it, a connection that has gone silent
 * would block the caller indefinitely. Responses that may pause, such as those
 * of a watch, only have to begin in time, and the time that the caller takes to
 * read does not count.
 *
 * @param limit Longest silence of the server, in milliseconds.
 * @param clock Clock that measures it.
 */
export function answerTimeout(limit: number, clock: Clock): Middleware {
  return (next) => async (request) => {
    const late = new AbortController();
    const { signal, unlink } = linkedSignal(request.signal, late.signal);
    const inTime = <V>(what: string, work: Promise<V>): Promise<V> =>
      deadline(work, limit, {
        clock,
        onTimeout() {
          late.abort(
            new Error(
              `Cannot ${request.action}: the server must ${what} its answer within ${limit} ms`,
            ),
          );
          return late.signal.reason;
        },
      });
    const response = await inTime("begin", next({ ...request, signal }))
      .catch((error: unknown) => {
        unlink();
        throw error;
      });
    const mayPause = response.status < 300 &&
      (request.mayPause === true || request.verb === "connect");
    return {
      ...response,
      body: untilSilent(response.body, {
        inTime: (chunk) => mayPause ? chunk : inTime("go on with", chunk),
        onEnd: unlink,
      }),
      cancel: () =>
        mayPause
          ? response.cancel().finally(unlink)
          : inTime("end", response.cancel()).catch(() => {}).finally(unlink),
    };
  };
}

/** Yields the chunks of a body until one of them is late. */
async function* untilSilent(
  body: AsyncIterable<Uint8Array>,
  { inTime, onEnd }: {
    readonly inTime: <V>(chunk: Promise<V>) => Promise<V>;
    readonly onEnd: () => void;
  },
): AsyncGenerator<Uint8Array, void, undefined> {
  const chunks = body[Symbol.asyncIterator]();
  let isOver = false;
  try {
    for (;;) {
      isOver = true; // should it fail
      const { done, value } = await inTime(chunks.next());
      if (done) return;
      isOver = false;
      yield value;
    }
  } finally {
    // A body that has failed needs no return: it has ended, or never will.
    if (!isOver) await chunks.return?.();
    onEnd();
  }
}

/** How many different warnings are remembered. */
const MOST_WARNINGS = 1_000;

/** Counts what is sent, by verb and status code, and how long answers take. */
export function countRequests(metrics: Metrics, clock: Clock): Middleware {
  const requests = metrics.counter({
    name: "coracle_client_requests_total",
    help: "Requests to the API server, by verb and status code.",
  });
  const duration = metrics.histogram({
    name: "coracle_client_request_duration_seconds",
    help: "Time until the API server began its answer, by verb.",
  });
  return (next) => async (request) => {
    const { verb } = request;
    const start = clock.now();
    let code = "error";
    try {
      const response = await next(request);
      code = String(response.status);
      return response;
    } finally {
      requests.add(1, { verb, code });
      duration.observe((clock.now() - start) / 1000, { verb });
    }
  };
}

/**
 * Writes what the server warns of, such as the use of an old API version, each
 * warning once.
 */
export function logWarnings(logger: Logger): Middleware {
  const seen = new Set<string>();
  return (next) => async (request) => {
    const response = await next(request);
    const header = response.headers["warning"];
    if (header === undefined) return response;
    for (const warning of parseWarnings(header)) {
      if (seen.has(warning) || seen.size >= MOST_WARNINGS) continue;
      seen.add(warning);
      logger.warn("The API server warns", { warning, action: request.action });
    }
    return response;
  };
}

/** The texts of a Warning header, which may hold several. */
export function parseWarnings(header: string): string[] {
  return Array.from(
    header.matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g),
    ([, text = ""]) => text.replaceAll(/\\(.)/g, "$1"),
  );
}

/**
 * Puts each request into a span of its own, from when it is asked for until its
 * answer begins, repetitions included, and tells the server of the span by a
 * `traceparent` header. Paths are told without their query.
 */
export function traceRequests(tracer: Tracer): Middleware {
  return (next) => async (request) =>
    await inSpan<HttpResponse>(tracer, `Kubernetes ${request.verb}`, {
      kind: 2,
      attributes: {
        "http.request.method": request.method,
        "url.path": request.path.split("?", 1)[0] as string,
        "coracle.verb": request.verb,
        "coracle.action": request.action,
      },
      onResult(span, { status }) {
        span.setAttribute("http.response.status_code", status);
        if (status >= 400) span.setStatus({ code: 2 });
      },
      work: (span) => next(withHeaders(request, spanHeaders(span))),
    });
}
