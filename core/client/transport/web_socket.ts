import { Buffer } from "node:buffer";
import type { ClientRequest, IncomingMessage } from "node:http";
import { connect as tlsConnect, type TLSSocket } from "node:tls";
import { type ClientOptions, type RawData, WebSocket } from "ws";
import { ChunkQueue, type ChunkQueueOptions } from "./chunk_queue.ts";
import { currentRuntime } from "./runtime.ts";
import {
  CONNECT_TIMEOUT_MS,
  serverAddress,
  tlsOptions,
  type TransportOptions,
} from "./transport_options.ts";
import type { StreamConnection, StreamRequest } from "./transport.ts";
import { connectionError, StreamRefusedError } from "./transport_error.ts";
import { openTunnel } from "./tunnel.ts";

/** Interval of pings in milliseconds, also the time limit of the response. */
const HEARTBEAT_MS = 30_000;
/** Maximum number of characters of a refusal that are read. */
const MAX_REFUSAL_LENGTH = 64 << 10;
/** Maximum size of a message, in bytes; API servers send at most 32 KiB. */
const MAX_MESSAGE_BYTES = 16 << 20;

/** Code of a connection that ends without a close frame. */
const ABNORMAL = 1006;
/**
 * Codes of a close after which nothing is missing: the normal one, and a close
 * frame without a code. A peer that goes away, or fails, sends others.
 */
const NORMAL_CODES: ReadonlySet<number> = new Set([1000, 1005]);

/** Open WebSocket that can be ended without a close handshake. */
export interface OpenStream extends StreamConnection {
  /** Promise that resolves when the connection has ended for any reason. */
  readonly ended: Promise<void>;
  /** Ends the connection immediately; its reader receives the reason. */
  abort(reason: unknown): Promise<void>;
}

/**
 * Opens a WebSocket with the `ws` package, because the WebSockets of the runtimes
 * do not support both certificates and headers.
 *
 * @throws {StreamRefusedError} If the server refuses the upgrade.
 * @throws {Error} If the connection fails or the request is aborted.
 */
export async function openWebSocket(
  request: StreamRequest,
  options: TransportOptions,
): Promise<OpenStream> {
  const { origin, prefix } = serverAddress(options.server);
  const { beforeSend } = request;
  const limit = options.connectTimeout ?? CONNECT_TIMEOUT_MS;
  request.signal?.throwIfAborted();
  const socket = new WebSocket(
    `${origin.replace(/^http/, "ws")}${prefix}${request.path}`,
    [...request.protocols],
    {
      ...tlsOptions(options),
      ...await proxyOptions(new URL(origin), options, request.signal),
      headers: headersOf(request),
      handshakeTimeout: limit,
      maxPayload: MAX_MESSAGE_BYTES,
      perMessageDeflate: false,
      ...(beforeSend && {
        finishRequest(upgrade: ClientRequest) {
          whenConnected(upgrade, () => {
            try {
              beforeSend();
              upgrade.end();
            } catch (error) {
              void stream.abort(error);
            }
          });
        },
      }),
    },
  );
  const stream = new WebSocketStream(socket, origin, limit);
  const onAbort = () => stream.abort(request.signal?.reason);
  request.signal?.addEventListener("abort", onAbort, { once: true });
  // It may have aborted while the proxy was awaited.
  if (request.signal?.aborted) void onAbort();
  socket.once("close", () => {
    request.signal?.removeEventListener("abort", onAbort);
  });
  await stream.opened;
  return stream;
}

/** Calls back once the new connection of a request is open. */
function whenConnected(request: ClientRequest, callback: () => void): void {
  request.once("socket", (socket) => {
    const { encrypted } = socket as Partial<TLSSocket>;
    if (encrypted === true) socket.once("secureConnect", callback);
    else if (socket.connecting) socket.once("connect", callback);
    else callback();
  });
}

/** Headers in the form that `ws` takes. */
function headersOf(request: StreamRequest): Record<string, string> {
  const lines = Object.entries(request.repeatedHeaders ?? {});
  if (
    currentRuntime() === "bun" && lines.some(([, { length }]) => length > 1)
  ) {
    throw new TypeError(
      `Cannot open a WebSocket: Bun does not support headers with several lines: received ${
        lines.map(([name]) => name).join(", ")
      }`,
    );
  }
  // Node's HTTP client, which ws uses, accepts lists of values as well.
  const repeated = Object.fromEntries(lines) as Record<string, never>;
  return { ...request.headers, ...repeated };
}

/** Options for a proxy: its URL on Bun, elsewhere a socket connected by it. */
async function proxyOptions(
  server: URL,
  options: TransportOptions,
  signal: AbortSignal | undefined,
): Promise<ClientOptions> {
  const { proxyUrl, connectTimeout = CONNECT_TIMEOUT_MS } = options;
  if (proxyUrl === undefined) return {};
  if (currentRuntime() === "bun") return { proxy: proxyUrl } as ClientOptions;
  const tunnel = await openTunnel(proxyUrl, server, {
    signal,
    timeout: connectTimeout,
  });
  if (server.protocol === "http:") return { createConnection: () => tunnel };
  const host = server.hostname.replace(/^\[|\]$/g, "");
  return {
    createConnection: () =>
      tlsConnect({ host, ...tlsOptions(options), socket: tunnel }),
  };
}

/**
 * Options of the queue of messages. Sockets of TLS read on when they are paused on
 * Deno, so that the queue needs a limit there.
 */
function queueOptions(): ChunkQueueOptions {
  return currentRuntime() === "deno"
    ? { highWaterMark: Infinity, limit: 64 << 20 }
    : {};
}

class WebSocketStream implements OpenStream {
  /** Promise that resolves once the connection is open. */
  readonly opened: Promise<void>;
  readonly #socket: WebSocket;
  readonly messages: ChunkQueue;
  readonly ended: Promise<void>;
  readonly #heartbeat: ReturnType<typeof setInterval>;
  #failure: unknown;
  #received = true;

  /** @param limit Time limit of the body of a refusal, in milliseconds. */
  constructor(socket: WebSocket, origin: string, limit: number) {
    this.#socket = socket;
    this.messages = new ChunkQueue({
      pause: () => socket.pause(),
      resume: () => socket.resume(),
      leave: () => void this.abort(undefined),
    }, queueOptions());
    this.#heartbeat = setInterval(() => this.#beat(), HEARTBEAT_MS);
    this.opened = new Promise((resolve, reject) => {
      socket.on("open", resolve);
      socket.on("unexpected-response", (request, response) => {
        void readRefusal(response, limit).then((body) => {
          this.#failure ??= new StreamRefusedError(origin, {
            status: response.statusCode ?? 0,
            body,
          });
          request.destroy();
          socket.terminate();
          reject(this.#failure);
        });
      });
      socket.on("close", () => reject(this.#failure));
    });
    this.ended = new Promise((resolve) => {
      socket.on("error", (error) => {
        this.#failure ??= connectionError(origin, error);
      });
      socket.on("close", (code) => {
        clearInterval(this.#heartbeat);
        if (!NORMAL_CODES.has(code)) {
          const end = code === ABNORMAL
            ? "an abnormal end"
            : `a close with code ${code}`;
          this.#failure ??= connectionError(origin, end);
        }
        if (this.#failure === undefined) this.messages.end();
        else this.messages.fail(this.#failure);
        resolve();
      });
    });
    socket.on("message", (data) => {
      this.#received = true;
      this.messages.push(bytesOf(data));
    });
    socket.on("pong", () => this.#received = true);
  }

  get protocol(): string {
    return this.#socket.protocol;
  }

  send(message: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.send(message, (error) => {
        if (error) reject(this.#failure ?? error);
        else resolve();
      });
    });
  }

  async close(code = 1000, reason = ""): Promise<void> {
    this.#socket.close(code, reason);
    // The close frame is only read after all messages before it.
    this.messages.end();
    if (this.#socket.isPaused) this.#socket.resume();
    await this.ended;
  }

  async abort(reason: unknown): Promise<void> {
    this.#failure ??= reason;
    this.#socket.terminate();
    await this.ended;
  }

  /** Sends a ping, or ends the connection if nothing followed the last one. */
  #beat(): void {
    if (!this.#received) {
      void this.abort(
        new Error(
          `Cannot read a WebSocket: the peer did not respond within ${HEARTBEAT_MS} ms`,
        ),
      );
      return;
    }
    // While nobody reads, no answer arrives either.
    this.#received = this.#socket.isPaused;
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.ping();
  }
}

function bytesOf(data: RawData): Uint8Array {
  if (Array.isArray(data)) return Buffer.concat(data);
  return data instanceof ArrayBuffer ? new Uint8Array(data) : data;
}

async function readRefusal(
  response: IncomingMessage,
  limit: number,
): Promise<string> {
  let body = "";
  const timer = setTimeout(() => response.destroy(), limit);
  try {
    response.setEncoding("utf8");
    for await (const text of response) {
      body += text;
      if (body.length > MAX_REFUSAL_LENGTH) break;
    }
  } catch {
    // The part that was received is enough for the error.
  } finally {
    clearTimeout(timer);
  }
  return body;
}
