import { guardedRandom } from "../callback.ts";
import {
  checkOption,
  checkParts,
  type OptionRules,
  resolveOptions,
} from "../api/options.ts";
import type { Clock } from "../clock.ts";
import { credentialSource } from "../config/cluster_config.ts";
import { unfailingLogger } from "../logger.ts";
import { unfailingMetrics } from "../metrics.ts";
import {
  type ApiStreamRequest,
  authenticate,
  authenticateStream,
  type Connect,
} from "./authenticate.ts";
import type { ClientSettings, ClientTarget } from "./client_options.ts";
import {
  compose,
  countRequests,
  logWarnings,
  memoizedHeaders,
  type Middleware,
  rateLimit,
  type RequestHandler,
  responseTimeout,
  retry,
  RETRY_OPTIONS,
} from "./middleware.ts";
import type { ApiRequest } from "./request.ts";
import {
  bodyError,
  decodeJson,
  readResponse,
  responseError,
} from "./response.ts";
import { host } from "./host.ts";
import { ClusterTransport } from "./transport/cluster_transport.ts";
import { WholeBody } from "./transport/chunk_queue.ts";
import { fetchTransport, tokensOnly } from "./transport/fetch_transport.ts";
import type {
  HttpRequest,
  HttpResponse,
  StreamConnection,
  StreamRequest,
  Transport,
} from "./transport/transport.ts";
import { StreamRefusedError } from "./transport/transport_error.ts";
import { serverAddress } from "./transport/transport_options.ts";

export interface ConnectionDeps {
  /** Source of time. */
  readonly clock: Clock;
  /** Limit of decoded responses, in bytes. */
  readonly maxResponseBytes: number;
  /** Sends a request through all middleware. */
  readonly send: RequestHandler;
  /** Opens a WebSocket. */
  readonly connect: Connect;
  /** Closes the transport. */
  readonly close: () => Promise<void>;
}

/**
 * A transport together with its middleware: credentials, retries, rate limit,
 * timeouts, metrics. Turns error responses into {@linkcode ApiError}s.
 */
export class Connection implements Transport {
  /** Source of time. */
  readonly clock: Clock;
  readonly #deps: ConnectionDeps;

  constructor(deps: ConnectionDeps) {
    this.clock = deps.clock;
    this.#deps = deps;
  }

  /**
   * Sends a request and resolves with its response, of any status, before the
   * body is read.
   */
  send(request: HttpRequest | ApiRequest): Promise<HttpResponse> {
    return this.#deps.send(withAction(request));
  }

  /**
   * Sends a request and resolves with its response before the body is read.
   *
   * @throws {ApiError} If the response has a status from 300.
   */
  async request(request: HttpRequest | ApiRequest): Promise<HttpResponse> {
    const named = withAction(request);
    const response = await this.#deps.send(named);
    if (response.status < 300) return response;
    throw await responseError(named, response);
  }

  /**
   * Sends a request and decodes its JSON response.
   *
   * @throws {ApiError} If the response has a status from 300.
   * @throws {SyntaxError} If the response is not JSON.
   * @throws {TypeError} If the response is not of the kind of the request.
   * @throws {RangeError} If the response exceeds `maxResponseBytes`.
   */
  async json(request: ApiRequest): Promise<unknown> {
    return decodeJson(request, await this.bytes(request));
  }

  /**
   * Sends a request and reads its response, undecoded.
   *
   * @throws {ApiError} If the response has a status from 300.
   * @throws {RangeError} If the response exceeds `maxResponseBytes`.
   */
  async bytes(request: ApiRequest): Promise<Uint8Array> {
    const { maxResponseBytes, send } = this.#deps;
    const named = withAction(request);
    const response = await send(named);
    if (response.status >= 300) throw await responseError(named, response);
    const { body } = response;
    return body instanceof WholeBody && body.bytes.length <= maxResponseBytes
      ? body.bytes
      : await readResponse(request, response, maxResponseBytes);
  }

  /**
   * Opens a WebSocket.
   *
   * @throws {ApiError} If the server refuses the upgrade.
   * @throws {Error} If the transport has no WebSockets.
   */
  async stream(request: ApiStreamRequest): Promise<StreamConnection> {
    try {
      return await this.#deps.connect(request);
    } catch (error) {
      if (!(error instanceof StreamRefusedError)) throw error;
      throw bodyError(request, error);
    }
  }

  /** Opens a WebSocket; the request needs no `action`. */
  connect(request: StreamRequest): Promise<StreamConnection> {
    const { action } = withAction({ ...request, method: "GET" });
    return this.stream({ ...request, action });
  }

  /**
   * Derives a connection that shares the transport and sends every request
   * through further middleware first. Closing it has no effect.
   *
   * Middleware sees a WebSocket as a GET request, which gets status 101 once
   * the WebSocket is open.
   *
   * @param middleware The first entry is the outermost.
   */
  with(middleware: readonly Middleware[]): Connection {
    checkOption(middleware, "functions", {
      name: "middleware",
      subject: "with()",
    });
    return new Connection({
      ...this.#deps,
      send: compose(this.#deps.send, middleware),
      connect: (request) => this.#connectThrough(request, middleware),
      close: () => Promise.resolve(),
    });
  }

  /** Opens a WebSocket as middleware lets it: the last one that it opens. */
  async #connectThrough(
    request: ApiStreamRequest,
    middleware: readonly Middleware[],
  ): Promise<StreamConnection> {
    let stream: StreamConnection | undefined;
    const open: RequestHandler = async (
      { path, headers, repeatedHeaders, signal, beforeSend },
    ) => {
      beforeSend?.();
      const changed = { path, headers, repeatedHeaders, signal, beforeSend };
      const former = stream;
      stream = await this.stream({ ...request, ...changed });
      await former?.close();
      return SWITCHING_PROTOCOLS;
    };
    const named = withAction({ ...request, method: "GET" });
    try {
      const response = await compose(open, middleware)(named);
      if (response.status >= 300) throw await responseError(named, response);
      if (stream !== undefined) return stream;
      await response.cancel();
      throw new Error(
        `Cannot ${named.action}: middleware must open the WebSocket: received status ${response.status} without one`,
      );
    } catch (error) {
      await stream?.close();
      throw error;
    }
  }

  /** Closes all connections. */
  close(): Promise<void> {
    return this.#deps.close();
  }
}

/**
 * Opens a connection: the transport of a target with the middleware of the
 * settings. The order, outermost first: credentials, user agent,
 * retries, rate limit, warnings, response timeout, metrics. Credentials are
 * outside of the retries, because a failed exec plugin is not a broken
 * connection.
 *
 * @param target The cluster or transport.
 * @param settings Options of the client with their defaults.
 */
export function openConnection(
  target: ClientTarget,
  settings: ClientSettings,
): Connection {
  const { clock, maxResponseBytes, rateLimit: rate } = settings;
  const logger = settings.logger && unfailingLogger(settings.logger);
  const random = guardedRandom(
    settings.random,
    (error) =>
      logger?.error("Math.random is used instead of the option random", {
        error,
      }),
  );
  const closed = new AbortController();
  const deps = { clock, random, closed: closed.signal };
  const withUserAgent = memoizedHeaders((headers) => ({
    ...headers,
    "user-agent": settings.userAgent,
  }));
  const middleware: Middleware[] = [
    (next) => (request) =>
      next({ ...request, headers: withUserAgent(request.headers) }),
  ];
  let transport: Transport;
  let connect: Connect = (request) => {
    if (transport.connect !== undefined) return transport.connect(request);
    throw new Error(
      `Cannot ${request.action}: the transport has no WebSockets`,
    );
  };
  const { openTransport } = host();
  if ("transport" in target) {
    transport = target.transport;
  } else if (openTransport !== undefined) {
    transport = openTransport();
  } else {
    const { fetch } = settings;
    const source = credentialSource(target.credentials);
    const credentials = fetch === undefined ? source : tokensOnly(source);
    const { impersonate } = target;
    transport = fetch === undefined
      ? new ClusterTransport(target, credentials)
      : fetchTransport(target, fetch);
    connect = authenticateStream(connect, { credentials, impersonate });
    middleware.unshift(authenticate(credentials, impersonate));
    if (target.insecureSkipTlsVerify) {
      logger?.warn("The certificate of the API server is not verified", {
        server: serverAddress(target.server).origin,
      });
    }
  }
  const gone = transport.ended;
  const onGone = () => closed.abort(gone?.reason);
  if (gone?.aborted) onGone();
  gone?.addEventListener("abort", onGone, { once: true });
  if (settings.retry !== undefined) {
    const retries = resolveOptions(settings.retry, RETRY_OPTIONS);
    middleware.push(retry({ ...retries, ...deps, logger }));
  }
  if (rate !== undefined) middleware.push(rateLimit({ ...rate, ...deps }));
  if (logger !== undefined) middleware.push(logWarnings(logger));
  middleware.push(responseTimeout(settings.responseTimeout, clock));
  if (settings.metrics !== undefined) {
    middleware.push(countRequests(unfailingMetrics(settings.metrics), clock));
  }
  return new Connection({
    clock,
    maxResponseBytes,
    connect,
    send: compose((request) => {
      request.beforeSend?.();
      return transport.send(request);
    }, middleware),
    close: () => {
      gone?.removeEventListener("abort", onGone);
      closed.abort(new Error("Cannot send: the client was closed"));
      return transport.close();
    },
  });
}

/** Types of the fields of a request that a caller built without a verb. */
const REQUEST_RULES: OptionRules<
  Pick<HttpRequest, "method" | "path" | "headers">
> = {
  method: ["GET", "POST", "PUT", "PATCH", "DELETE"],
  path: "name",
  headers: "object",
};

/** Response to middleware for an open WebSocket. */
const SWITCHING_PROTOCOLS: HttpResponse = {
  status: 101,
  headers: {},
  body: { async *[Symbol.asyncIterator]() {} },
  cancel: () => Promise.resolve(),
};

/** Adds verb and action to a request that a caller built without them. */
function withAction(
  request: HttpRequest | (HttpRequest & { action: string }) | ApiRequest,
): ApiRequest {
  const given: unknown = request;
  if (typeof given === "object" && given !== null && "verb" in request) {
    return request;
  }
  checkParts(request, REQUEST_RULES, "a request");
  const { method, path } = request;
  const action = "action" in request
    ? request.action
    : `${method} ${path.split("?", 1)[0]}`;
  return { ...request, verb: "connect", action };
}
