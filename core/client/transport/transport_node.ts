import { connect as tlsConnect, type TLSSocket } from "node:tls";
import { Agent, type buildConnector, type Dispatcher } from "undici/index.js";
import { type Carrier, HttpExchange } from "./response_stream.ts";
import {
  type HttpRequest,
  type HttpResponse,
  type HttpTransport,
  OpenExchanges,
} from "./transport.ts";
import {
  type ConnectOptions,
  ReadBuffers,
  requestHead,
  SocketCarrier,
  type SocketCarrierOptions,
} from "./dedicated_connection.ts";
import { currentRuntime } from "./runtime.ts";
import {
  CONNECT_TIMEOUT,
  type ServerAddress,
  serverAddress,
  tlsOptions,
  type TransportSettings,
} from "./transport_settings.ts";
import { closedError } from "./transport_error.ts";
import { openTunnel } from "./tunnel.ts";

/** API servers keep idle connections for 90 seconds; ours go before that. */
const KEEP_ALIVE_TIMEOUT = 60_000;

/**
 * Opens a transport over one pool of undici, on its lowest layer: chunks go from
 * the socket to the reader with no stream object between. Long streams get
 * connections of their own: see {@linkcode SocketCarrier}.
 *
 * The import names undici's file, since Bun replaces the bare name by a copy of
 * its own that ignores certificates.
 */
export function openHttpTransport(settings: TransportSettings): HttpTransport {
  return new NodeTransport(settings);
}

function connectOptions(settings: TransportSettings): ConnectOptions {
  return {
    ...tlsOptions(settings),
    timeout: settings.connectTimeout ?? CONNECT_TIMEOUT,
  };
}

function openPool(
  settings: TransportSettings,
  tls: ConnectOptions,
): Dispatcher {
  const { proxyUrl } = settings;
  return new Agent({
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT,
    // HTTP/2 would put all watches on one connection and its flow control.
    allowH2: false,
    connect: proxyUrl === undefined
      ? { ...tls, allowH2: false }
      : connectThrough(proxyUrl, { ...settings, tls }),
  });
}

/** Connects by a proxy; undici knows some itself, but not all of them well. */
function connectThrough(
  proxyUrl: string,
  settings: TransportSettings & { readonly tls: ConnectOptions },
): buildConnector.connector {
  const { connectTimeout = CONNECT_TIMEOUT, server, tls } = settings;
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

/** Waits for the end of a TLS handshake; a late or broken one is ended. */
function whenSecure(socket: TLSSocket, limit: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() =>
      socket.destroy(
        new Error(
          `Cannot connect: TLS must be agreed within ${limit} ms: received nothing`,
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
   * How streams get a connection of their own. Proxies are the pool's to pass, and
   * sockets of Deno do not read into memory that they are given.
   */
  readonly #direct: SocketCarrierOptions | undefined;
  readonly #exchanges = new OpenExchanges();
  #closed = false;

  constructor(settings: TransportSettings) {
    this.#address = serverAddress(settings.server);
    const connect = connectOptions(settings);
    this.#pool = openPool(settings, connect);
    if (settings.proxyUrl === undefined && currentRuntime() === "node") {
      const server = new URL(settings.server);
      this.#direct = { server, connect, buffers: new ReadBuffers() };
    }
  }

  send(request: HttpRequest): Promise<HttpResponse> {
    const { origin } = this.#address;
    const { signal } = request;
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(closedError(origin));
      if (signal?.aborted) return reject(signal.reason);
      const exchanges = this.#exchanges;
      const exchange = new HttpExchange({
        origin,
        signal,
        exchanges,
        resolve,
        reject,
      });
      if (!this.#stream(request, exchange)) this.#dispatch(request, exchange);
    });
  }

  /** Sends what is read as a stream; returns whether it was that. */
  #stream(request: HttpRequest, exchange: HttpExchange): boolean {
    const { body, borrowsChunks, method, path } = request;
    const direct = this.#direct;
    if (direct === undefined || !borrowsChunks) return false;
    if (method !== "GET" || body !== undefined) return false;
    try {
      const { host } = direct.server;
      const head = requestHead(request, {
        host,
        path: this.#address.prefix + path,
      });
      new SocketCarrier(exchange, head, direct);
    } catch (error) {
      exchange.fail(error);
    }
    return true;
  }

  #dispatch(request: HttpRequest, exchange: HttpExchange): void {
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
    }, new PoolCarrier(exchange));
  }

  async retire(): Promise<void> {
    await this.#exchanges.idle();
    await this.close();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#exchanges.abortAll(closedError(this.#address.origin));
    await this.#pool.destroy();
  }
}

function repeatedLines(request: HttpRequest): Record<string, string[]> {
  const lines = Object.entries(request.repeatedHeaders ?? {});
  return Object.fromEntries(lines.map(([name, values]) => [name, [...values]]));
}

/** Carries an exchange over the pool of undici. */
class PoolCarrier implements Dispatcher.DispatchHandler, Carrier {
  readonly #exchange: HttpExchange;
  #controller: Dispatcher.DispatchController | undefined;

  constructor(exchange: HttpExchange) {
    this.#exchange = exchange;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.#exchange.carriedBy(this);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    received: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200) return;
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(received)) {
      if (value === undefined) continue;
      headers[name] = Array.isArray(value) ? value.join(", ") : value;
    }
    this.#exchange.answer({ status, headers });
  }

  onResponseData(
    _controller: Dispatcher.DispatchController,
    chunk: Uint8Array,
  ): void {
    this.#exchange.push(chunk);
  }

  onResponseEnd(): void {
    this.#exchange.end();
  }

  onResponseError(
    _controller: Dispatcher.DispatchController,
    error: Error,
  ): void {
    this.#exchange.fail(error);
  }

  pause(): void {
    this.#controller?.pause();
  }

  resume(): void {
    this.#controller?.resume();
  }

  stop(): void {
    this.#controller?.abort(
      new Error("Cannot go on: nobody waits for it: received an answer"),
    );
  }
}
