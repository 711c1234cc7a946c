import { Buffer } from "node:buffer";
import type {
  IncomingMessage,
  Server,
  ServerResponse as NodeResponse,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { clearTimeout, setImmediate, setTimeout } from "node:timers";
import { nodeHttp, nodeHttps } from "@coracle/operator/internal";
import {
  isStream,
  MAX_BODY_BYTES,
  type PeerCertificate,
  type ResponseHeaders,
  type ServerRequest,
  type ServerResponse,
  type StreamWriter,
} from "./exchange.ts";
import {
  acceptUpgrade,
  refuseUpgrade,
  type UpgradeRequest,
} from "./upgrade.ts";

/** Handler of requests; an undefined result breaks the connection. */
export type Handle = (
  request: ServerRequest,
) => Promise<ServerResponse | undefined>;

/** Options of {@linkcode Listener}. */
export interface ListenerOptions {
  readonly handle: Handle;
  /** Function that decides whether the body of a request is read; other bodies are discarded. */
  readonly reads: (request: Omit<ServerRequest, "body">) => boolean;
  /**
   * Time within which a body must arrive, in milliseconds.
   *
   * @default {60_000}
   */
  readonly bodyTimeout?: number | undefined;
  /** Port; 0 selects any free port. */
  readonly port: number;
  readonly host: string;
  /**
   * Certificate and key of the server, and the authority of client
   * certificates, all in PEM; undefined for plain HTTP.
   */
  readonly tls:
    | { readonly cert: string; readonly key: string; readonly ca: string }
    | undefined;
}

/** Time limit for the rest of a body that is too large, in milliseconds. */
const REST_LIMIT_MS = 500;

/** HTTP(S) server on a port, by `node:http`. */
export class Listener {
  readonly #server: Server;
  readonly #sockets: Set<Socket> = new Set();
  readonly #handle: Handle;
  readonly #reads: ListenerOptions["reads"];
  readonly #bodyTimeout: number;

  private constructor(server: Server, options: ListenerOptions) {
    this.#server = server;
    this.#handle = options.handle;
    this.#reads = options.reads;
    this.#bodyTimeout = options.bodyTimeout ?? 60_000;
    server.on("request", (request: IncomingMessage, response: NodeResponse) => {
      this.#exchange(request, response).catch(() => response.destroy());
    });
    server.on("upgrade", (message: IncomingMessage, socket: Socket, head) => {
      this.#upgrade({ message, socket, head }).catch(() => socket.destroy());
    });
    server.on("connection", (socket: Socket) => this.#track(socket));
    server.on("secureConnection", (socket: Socket) => this.#track(socket));
    // Not all runtimes have this limit; that of bodies is below.
    server.requestTimeout = 0;
    server.keepAliveTimeout = 120_000;
  }

  /**
   * Starts to listen.
   *
   * @throws {Error} If the port is in use.
   */
  static async open(options: ListenerOptions): Promise<Listener> {
    const { tls, port, host } = options;
    const server = tls === undefined
      ? nodeHttp().createServer()
      : nodeHttps().createServer({
        ...tls,
        // Client certificates are optional, and checked by the handler.
        requestCert: true,
        rejectUnauthorized: false,
        // As in Go, each certificate of the bundle is trusted, whatever its issuer.
        allowPartialTrustChain: true,
      }) as unknown as Server;
    const listener = new Listener(server, options);
    await new Promise<void>((resolve, reject) => {
      // The listener stays: an unhandled error of a server ends the process.
      server.on("error", reject);
      server.listen(port, host, resolve);
    });
    return listener;
  }

  /** Port of the server. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.#sockets.delete(socket));
  }

  async #exchange(
    message: IncomingMessage,
    response: NodeResponse,
  ): Promise<void> {
    const request = requestOf(message);
    const body = await this.#readBody(message, request);
    if (body === undefined) return;
    const answer = await this.#handle({ ...request, body });
    if (answer === undefined) {
      response.destroy();
      return;
    }
    if (response.destroyed) return;
    const sent = sentHeaders(answer.headers);
    if (body.length > MAX_BODY_BYTES) {
      sent.connection = "close";
      // A connection closed with unread bytes is reset, and the answer lost.
      await withinLimit(message);
    }
    if (message.method === "HEAD") {
      response.writeHead(answer.status, sent as Record<string, string>);
      response.end();
      return;
    }
    send(response, { ...answer, headers: sent });
  }

  /**
   * Reads a body up to one byte beyond the limit, or discards it; returns
   * undefined if the connection broke.
   */
  #readBody(
    message: IncomingMessage,
    request: Omit<ServerRequest, "body">,
  ): Promise<Uint8Array | undefined> {
    const { method, headers } = request;
    if (
      (method === "GET" || method === "HEAD") &&
      headers["content-length"] === undefined &&
      headers["transfer-encoding"] === undefined
    ) return Promise.resolve(new Uint8Array());
    const limit = setTimeout(() => message.socket.destroy(), this.#bodyTimeout);
    limit.unref();
    for (const end of ["end", "close", "error"]) {
      message.once(end, () => clearTimeout(limit));
    }
    if (this.#reads(request)) return readBody(message);
    message.on("error", () => {});
    message.resume();
    return Promise.resolve(new Uint8Array());
  }

  async #upgrade(request: UpgradeRequest): Promise<void> {
    const { message, socket } = request;
    const body = new Uint8Array();
    const answer = await this.#handle({ ...requestOf(message), body });
    if (answer === undefined) socket.destroy();
    else if (answer.upgrade === undefined) refuseUpgrade(request, answer);
    else await acceptUpgrade(request, answer.upgrade);
  }

  /** Breaks all connections and continues to listen. */
  dropConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Stops listening and breaks all connections. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) =>
      this.#server.close(() => resolve())
    );
    this.dropConnections();
    this.#server.closeAllConnections?.();
    await closed;
  }
}

function requestOf(message: IncomingMessage): Omit<ServerRequest, "body"> {
  const { method = "GET", url: target = "/", socket } = message;
  const headers = plainHeaders(message);
  const certificate = "authorized" in socket
    ? peerOf(socket as TLSSocket)
    : undefined;
  return { method, target, headers, certificate };
}

/** Client certificates by connection, read at the first request. */
const PEERS: WeakMap<Socket, PeerCertificate | undefined> = new WeakMap();

function peerOf(socket: TLSSocket): PeerCertificate | undefined {
  if (PEERS.has(socket)) return PEERS.get(socket);
  const sent = socket.getPeerCertificate?.();
  const { CN, O = [] } = sent?.subject ?? {};
  const peer = sent?.subject === undefined ? undefined : {
    isTrusted: socket.authorized,
    commonName: [CN].flat().at(-1) ?? "",
    organizations: [O].flat(),
    fingerprint: sent.fingerprint256?.replaceAll(":", "").toLowerCase(),
  };
  PEERS.set(socket, peer);
  return peer;
}

function plainHeaders(message: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(message.headers)) {
    if (value === undefined) continue;
    headers[name] = typeof value === "string" ? value : value.join(", ");
  }
  return headers;
}

/** Headers with values in UTF-8, which Go clients expect. */
function sentHeaders(
  headers: ResponseHeaders,
): Record<string, string | readonly string[]> {
  const sent: Record<string, string | readonly string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    sent[name] = typeof value === "string"
      ? inBytes(value)
      : value.map(inBytes);
  }
  return sent;
}

/** Text with one character for each UTF-8 byte of a text. */
function inBytes(text: string): string {
  // deno-lint-ignore no-control-regex -- ASCII
  return /^[\u0000-\u007f]*$/.test(text)
    ? text
    : Buffer.from(text).toString("latin1");
}

/** Waits for the discarded rest of a body for as long as Go's server does. */
function withinLimit(message: IncomingMessage): Promise<void> {
  if (message.complete) return Promise.resolve();
  return new Promise((resolve) => {
    const limit = setTimeout(resolve, REST_LIMIT_MS);
    for (const end of ["end", "close", "error"]) {
      message.once(end, () => {
        clearTimeout(limit);
        resolve();
      });
    }
  });
}

function readBody(message: IncomingMessage): Promise<Uint8Array | undefined> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    let size = 0;
    message.on("data", (chunk: Buffer) => {
      if (size > MAX_BODY_BYTES) return;
      parts.push(chunk);
      size += chunk.length;
      if (size <= MAX_BODY_BYTES) return;
      resolve(Buffer.concat(parts.splice(0)));
    });
    message.on(
      "end",
      () => resolve(parts.length === 1 ? parts[0] : Buffer.concat(parts)),
    );
    message.on("error", () => resolve(undefined));
    message.on("aborted", () => resolve(undefined));
  });
}

function send(response: NodeResponse, answer: ServerResponse): void {
  const { body, status } = answer;
  const headers = answer.headers as Record<string, string | string[]>;
  if (isStream(body)) {
    response.writeHead(status, headers);
    response.flushHeaders();
    const writer = new SocketWriter(response);
    const stop = body.start(writer);
    response.once("close", stop);
    return;
  }
  if (body instanceof Uint8Array) {
    response.writeHead(status, { ...headers, "content-length": body.length });
    response.end(body);
    return;
  }
  response.writeHead(status, headers);
  sendBlocks(response, body[Symbol.iterator]());
}

/** Sends blocks of a body with back-pressure. */
function sendBlocks(
  response: NodeResponse,
  blocks: Iterator<Uint8Array>,
): void {
  while (!response.destroyed) {
    const { done, value } = blocks.next();
    if (done) {
      response.end();
      return;
    }
    if (!response.write(value)) {
      response.once("drain", () => sendBlocks(response, blocks));
      return;
    }
  }
}

/**
 * Writer of a stream to a socket. Combines the writes of one event-loop
 * iteration: under load many requests are answered in one iteration, and each
 * watch receives all their events by one system call.
 */
class SocketWriter implements StreamWriter {
  readonly #response: NodeResponse;
  #waiting: Uint8Array[] = [];
  #size = 0;
  #flushing = false;
  #ended = false;

  constructor(response: NodeResponse) {
    this.#response = response;
  }

  get pending(): number {
    return this.#size + this.#response.writableLength;
  }

  write(chunk: Uint8Array): void {
    if (this.#ended) return;
    this.#waiting.push(chunk);
    this.#size += chunk.length;
    if (this.#flushing) return;
    this.#flushing = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#flushing = false;
    if (this.#waiting.length === 0 || this.#response.destroyed) return;
    const [only] = this.#waiting;
    const chunk = this.#waiting.length === 1 && only
      ? only
      : Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#size = 0;
    this.#response.write(chunk);
  }

  end(): void {
    if (this.#ended) return;
    this.#flush();
    this.#ended = true;
    this.#response.end();
  }

  destroy(): void {
    this.#ended = true;
    this.#response.destroy();
  }
}
