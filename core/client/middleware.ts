/**
 * Middleware of the client: functions that every request passes on its way to
 * the transport, such as retries, rate limit, timeouts and metrics.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import type { OptionRules, OptionTable, Settings } from "../api/options.ts";
import { type Clock, sleep } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { MetricLabels, Metrics } from "../metrics.ts";
import { pauseAfter, TokenBucket } from "../pace.ts";
import { linkedSignal } from "../signals.ts";
import { inSpan, spanHeaders, type Tracer } from "../tracing.ts";
import type { ApiRequest } from "./request.ts";
import { retryAfter, withoutCredentials } from "./response.ts";
import { WholeBody } from "./transport/chunk_queue.ts";
import type { HttpResponse } from "./transport/transport.ts";

/** Function that sends a request and resolves with the head of its response. */
export type RequestHandler = (request: ApiRequest) => Promise<HttpResponse>;

/** Function that wraps a request handler with further behavior. */
export type Middleware = (
  next: (request: ApiRequest) => Promise<HttpResponse>,
) => (request: ApiRequest) => Promise<HttpResponse>;

/** Wraps a handler with middleware; the first entry becomes the outermost. */
export function compose(
  send: RequestHandler,
  middleware: readonly Middleware[],
): RequestHandler {
  return middleware.reduceRight((next, wrap) => wrap(next), send);
}

/** Returns the request with headers added or replaced. */
export function withHeaders(
  request: ApiRequest,
  headers: Readonly<Record<string, string>>,
): ApiRequest {
  return { ...request, headers: { ...request.headers, ...headers } };
}

/**
 * Returns a function that merges headers and keeps its last result for frozen
 * headers: all requests with the same content type share one object.
 */
export function memoizedHeaders(
  merge: (headers: ApiRequest["headers"]) => ApiRequest["headers"],
): (headers: ApiRequest["headers"]) => ApiRequest["headers"] {
  let last: ApiRequest["headers"] | undefined;
  let merged: ApiRequest["headers"] = {};
  return (headers) => {
    if (last !== undefined && headers === last) return merged;
    if (!Object.isFrozen(headers)) return merge(headers);
    last = headers;
    return merged = Object.freeze(merge(headers));
  };
}

/** Options of the retries of a {@linkcode Client}. */
export interface RetryOptions {
  /**
   * Maximum number of attempts, including the first one.
   *
   * @default {10}
   */
  readonly maxAttempts?: number | undefined;
  /**
   * Delay before the second attempt, in milliseconds, unless the server sends
   * Retry-After; it doubles with each further attempt.
   *
   * @default {100}
   */
  readonly initial?: number | undefined;
  /**
   * Maximum delay between attempts, in milliseconds. A response with a longer
   * Retry-After is returned without another attempt.
   *
   * @default {30_000}
   */
  readonly max?: number | undefined;
}

export const RETRY_OPTIONS: OptionTable<RetryOptions> = {
  maxAttempts: { type: "positive", default: 10 },
  initial: { type: "positive", default: 100 },
  max: { type: "positive", default: 30_000 },
};

export interface RetryDeps {
  /** Source of time. */
  readonly clock: Clock;
  /** Random numbers from 0 to below 1, for jitter. */
  readonly random: () => number;
  /** Logger for failed attempts: the first at debug level, others as warnings. */
  readonly logger?: Logger | undefined;
  /** Signal that aborts when the client is closed. */
  readonly closed?: AbortSignal | undefined;
}

/**
 * Middleware that retries requests: any request when the server responds with
 * 429 or 503 and a Retry-After header, and reads also when the connection fails
 * before a response. Each delay gets up to 20 % of jitter.
 *
 * Watches are not retried after a failed connection, because only their reader
 * knows the resource version to resume from. Requests with `mayRetry: false`
 * are never retried.
 */
export function retry(options: Settings<RetryOptions> & RetryDeps): Middleware {
  const { clock, closed, initial, logger, max, maxAttempts, random } = options;
  return (next) => async (request) => {
    if (request.mayRetry === false) return await next(request);
    const { action, beforeSend } = request;
    let isRefused = false;
    const checked = beforeSend === undefined ? request : {
      ...request,
      beforeSend() {
        isRefused = true;
        beforeSend();
        isRefused = false;
      },
    };
    for (let attempt = 1;; attempt++) {
      const isLast = attempt >= maxAttempts;
      const backoff = pauseAfter(attempt, { initial, max });
      const level = attempt > 1 ? "warn" : "debug";
      let delay: number;
      try {
        const response = await next(checked);
        const requested = isLast ? undefined : requestedDelay(response);
        if (requested === undefined || requested > max) return response;
        // Zero would be no pause at all.
        delay = requested || backoff;
        const { status } = response;
        logger?.[level]("The server throttles a request, which is retried", {
          action,
          status,
        });
        await response.cancel();
      } catch (error) {
        if (isLast || isRefused || closed?.aborted) throw error;
        if (!isRepeatable(request)) throw error;
        delay = backoff;
        logger?.[level]("A request failed and is retried", { action, error });
      }
      const { signal, unlink } = linkedSignal(request.signal, closed);
      await sleep(delay * (1 + random() / 5), { clock, signal })
        .finally(unlink);
    }
  };
}

function requestedDelay(response: HttpResponse): number | undefined {
  return response.status === 429 || response.status === 503
    ? retryAfter(response)
    : undefined;
}

/** Path of access reviews, whose creation changes nothing on the server. */
const REVIEW_PATH = "/apis/authorization.k8s.io/";

function isRepeatable(request: ApiRequest): boolean {
  const { method, path, verb, signal } = request;
  const changesNothing = method === "GET" || path.startsWith(REVIEW_PATH);
  return changesNothing && verb !== "watch" && !signal?.aborted;
}

/** Options of the client-side rate limit of a {@linkcode Client}. */
export interface RateLimitOptions {
  /** Maximum average rate, in requests per second. */
  readonly perSecond: number;
  /**
   * Maximum number of requests in a burst after a quiet period. Defaults to
   * twice `perSecond`, but at least 1.
   */
  readonly burst?: number | undefined;
}

/** Types of the rate limit options. */
export const RATE_LIMIT_RULES: OptionRules<RateLimitOptions> = {
  perSecond: "positive",
  burst: "positive?",
};

/** Path of Leases, which have no rate limit: a late renewal loses the Lease. */
const EXEMPT_PATH = "/apis/coordination.k8s.io/";

/**
 * Middleware that delays requests to keep a rate, in order of arrival (token
 * bucket). Requests for Leases are exempt.
 *
 * @throws {RangeError} If the rate or burst is not positive.
 */
export function rateLimit(
  options: RateLimitOptions & Pick<RetryDeps, "clock" | "closed">,
): Middleware {
  const { clock, closed, perSecond } = options;
  const { burst = Math.max(1, perSecond * 2) } = options;
  if (!(perSecond > 0) || !(burst >= 1)) {
    throw new RangeError(
      `Cannot limit requests: "perSecond" must be positive and "burst" at least 1: received ${perSecond} and ${burst}`,
    );
  }
  const bucket = new TokenBucket(1_000 / perSecond, burst);
  return (next) => async (request) => {
    if (request.path.startsWith(EXEMPT_PATH)) return await next(request);
    const delay = bucket.reserve(clock.now());
    if (delay > 0) {
      const { signal, unlink } = linkedSignal(request.signal, closed);
      try {
        await sleep(delay, { clock, signal });
      } catch (error) {
        // Aborted requests must not delay later ones.
        bucket.giveBack();
        throw error;
      } finally {
        unlink();
      }
    }
    return next(request);
  };
}

/** Time limit of the body of a refusal, in milliseconds. */
const REFUSAL_LIMIT_MS = 10_000;

/**
 * Middleware that fails a request if its response does not begin within a time
 * limit, or if no further chunk arrives within the limit: a silent connection
 * would block its caller indefinitely. Time that the reader takes between chunks
 * does not count. Requests with `mayPause` have no limit after the head. The body of
 * a refusal must end within the limit, and within ten seconds: nobody needs all of
 * it, and one that drips would hold its caller for hours.
 *
 * @param limit The time limit, in milliseconds.
 */
export function responseTimeout(limit: number, clock: Clock): Middleware {
  return (next) => async (request) => {
    const watch = new ResponseWatch(request, limit, clock);
    let sent: Promise<HttpResponse> | undefined;
    let response: HttpResponse;
    try {
      sent = next({ ...request, signal: watch.signal });
      response = await watch.limited("begin", sent);
    } catch (error) {
      watch.end();
      // Nobody reads a response that arrives later.
      sent?.then((late) => late.cancel()).catch(() => {});
      throw error;
    }
    if (response.body instanceof WholeBody) {
      watch.end();
      return response;
    }
    const isRefusal = response.status >= 300;
    const mayPause = !isRefusal &&
      (request.mayPause === true || request.verb === "connect");
    const whole = Math.min(limit, REFUSAL_LIMIT_MS);
    const begun = clock.now();
    const read = (chunk: Promise<IteratorResult<Uint8Array, unknown>>) => {
      if (mayPause) return chunk;
      return isRefusal
        ? watch.limited("end", chunk, whole, clock.now() - begun)
        : watch.limited("continue", chunk);
    };
    return {
      status: response.status,
      headers: response.headers,
      body: watchedBody(response.body, watch, read),
      cancel: () =>
        (mayPause
          ? response.cancel()
          : watch.limited("end", response.cancel()).catch(() => {}))
          .finally(() => watch.end()),
    };
  };
}

/** Time limit of one response: aborts its request if a step takes longer. */
class ResponseWatch {
  readonly #request: ApiRequest;
  readonly #limit: number;
  readonly #clock: Clock;
  readonly #controller: AbortController = new AbortController();
  #reject: ((reason: unknown) => void) | undefined;

  constructor(request: ApiRequest, limit: number, clock: Clock) {
    this.#request = request;
    this.#limit = limit;
    this.#clock = clock;
    const { signal } = request;
    if (signal?.aborted) this.#abort(signal.reason);
    else signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** Signal of the request, which the caller or the time limit aborts. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Waits for the next step of the response, within a limit that may have begun. */
  limited<V>(
    verb: string,
    step: Promise<V>,
    limit = this.#limit,
    elapsed = 0,
  ): Promise<V> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.setTimer(() =>
        this.#abort(
          new Error(
            `Cannot ${this.#request.action}: the server did not ${verb} its response within ${limit} ms`,
          ),
        ), Math.max(0, limit - elapsed));
      const failed = (error: unknown) => {
        timer.cancel();
        reject(error);
      };
      this.#reject = failed;
      step.then((value) => {
        timer.cancel();
        resolve(value);
      }, failed);
      if (this.signal.aborted) failed(this.signal.reason);
    });
  }

  /** Ends the watch: the response is complete or no longer needed. */
  end(): void {
    this.#request.signal?.removeEventListener("abort", this.#onAbort);
  }

  readonly #onAbort = (): void => this.#abort(this.#request.signal?.reason);

  #abort(reason: unknown): void {
    this.#controller.abort(reason);
    // Not every transport heeds the signal.
    this.#reject?.(reason);
  }
}

/**
 * Wraps a body with the time limit of each chunk. Returns the promises of the body
 * without awaiting them, because all watch events pass here.
 */
function watchedBody(
  body: AsyncIterable<Uint8Array>,
  watch: ResponseWatch,
  limited: (
    chunk: Promise<IteratorResult<Uint8Array, unknown>>,
  ) => Promise<IteratorResult<Uint8Array, unknown>>,
): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      const chunks = body[Symbol.asyncIterator]();
      const end = () => watch.end();
      return {
        next() {
          const result = limited(chunks.next());
          result.then(({ done }) => done && end(), end);
          return result;
        },
        return() {
          end();
          return chunks.return?.() ??
            Promise.resolve({ done: true, value: undefined });
        },
      };
    },
  };
}

/** Middleware that counts and times requests, by verb and status code. */
export function countRequests(metrics: Metrics, clock: Clock): Middleware {
  const requests = metrics.counter({
    name: "coracle_client_requests_total",
    help: "Requests to the API server, by verb and status code.",
    labels: ["verb", "code"],
  });
  const duration = metrics.histogram({
    name: "coracle_client_request_duration_seconds",
    help: "Time until the response of the API server began, by verb.",
    labels: ["verb"],
  });
  // Frozen labels are found by their identity.
  const labels: Map<string, MetricLabels> = new Map();
  const labelsOf = (verb: ApiRequest["verb"], code?: string): MetricLabels => {
    const id = code === undefined ? verb : `${verb} ${code}`;
    let found = labels.get(id);
    if (found === undefined) {
      found = Object.freeze(code === undefined ? { verb } : { verb, code });
      labels.set(id, found);
    }
    return found;
  };
  return (next) => async (request) => {
    const { verb } = request;
    const start = clock.now();
    let code = "error";
    try {
      const response = await next(request);
      code = String(response.status);
      return response;
    } finally {
      requests.add(1, labelsOf(verb, code));
      duration.observe((clock.now() - start) / 1000, labelsOf(verb));
    }
  };
}

/** Maximum number of distinct warnings that are logged. */
const MAX_WARNINGS = 1_000;

/**
 * Middleware that logs the warnings of the API server, such as the use of a
 * deprecated API version; each distinct warning once.
 */
export function logWarnings(logger: Logger): Middleware {
  const seen = new Set<string>();
  return (next) => async (request) => {
    const response = await next(request);
    const header = response.headers["warning"];
    if (header === undefined) return response;
    const text = withoutCredentials(fromBytes(header));
    for (const warning of parseWarnings(text)) {
      if (seen.has(warning) || seen.size >= MAX_WARNINGS) continue;
      seen.add(warning);
      logger.warn("The API server warns", { warning, action: request.action });
    }
    return response;
  };
}

/**
 * Text of a header in UTF-8: transports over a network give each byte as a character.
 * Other texts are returned as they are.
 */
function fromBytes(text: string): string {
  if (!/[\x80-\xff]/.test(text) || /[\u0100-\uffff]/.test(text)) return text;
  try {
    return new TextDecoder("utf-8", { fatal: true })
      .decode(Buffer.from(text, "latin1"));
  } catch {
    return text;
  }
}

/** Parses the texts of a Warning header, which may hold several. */
export function parseWarnings(header: string): string[] {
  return Array.from(
    header.matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g),
    ([, text = ""]) => text.replaceAll(/\\(.)/g, "$1"),
  );
}

/**
 * Middleware that records a span per request, from the call until the head of
 * the response, including retries, and sends its `traceparent` header. The span
 * has the path without its query.
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
