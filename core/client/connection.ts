import {
  checkOption,
  checkOptions,
  checkParts,
  type OptionRules,
} from "../api/option_rules.ts";
import { type Clock, systemClock } from "../clock.ts";
import { CLUSTER_RULES, type ClusterConfig } from "../config/cluster_config.ts";
import { credentialSource } from "../config/credential_source.ts";
import { silentLogger, unfailingLogger } from "../logger.ts";
import { noMetrics, unfailingMetrics } from "../metrics.ts";
import {
  answerTimeout,
  compose,
  countRequests,
  logWarnings,
  type Middleware,
  RATE_LIMIT_RULES,
  rateLimit,
  retry,
  RETRY_RULES,
  type Send,
  withHeaders,
} from "./middleware.ts";
import {
  authenticate,
  authenticateStream,
  type Connect,
  type NamedStreamRequest,
} from "./authenticate.ts";
import { CLIENT_RULES, type ClientOptions } from "./client_options.ts";
import { ClusterTransport } from "./transport/cluster_transport.ts";
import type { ApiRequest } from "./request.ts";
import { bodyError, readJson, responseError } from "./response.ts";
import type {
  HttpRequest,
  HttpResponse,
  StreamConnection,
  Transport,
} from "./transport/transport.ts";
import { StreamRefusedError } from "./transport/transport_error.ts";

/** The longest answer that is decoded unless told otherwise. */
const MAX_ANSWER_BYTES = 256 << 20;
/** API servers end a request themselves after 60 seconds. */
const ANSWER_TIMEOUT = 90_000;

/** Where a client sends its requests: to a cluster, or to any transport. */
export type ClientTarget = ClusterConfig | {
  readonly transport: Transport;
  /**
   * The namespace that a person works in.
   *
   * @default {"default"}
   */
  readonly namespace?: string | undefined;
};

/** A transport with everything around it that makes requests succeed. */
export class Connection {
  /** Where its time comes from. */
  readonly clock: Clock;
  readonly #transport: Transport;
  readonly #send: Send;
  readonly #connect: Connect;
  readonly #maxAnswerBytes: number;
  /** Aborts when the connection is closed, for those who wait to send. */
  readonly #ended = new AbortController();

  constructor(target: ClientTarget, options: ClientOptions = {}) {
    checkTarget(target);
    checkClientOptions(options);
    this.clock = options.clock ?? systemClock;
    this.#maxAnswerBytes = options.maxAnswerBytes ?? MAX_ANSWER_BYTES;
    const ended = this.#ended.signal;
    const middleware = outerMiddleware(options, { clock: this.clock, ended });
    let transport: Transport;
    let connect: Connect = (request) => connectVia(transport, request);
    if ("transport" in target) {
      transport = target.transport;
    } else {
      const credentials = credentialSource(target.credentials);
      const { impersonate } = target;
      transport = new ClusterTransport(target, credentials);
      connect = authenticateStream(connect, { credentials, impersonate });
      // A credential that cannot be had is no broken connection: it is outside
      // of what is sent again.
      middleware.unshift(authenticate(credentials, impersonate));
      if (target.insecureSkipTlsVerify) {
        options.logger?.warn(
          "The certificate of the API server is not checked",
          { server: target.server },
        );
      }
    }
    middleware.push(...innerMiddleware(options, this.clock));
    this.#transport = transport;
    this.#connect = connect;
    this.#send = compose((request) => {
      request.beforeSend?.();
      return transport.send(request);
    }, middleware);
  }

  /**
   * Sends a request and resolves with its answer, the body unread.
   *
   * @throws {ApiError} If the server says no (any status from 300).
   */
  async request(request: HttpRequest | ApiRequest): Promise<HttpResponse> {
    const named = withAction(request);
    const response = await this.#send(named);
    if (response.status < 300) return response;
    throw await responseError(named, response);
  }

  /**
   * This connection as the transport of another client, with more around every
   * request. Closing it closes nothing.
   *
   * Middleware sees a WebSocket as a request that is answered when it is open.
   */
  shared(middleware: readonly Middleware[]): Transport {
    checkOption(middleware, "functions", {
      name: "middleware",
      subject: "with()",
    });
    const send = compose(this.#send, middleware);
    return {
      send: (request) => send(withAction(request)),
      connect: async (request) => {
        const named = withAction({ ...request, method: "GET" });
        let stream: StreamConnection | undefined;
        await compose(async ({ headers, beforeSend }) => {
          beforeSend?.();
          const { action } = named;
          stream = await this.stream({ ...request, headers, action });
          return OPENED;
        }, middleware)(named);
        return stream as StreamConnection;
      },
      close: () => Promise.resolve(),
    };
  }

  /**
   * Sends a request and decodes its answer.
   *
   * @throws {ApiError} If the server says no.
   * @throws {SyntaxError} If the answer is not JSON.
   * @throws {RangeError} If the answer is too long.
   */
  async json(request: ApiRequest): Promise<unknown> {
    const response = await this.request(request);
    return await readJson(request, response, this.#maxAnswerBytes);
  }

  /**
   * Opens a WebSocket.
   *
   * @throws {ApiError} If the server says no.
   * @throws {Error} If the transport has no WebSockets.
   */
  async stream(request: NamedStreamRequest): Promise<StreamConnection> {
    try {
      return await this.#connect(request);
    } catch (error) {
      if (!(error instanceof StreamRefusedError)) throw error;
      throw bodyError(request.action, error);
    }
  }

  /** Closes every connection. */
  close(): Promise<void> {
    this.#ended.abort(
      new Error("Cannot send: the client was closed: received a request"),
    );
    return this.#transport.close();
  }
}

/** What a target must be that is a transport. */
const TRANSPORT_RULES: OptionRules<Exclude<ClientTarget, ClusterConfig>> = {
  transport: "object",
  namespace: "string?",
};

const TRANSPORT_PARTS: OptionRules<Transport> = {
  send: "function",
  connect: "function?",
  close: "function",
};
const REQUEST_PARTS: OptionRules<
  Pick<HttpRequest, "method" | "path" | "headers">
> = {
  method: ["GET", "POST", "PUT", "PATCH", "DELETE"],
  path: "name",
  headers: "object",
};

function checkTarget(target: ClientTarget): void {
  checkOption(target, "object", { name: "target", subject: "a client" });
  if ("transport" in target) {
    checkOptions(target, TRANSPORT_RULES, "a client, target");
    checkParts(target.transport, TRANSPORT_PARTS, "a client, transport");
  } else checkOptions(target, CLUSTER_RULES, "a client, target");
}

function checkClientOptions(options: ClientOptions): void {
  checkOptions(options, CLIENT_RULES, "a client");
  const { retry, rateLimit } = options;
  if (retry !== undefined && retry !== false) {
    checkOptions(retry, RETRY_RULES, "a client, retry");
  }
  if (rateLimit !== undefined) {
    checkOptions(rateLimit, RATE_LIMIT_RULES, "a client, rateLimit");
  }
}

/** The answer to a WebSocket, for middleware. */
const OPENED: HttpResponse = {
  status: 101,
  headers: {},
  body: { async *[Symbol.asyncIterator]() {} },
  cancel: () => Promise.resolve(),
};

/** The request with a name for errors, which those of clients have already. */
function withAction(
  request: HttpRequest | (HttpRequest & { action: string }) | ApiRequest,
): ApiRequest {
  const given: unknown = request;
  if (typeof given === "object" && given !== null && "verb" in request) {
    return request;
  }
  checkParts(request, REQUEST_PARTS, "a request");
  const { method, path } = request;
  const action = "action" in request
    ? request.action
    : `${method} ${path.split("?", 1)[0]}`;
  return { ...request, verb: "connect", action };
}

function connectVia(
  transport: Transport,
  request: NamedStreamRequest,
): Promise<StreamConnection> {
  if (transport.connect !== undefined) return transport.connect(request);
  throw new Error(
    `Cannot ${request.action}: the transport must have WebSockets: received one without`,
  );
}

/** What a request passes before it is known who asks. */
function outerMiddleware(
  options: ClientOptions,
  parts: { readonly clock: Clock; readonly ended: AbortSignal },
): Middleware[] {
  const { random = Math.random, userAgent = "coracle" } = options;
  const logger = options.logger && unfailingLogger(options.logger);
  const middleware: Middleware[] = [
    (next) => (request) =>
      next(withHeaders(request, { "user-agent": userAgent })),
  ];
  if (options.retry !== false) {
    middleware.push(retry({ ...options.retry, ...parts, random, logger }));
  }
  if (options.rateLimit !== undefined) {
    middleware.push(rateLimit({ ...options.rateLimit, ...parts }));
  }
  return middleware;
}

/** What every single attempt passes. */
function innerMiddleware(options: ClientOptions, clock: Clock): Middleware[] {
  return [
    logWarnings(unfailingLogger(options.logger ?? silentLogger)),
    answerTimeout(options.answerTimeout ?? ANSWER_TIMEOUT, clock),
    countRequests(unfailingMetrics(options.metrics ?? noMetrics), clock),
  ];
}
