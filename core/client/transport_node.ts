import { Readable } from "node:stream";
import {
  connect as tlsConnect,
  type ConnectionOptions,
  type TLSSocket,
} from "node:tls";
import { createGunzip } from "node:zlib";
import { Agent, type buildConnector, type Dispatcher } from "undici/index.js";
import { ChunkQueue, type ChunkSource } from "./chunk_queue.ts";
import { type OpenExchange, OpenExchanges } from "./open_exchanges.ts";
import { socketQueueOptions } from "./runtime.ts";
import type { HttpRequest, HttpResponse, HttpTransport } from "./transport.ts";
import { closedError, connectionError } from "./transport_error.ts";
import {
  CONNECT_TIMEOUT,
  type ServerAddress,
  serverAddress,
  SHORT_BODY,
  type TransportSettings,
} from "./transport_settings.ts";
import { openTunnel } from "./tunnel.ts";

/** API servers keep idle connections for 90 seconds; ours go before that. */
const KEEP_ALIVE_TIMEOUT = 60_000;

/**
 * Opens a transport over one pool of undici, on its lowest layer: chunks go from
 * the socket to the reader with no stream object between.
 *
 * The import names undici's file, since Bun replaces the bare name by a copy of
 * its own that ignores certificates.
 */
export function openHttpTransport(settings: TransportSettings): HttpTransport {
  return new UndiciTransport(settings);
}

function openPool(settings: TransportSettings): Dispatcher {
  const { certificateAuthority, certificate, key, proxyUrl, serverName } =
    settings;
  const tls = {
    ...(certificateAuthority && { ca: certificateAuthority }),
    ...(certificate && { cert: certificate, key }),
    ...(serverName && { servername: serverName }),
    rejectUnauthorized: !settings.insecureSkipTlsVerify,
    // HTTP/2 would put all watches on one connection and its flow control.
    allowH2: false,
    timeout: settings.connectTimeout ?? CONNECT_TIMEOUT,
  };
  return new Agent({
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT,
    allowH2: false,
    connect: proxyUrl === undefined
      ? tls
      : connectThrough(proxyUrl, { ...settings, tls }),
  });
}

/** Connects by a proxy; undici knows some itself, but not all of them well. */
function connectThrough(
  proxyUrl: string,
  settings: TransportSettings & { readonly tls: ConnectionOptions },
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

class UndiciTransport implements HttpTransport {
  readonly #address: ServerAddress;
  readonly #pool: Dispatcher;
  readonly #exchanges = new OpenExchanges();
  #closed = false;

  constructor(settings: TransportSettings) {
    this.#address = serverAddress(settings.server);
    this.#pool = openPool(settings);
  }

  send(request: HttpRequest): Promise<HttpResponse> {
    const { origin, prefix } = this.#address;
    const { body = null, headers, method, path, signal } = request;
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(closedError(origin));
      if (signal?.aborted) return reject(signal.reason);
      const exchanges = this.#exchanges;
      const exchange = new Exchange({
        origin,
        signal,
        exchanges,
        resolve,
        reject,
      });
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
      }, exchange);
    });
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

interface ExchangeOptions {
  readonly origin: string;
  readonly signal: AbortSignal | undefined;
  /** Where it is noted until it ends. */
  readonly exchanges: OpenExchanges;
  readonly resolve: (response: HttpResponse) => void;
  readonly reject: (error: unknown) => void;
}

/** One request and its answer, as undici tells of them. */
class Exchange
  implements Dispatcher.DispatchHandler, ChunkSource, OpenExchange {
  readonly #options: ExchangeOptions;
  readonly #body: ChunkQueue = new ChunkQueue(this, socketQueueOptions());
  #controller: Dispatcher.DispatchController | undefined;
  #stopped = false;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    options.exchanges.add(this);
    options.signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  readonly #onAbort = (): void => this.abort(this.#options.signal?.reason);

  abort(reason: unknown): void {
    this.#fail(reason);
    this.#stop();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#stopped) this.#stop();
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
    let body: AsyncIterable<Uint8Array> = this.#body;
    if (headers["content-encoding"] === "gzip") {
      body = this.#decompressed();
      delete headers["content-encoding"];
    }
    const length = Number(headers["content-length"] ?? Infinity);
    this.#options.resolve({
      status,
      headers,
      body,
      cancel: () => this.#cancel(length),
    });
  }

  onResponseData(
    _controller: Dispatcher.DispatchController,
    chunk: Uint8Array,
  ): void {
    this.#body.push(chunk);
  }

  onResponseEnd(): void {
    this.#end();
    this.#body.end();
  }

  onResponseError(
    _controller: Dispatcher.DispatchController,
    error: Error,
  ): void {
    this.#fail(connectionError(this.#options.origin, error));
  }

  pause(): void {
    this.#controller?.pause();
  }

  resume(): void {
    this.#controller?.resume();
  }

  leave(): void {
    this.#end();
    this.#stop();
  }

  async #cancel(length: number): Promise<void> {
    if (length > SHORT_BODY) await this.#body.return();
    try {
      for await (const _chunk of this.#body);
    } catch {
      // The connection broke: there is nothing left to cancel.
    }
  }

  async *#decompressed(): AsyncGenerator<Uint8Array, void, undefined> {
    const gunzip = createGunzip();
    const source = Readable.from(this.#body, { objectMode: false });
    source.on("error", (error) => gunzip.destroy(error));
    try {
      yield* source.pipe(gunzip);
    } finally {
      source.destroy();
      await this.#body.return();
    }
  }

  #fail(error: unknown): void {
    this.#end();
    this.#options.reject(error);
    this.#body.fail(error);
  }

  // A request that waits for a connection has no controller yet: it is stopped
  // as soon as it gets one, and its caller does not wait for that.
  #stop(): void {
    this.#stopped = true;
    this.#controller?.abort(
      new Error("Cannot go on: nobody waits for it: received an answer"),
    );
  }

  #end(): void {
    this.#options.exchanges.delete(this);
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
  }
}
