import { Buffer } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { connect as tlsConnect } from "node:tls";
import { type ClientOptions, type RawData, WebSocket } from "ws";
import { ChunkQueue } from "./chunk_queue.ts";
import { currentRuntime, socketQueueOptions } from "./runtime.ts";
import {
  CONNECT_TIMEOUT,
  serverAddress,
  tlsOptions,
  type TransportSettings,
} from "./transport_settings.ts";
import type { StreamConnection, StreamRequest } from "./transport.ts";
import { connectionError, StreamRefusedError } from "./transport_error.ts";
import { openTunnel } from "./tunnel.ts";

/** How often a silent peer is asked whether it is there, in milliseconds. */
const HEARTBEAT = 30_000;
/** How much of a refusal is kept for the error. */
const LONGEST_REFUSAL = 64 << 10;
/** The longest message that is taken; API servers send 32 KiB at most. */
const LONGEST_MESSAGE = 16 << 20;

/** An open WebSocket that can be ended without the peer's consent. */
export interface OpenStream extends StreamConnection {
  /** Resolves when the connection has ended, in whatever way. */
  readonly ended: Promise<void>;
  /** Ends the connection at once; its reader gets the reason. */
  abort(reason: unknown): Promise<void>;
}

/**
 * Opens a WebSocket with certificates and headers, by the ws package: the
 * runtimes' own cannot be given both.
 *
 * @throws {StreamRefusedError} If the server answers without upgrading.
 * @throws {Error} If the connection fails or the request is aborted.
 */
export async function openWebSocket(
  request: StreamRequest,
  settings: TransportSettings,
): Promise<OpenStream> {
  const { origin, prefix } = serverAddress(settings.server);
  request.signal?.throwIfAborted();
  const socket = new WebSocket(
    `${origin.replace(/^http/, "ws")}${prefix}${request.path}`,
    [...request.protocols],
    {
      ...tlsOptions(settings),
      ...await proxyOptions(new URL(origin), settings, request.signal),
      headers: headerLines(request),
      handshakeTimeout: settings.connectTimeout ?? CONNECT_TIMEOUT,
      maxPayload: LONGEST_MESSAGE,
      perMessageDeflate: false,
    },
  );
  const stream = new WebSocketStream(socket, origin);
  const onAbort = () => stream.abort(request.signal?.reason);
  request.signal?.addEventListener("abort", onAbort, { once: true });
  socket.once("close", () => {
    request.signal?.removeEventListener("abort", onAbort);
  });
  await stream.opened;
  return stream;
}

function headerLines(request: StreamRequest): Record<string, string> {
  const lines = Object.entries(request.repeatedHeaders ?? {});
  if (
    currentRuntime() === "bun" && lines.some(([, { length }]) => length > 1)
  ) {
    throw new TypeError(
      `Cannot open a stream: Bun sends no header of several lines with a WebSocket: received ${
        lines.map(([name]) => name).join(", ")
      }`,
    );
  }
  // Node's HTTP client, under ws, takes lists of values as well.
  const repeated = Object.fromEntries(lines) as Record<string, never>;
  return { ...request.headers, ...repeated };
}

/** Bun's ws takes a proxy; the others are given a socket that went through. */
async function proxyOptions(
  server: URL,
  settings: TransportSettings,
  signal: AbortSignal | undefined,
): Promise<ClientOptions> {
  const { proxyUrl, connectTimeout = CONNECT_TIMEOUT } = settings;
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
      tlsConnect({ host, ...tlsOptions(settings), socket: tunnel }),
  };
}

class WebSocketStream implements OpenStream {
  /** Resolves once the connection is open. */
  readonly opened: Promise<void>;
  readonly #socket: WebSocket;
  readonly #messages: ChunkQueue;
  readonly ended: Promise<void>;
  readonly #heartbeat: ReturnType<typeof setInterval>;
  #failure: unknown;
  #heard = true;

  constructor(socket: WebSocket, origin: string) {
    this.#socket = socket;
    this.#messages = new ChunkQueue({
      pause: () => socket.pause(),
      resume: () => socket.resume(),
      leave: () => void this.abort(undefined),
    }, socketQueueOptions());
    this.#heartbeat = setInterval(() => this.#beat(), HEARTBEAT);
    this.opened = new Promise((resolve, reject) => {
      socket.on("open", resolve);
      socket.on("unexpected-response", (request, response) => {
        void readRefusal(response).then((body) => {
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
        if (code === 1006) {
          this.#failure ??= connectionError(origin, "a broken stream");
        }
        if (this.#failure === undefined) this.#messages.end();
        else this.#messages.fail(this.#failure);
        resolve();
      });
    });
    socket.on("message", (data) => {
      this.#heard = true;
      this.#messages.push(bytesOf(data));
    });
    socket.on("pong", () => this.#heard = true);
  }

  get protocol(): string {
    return this.#socket.protocol;
  }

  get messages(): AsyncIterable<Uint8Array> {
    return this.#messages;
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
    // A close frame cannot be read while nobody reads what comes before it.
    this.#messages.end();
    if (this.#socket.isPaused) this.#socket.resume();
    await this.ended;
  }

  async abort(reason: unknown): Promise<void> {
    this.#failure ??= reason;
    this.#socket.terminate();
    await this.ended;
  }

  /** A peer that says nothing, not even to a ping, is gone. */
  #beat(): void {
    if (!this.#heard) {
      void this.abort(
        new Error(
          `Cannot read on: the peer must answer within ${HEARTBEAT} ms: received nothing`,
        ),
      );
      return;
    }
    this.#heard = this.#socket.isPaused;
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.ping();
  }
}

function bytesOf(data: RawData): Uint8Array {
  if (Array.isArray(data)) return Buffer.concat(data);
  return data instanceof ArrayBuffer ? new Uint8Array(data) : data;
}

async function readRefusal(response: IncomingMessage): Promise<string> {
  let body = "";
  try {
    response.setEncoding("utf8");
    for await (const text of response) {
      body += text;
      if (body.length > LONGEST_REFUSAL) break;
    }
  } catch {
    // What came until here says enough.
  }
  return body;
}
