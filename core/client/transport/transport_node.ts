import { connect as tlsConnect, type TLSSocket } from "node:tls";
import { Agent, type buildConnector, type Dispatcher } from "undici/index.js";
import { ResponseStream } from "./response_stream.ts";
import {
  type HttpRequest,
  type HttpResponse,
  type HttpTransport,
  OpenRequests,
} from "./transport.ts";
import {
  type ConnectOptions,
  DedicatedConnection,
  type DedicatedConnectionDeps,
  ReadBuffers,
  requestHead,
} from "./dedicated_connection.ts";
import { currentRuntime } from "./runtime.ts";
import {
  CONNECT_TIMEOUT_MS,
  type ServerAddress,
  serverAddress,
  tlsOptions,
  type TransportOptions,
} from "./transport_options.ts";
import { closedError } from "./transport_error.ts";
import { openTunnel } from "./tunnel.ts";

/** Lifetime of idle connections; API servers close them after 90 seconds. */
const KEEP_ALIVE_TIMEOUT_MS = 60_000;

/**
 * Opens a transport over a connection pool of undici. It uses undici's dispatch
 * API, which delivers chunks without stream objects. Long streams use a
 * {@linkcode DedicatedConnection}.
 *
 * undici is imported by file name, because Bun replaces the bare name by its own
 * implementation, which ignores certificates.
 */
export function openHttpTransport(options: TransportOptions): HttpTransport {
  return new NodeTransport(options);
}

function connectOptions(options: TransportOptions): ConnectOptions {
  return {
    ...tlsOptions(options),
    timeout: options.connectTimeout ?? CONNECT_TIMEOUT_MS,
  };
}

function openPool(
  options: TransportOptions,
  tls: ConnectOptions,
): Dispatcher {
  const { proxyUrl } = options;
  return new Agent({
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    // HTTP/2 would put all watches on one connection and its flow control.
    allowH2: false,
    connect: proxyUrl === undefined
      ? { ...tls, allowH2: false }
      : connectThrough(proxyUrl, { ...options, tls }),
  });
}

/** Connects through a proxy; undici does not support all kinds of them. */
function connectThrough(
  proxyUrl: string,
  options: TransportOptions & { readonly tls: ConnectOptions },
): buildConnector.connector {
  const { connectTimeout = CONNECT_TIMEOUT_MS, server, tls } = options;
  const url = new URL(server);
  return (_target, done) => {
    openTunnel(proxyUrl, url, { timeout: connectTimeout }).then((tunnel) => {
      if (url.protocol === "http:") return done(null, tunnel);
      const host = url.hostname.replace(/^\[|\]$/g, "");
      const socket = tlsConnect({ host, ...tls, socket: tunnel });
      whenSecure(socket, connectTimeout).then(
        () => done(null, socket),
        (error) => done(error, null),
      );
    }, (error) => done(error, null));
  };
}

/** Waits for a TLS handshake; destroys the socket if it is late. */
function whenSecure(socket: TLSSocket, limit: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() =>
      socket.destroy(
        new Error(
          `Cannot connect: the TLS handshake took longer than ${limit} ms`,
        ),
      ), limit);
    const onError = (error: Error) => {
      clearTimeout(timer);
      reject(error);
    };
    socket.once("error", onError);
    socket.once("secureConnect", () => {
      clearTimeout(timer);
      socket.off("error", onError);
      resolve();
    });
  });
}

class NodeTransport implements HttpTransport {
  readonly #address: ServerAddress;
  readonly #pool: Dispatcher;
  /**
   * Dependencies of dedicated connections; `undefined` behind a proxy, which only
   * the pool supports, and on Deno, whose sockets cannot read into given buffers.
   */
  readonly #dedicated: DedicatedConnectionDeps | undefined;
  readonly #requests = new OpenRequests();
  #closed = false;

  constructor(options: TransportOptions) {
    this.#address = serverAddress(options.server);
    const connect = connectOptions(options);
    this.#pool = openPool(options, connect);
    if (options.proxyUrl === undefined && currentRuntime() === "node") {
      const server = new URL(options.server);
      this.#dedicated = { server, connect, buffers: new ReadBuffers() };
    }
  }

  send(request: HttpRequest): Promise<HttpResponse> {
    const { origin } = this.#address;
    const { beforeSend, signal } = request;
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(closedError(origin));
      if (signal?.aborted) return reject(signal.reason);
      const requests = this.#requests;
      const deps = {
        origin,
        signal,
        beforeSend,
        requests,
        resolve,
        reject,
      };
      const stream = new ResponseStream(deps);
      if (this.#dedicated !== undefined && isLongRead(request)) {
        this.#connect(request, stream, this.#dedicated);
      } else this.#dispatch(request, stream);
    });
  }

  #connect(
    request: HttpRequest,
    stream: ResponseStream,
    deps: DedicatedConnectionDeps,
  ): void {
    try {
      const { host } = deps.server;
      const path = this.#address.prefix + request.path;
      const head = requestHead(request, { host, path });
      new DedicatedConnection(stream, head, deps);
    } catch (error) {
      stream.onResponseError(undefined, error);
    }
  }

  #dispatch(request: HttpRequest, stream: ResponseStream): void {
    const { origin, prefix } = this.#address;
    const { body = null, headers, method, path } = request;
    this.#pool.dispatch({
      origin,
      path: prefix + path,
      method,
      headers: {
        "accept-encoding": "gzip",
        ...headers,
        ...repeatedLines(request),
      },
      body,
      headersTimeout: 0,
      bodyTimeout: 0,
    }, stream);
  }

  async retire(): Promise<void> {
    await this.#requests.idle();
    await this.close();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#requests.abortAll(closedError(this.#address.origin));
    await this.#pool.destroy();
  }
}

/** Whether a request reads a stream whose chunks are borrowed. */
function isLongRead({ body, borrowsChunks, method }: HttpRequest): boolean {
  return borrowsChunks === true && method === "GET" && body === undefined;
}

function repeatedLines(request: HttpRequest): Record<string, string[]> {
  const lines = Object.entries(request.repeatedHeaders ?? {});
  return Object.fromEntries(lines.map(([name, values]) => [name, [...values]]));
}
