import type { IncomingMessage, ServerResponse } from "node:http";
import process from "node:process";
import type { TLSSocket } from "node:tls";
import { WebhookRefusal, type WebhookRoutes } from "../client/webhook_host.ts";
import { type Clock, deadline, sleep } from "../clock.ts";
import { CONVERT_PATH } from "../conversion/register_conversion.ts";
import { errorMessage, shortText } from "../error_text.ts";
import type { Logger } from "../logger.ts";
import { readBody, replyText } from "../node_http.ts";
import type { Counter, Metrics } from "../metrics.ts";
import { type ServerIdentity, TlsServer } from "./tls_server.ts";

/** Address and limits of a {@linkcode WebhookListener}. */
export interface WebhookListenerOptions {
  readonly port: number;
  readonly host: string;
  /** Maximum size of a body, in bytes. */
  readonly bodyLimit: number;
  /** Maximum number of requests that are handled at the same time. */
  readonly concurrency: number;
  /**
   * Names of the callers in their client certificates; "all" for any with a
   * certificate, undefined for any caller. Conversions are open to any: API servers
   * present no certificate with them.
   */
  readonly callers?: "all" | readonly string[] | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Path on which the listener answers that it is there. */
export const LISTENER_PATH = "/healthz";

/** Time limit for receiving a request, in milliseconds. */
const RECEIVE_TIMEOUT_MS = 10_000;
/** Maximum number of connections; API servers keep up to 25 each. */
const MAX_CONNECTIONS = 1_000;
/** All bodies that are received or handled have at most this many times the limit of one. */
const HELD_BODIES = 2;
/** Time limit of a call that does not name one: that of conversion webhooks. */
const DEFAULT_TIMEOUT_MS = 30_000;
/** Part of the time of a call in which a route must answer. */
const ROUTE_SHARE = 0.8;
/** Part of the time of a call after which its signal aborts. */
const CALL_SHARE = 0.9;
/** Time until no Service leads to a replica that is not ready, in milliseconds. */
const LEAVING_MS = 3_000;
/** Time without a request after which a listener has been left, in milliseconds. */
const QUIET_MS = 1_000;
/** Time that requests have to end when the listener stops, in milliseconds. */
const STOP_MS = 2_000;
/** Time in which the last answer reaches its caller, in milliseconds. */
const FLUSH_MS = 50;
/** Maximum length of the text of a failure, in characters. */
const MAX_TEXT = 2_000;

/**
 * HTTPS listener for the webhooks of an operator: `POST` of JSON to the path of a
 * route.
 *
 * What is no review gets a clear refusal, and holds nothing: 404 and 405 for other
 * paths and methods, 408 for a body that does not arrive in time, 413 for one that
 * is too large, 415 for another content type, 401 and 403 for other callers, 429 while too much is handled or
 * received, and 400 for what is no review of a known version. A failed route gets
 * 500, for which the API server applies the `failurePolicy`.
 */
export class WebhookListener {
  readonly #routes: WebhookRoutes;
  readonly #options: WebhookListenerOptions;
  readonly #server: TlsServer;
  readonly #refusals: Counter;
  /** Size of the bodies that are received or handled. */
  #held = 0;
  /** Number of requests that are handled. */
  #handled = 0;
  /** Whether callers are sent to other replicas with each answer. */
  #isLeaving = false;
  /** Time at which the last request came. */
  #lastRequest = -Infinity;
  /** Responses that are not sent. */
  readonly #unanswered: Set<ServerResponse> = new Set();
  #whenIdle: (() => void) | undefined;

  constructor(routes: WebhookRoutes, options: WebhookListenerOptions) {
    const { port, host, callers } = options;
    if (callers !== undefined && callers !== "all" && !showsCertificates()) {
      throw new Error(
        'Cannot check the names of the callers of webhooks: servers of Bun do not show client certificates, so leave "names" out',
      );
    }
    this.#routes = routes;
    this.#options = options;
    this.#refusals = options.metrics.counter({
      name: "coracle_webhook_refusals_total",
      help: "Requests to the webhooks that were refused before a handler.",
      labels: ["status"],
    });
    this.#server = new TlsServer({
      port,
      host,
      action: `serve webhooks on ${host}:${port}`,
      requestTimeout: RECEIVE_TIMEOUT_MS,
      maxConnections: MAX_CONNECTIONS,
      handle: (request, response) => void this.#serve(request, response),
    });
  }

  /** Port of the listener; undefined while it does not listen. */
  get port(): number | undefined {
    return this.#server.port;
  }

  /** Starts to listen, as {@linkcode TlsServer.start}. */
  async start(pair: ServerIdentity): Promise<void> {
    await this.#server.start(pair);
  }

  /** Replaces the certificate for new connections. */
  async use(pair: ServerIdentity): Promise<void> {
    await this.#server.use(pair);
  }

  /**
   * Sends callers to other replicas, before the listener stops: requests are answered
   * as before, until a Service no longer leads here, and their connections are closed
   * with the answer.
   *
   * @param limit Maximum time, in milliseconds.
   * @param signal Signal that ends it early.
   */
  async leave(limit: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    this.#isLeaving = true;
    const start = clock.now();
    const pause = (ms: number) =>
      sleep(Math.max(Math.min(ms, start + limit - clock.now()), 0), {
        clock,
        signal,
      }).catch(() => {});
    await pause(LEAVING_MS);
    while (!signal.aborted && clock.now() < start + limit) {
      const quiet = clock.now() - this.#lastRequest;
      if (quiet >= QUIET_MS) return;
      await pause(QUIET_MS - quiet);
    }
  }

  /**
   * Closes the connections without a request, waits a little for requests in progress,
   * and breaks the other connections.
   */
  async stop(): Promise<void> {
    const { clock } = this.#options;
    this.#isLeaving = true;
    await this.#server.drain();
    if (this.#unanswered.size > 0) {
      const idle = new Promise<void>((resolve) => this.#whenIdle = resolve);
      await deadline(idle, STOP_MS, { clock }).catch(() => {});
      // What is sent may be on its way through the server in front.
      await sleep(FLUSH_MS, { clock });
    }
    await this.#server.stop();
    this.#isLeaving = false;
  }

  #followAnswer(response: ServerResponse): void {
    this.#unanswered.add(response);
    const end = () => {
      this.#unanswered.delete(response);
      if (this.#unanswered.size === 0) this.#whenIdle?.();
    };
    response.on("finish", end).on("close", end);
  }

  async #serve(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { log } = this.#options;
    this.#followAnswer(response);
    if (this.#isLeaving) response.setHeader("connection", "close");
    try {
      const answer = await this.#answer(request, response);
      if (response.destroyed) return;
      const body = JSON.stringify(answer);
      response.writeHead(200, {
        "content-type": "application/json",
        "content-length": new TextEncoder().encode(body).length,
      });
      response.end(body);
    } catch (error) {
      if (error instanceof WebhookRefusal) {
        const { status, message } = error;
        this.#refusals.add(1, { status: String(status) });
        log.debug("Refused a request to a webhook", { status, why: message });
        if (status === 429) response.setHeader("retry-after", "1");
        replyText(response, status, message);
        return;
      }
      const text = errorMessage(error);
      replyText(response, 500, shortText(text, MAX_TEXT));
    }
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<object> {
    const { method, headers } = request;
    const { callers, clock } = this.#options;
    const target = URL.parse(request.url ?? "/", "https://localhost");
    const path = target?.pathname ?? "";
    if (path === LISTENER_PATH && method === "GET") return { listens: true };
    this.#lastRequest = clock.now();
    if (callers !== undefined && path !== CONVERT_PATH) {
      checkCaller(request.socket as TLSSocket, callers);
    }
    const route = this.#routes.get(path);
    if (target === null || route === undefined) {
      throw new WebhookRefusal(
        404,
        "Cannot serve this path: it has no webhook",
      );
    }
    if (method !== "POST") {
      throw new WebhookRefusal(
        405,
        "Cannot serve this method: it must be POST",
      );
    }
    if (!/^application\/json\s*(?:;|$)/i.test(headers["content-type"] ?? "")) {
      throw new WebhookRefusal(
        415,
        "Cannot read the review: its content type must be application/json",
      );
    }
    const time = timeOf(target.searchParams.get("timeout"));
    const { bodyLimit, concurrency } = this.#options;
    if (Number(headers["content-length"] ?? 0) > bodyLimit) {
      throw tooLarge(bodyLimit);
    }
    let held = 0;
    let isOver = false;
    const hold = (chunk: Uint8Array) => {
      if (isOver) throw tooLarge(bodyLimit); // What follows is not kept.
      held += chunk.length;
      this.#held += chunk.length;
      if (held > bodyLimit) throw tooLarge(bodyLimit);
      if (this.#held > bodyLimit * HELD_BODIES) throw tooMuch();
    };
    const gone = new AbortController();
    response.on("close", () => {
      if (response.writableFinished) return;
      gone.abort(new Error("Cannot answer the webhook: its caller has gone"));
    });
    try {
      const body = await deadline(readBody(request, hold), RECEIVE_TIMEOUT_MS, {
        clock,
        signal: gone.signal,
        onTimeout: () =>
          new WebhookRefusal(
            408,
            `Cannot read the review: it did not arrive within ${RECEIVE_TIMEOUT_MS} ms`,
          ),
      });
      if (this.#handled >= concurrency) throw tooMuch();
      this.#handled++;
      try {
        const limit = time * CALL_SHARE;
        return await deadline(
          (signal) => route(body, { signal, timeout: time * ROUTE_SHARE }),
          limit,
          {
            clock,
            signal: gone.signal,
            onTimeout: () =>
              new Error(
                `Cannot answer the webhook: it was not done within ${limit} ms`,
              ),
          },
        );
      } finally {
        this.#handled--;
      }
    } finally {
      isOver = true;
      this.#held -= held;
    }
  }
}

/** Whether servers of the runtime show the certificates of their clients. */
export function showsCertificates(): boolean {
  return process.versions["bun"] === undefined;
}

/** Names in the client certificates of connections, read at the first request. */
const NAMES: WeakMap<TLSSocket, string | undefined> = new WeakMap();

/**
 * Lets a caller in by its client certificate.
 *
 * @throws {WebhookRefusal} If it has none of the authorities, or another name.
 */
function checkCaller(
  socket: TLSSocket,
  callers: "all" | readonly string[],
): void {
  if (!NAMES.has(socket)) {
    const { subject } = socket.authorized && showsCertificates()
      ? socket.getPeerCertificate()
      : {};
    const name = subject && [subject.CN].flat().at(-1);
    NAMES.set(socket, name ?? (socket.authorized ? "" : undefined));
  }
  const name = NAMES.get(socket);
  if (name === undefined) {
    throw new WebhookRefusal(
      401,
      "Cannot answer the webhook: its caller must present a client certificate of the authorities that the operator trusts",
    );
  }
  if (callers === "all" || callers.includes(name)) return;
  throw new WebhookRefusal(
    403,
    "Cannot answer the webhook: the client certificate is of another user than those that may call it",
  );
}

function tooLarge(limit: number): WebhookRefusal {
  return new WebhookRefusal(
    413,
    `Cannot read the review: it must have at most ${limit} bytes`,
  );
}

function tooMuch(): WebhookRefusal {
  return new WebhookRefusal(
    429,
    "Cannot serve the webhook now: too many requests are in progress",
  );
}

/** Time of a call in milliseconds, from the parameter of the API server. */
function timeOf(text: string | null): number {
  const [, seconds] = /^(\d{1,2})s$/.exec(text ?? "") ?? [];
  const time = Number(seconds) * 1_000;
  return time > 0 ? Math.min(time, DEFAULT_TIMEOUT_MS) : DEFAULT_TIMEOUT_MS;
}
