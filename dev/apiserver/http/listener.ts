import { Buffer } from "node:buffer";
import type { IncomingMessage, Server } from "node:http";
import type { Http2ServerRequest, Http2Session } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import process from "node:process";
import type { TLSSocket } from "node:tls";
import { clearTimeout, setTimeout } from "node:timers";
import { nodeHttp, nodeHttps } from "@coracle/operator/internal";
import {
  MAX_BODY_BYTES,
  type PeerCertificate,
  type ResponseHeaders,
  type ServerRequest,
  type ServerResponse,
} from "./exchange.ts";
import { HTTP2_OPTIONS, Http2Sessions } from "./http2_sessions.ts";
import {
  breakOff,
  isOver,
  type Response,
  send,
  streamOf,
  writeHead,
} from "./send.ts";
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
  /**
   * Interval in milliseconds in which clients of HTTP/2 are asked for a sign of
   * life.
   *
   * @default {15_000}
   */
  readonly pingInterval?: number | undefined;
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
  /**
   * Whether clients may choose HTTP/2 by TLS; without TLS there is HTTP/1.1 only.
   *
   * @default {false}
   */
  readonly http2?: boolean | undefined;
}

/** Request over HTTP/1.1 or HTTP/2. */
type Message = IncomingMessage | Http2ServerRequest;

/**
 * Requests that are upgraded: those to WebSockets. Others, such as to HTTP/2
 * without TLS (`h2c`), are answered as if they did not ask, as Go's server does.
 */
const UPGRADES = {
  shouldUpgradeCallback: ({ headers }: IncomingMessage) =>
    headers.upgrade?.toLowerCase() === "websocket",
};

/** Time limit for the rest of a body that is too large, in milliseconds. */
const REST_LIMIT_MS = 500;

/** HTTP(S) server on a port, by `node:http` and `node:http2`. */
export class Listener {
  readonly #server: Server;
  /** Open sockets, each with the port of its client. */
  readonly #sockets: Map<Socket, number | undefined> = new Map();
  readonly #sessions: Http2Sessions;
  readonly #handle: Handle;
  readonly #reads: ListenerOptions["reads"];
  readonly #bodyTimeout: number;

  private constructor(server: Server, options: ListenerOptions) {
    this.#server = server;
    this.#handle = options.handle;
    this.#reads = options.reads;
    this.#bodyTimeout = options.bodyTimeout ?? 60_000;
    this.#sessions = new Http2Sessions(options.pingInterval);
    server.on("request", (request: Message, response: Response) => {
      this.#exchange(request, response).catch(() => breakOff(response));
    });
    server.on("session", (session: Http2Session) => {
      const { remotePort } = session.socket;
      this.#sessions.add(session, () => this.#closeFrom(remotePort));
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
    const { tls, port, host, http2 } = options;
    const secure = {
      ...tls,
      // Client certificates are optional, and checked by the handler.
      requestCert: true,
      rejectUnauthorized: false,
      // As in Go, each certificate of the bundle is trusted, whatever its issuer.
      allowPartialTrustChain: true,
      ...UPGRADES,
    };
    const server =
      (tls === undefined
        ? nodeHttp().createServer(UPGRADES)
        : http2
        ? process.getBuiltinModule("node:http2").createSecureServer({
          ...secure,
          ...HTTP2_OPTIONS,
        })
        : nodeHttps().createServer(secure)) as Server;
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
    this.#sockets.set(socket, socket.remotePort);
    socket.setNoDelay(true);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.#sockets.delete(socket));
  }

  #closeFrom(port: number | undefined): void {
    for (const [socket, remote] of this.#sockets) {
      if (remote === port) socket.destroy();
    }
  }

  async #exchange(message: Message, response: Response): Promise<void> {
    const request = requestOf(message);
    const body = await this.#readBody(message, request);
    if (body === undefined) return;
    const answer = await this.#handle({ ...request, body });
    if (answer === undefined) {
      breakOff(response);
      return;
    }
    if (isOver(response)) return;
    const sent = sentHeaders(answer.headers);
    const stream = streamOf(response);
    if (stream !== undefined && sent.connection !== undefined) {
      // As in Go: HTTP/2 has no such header, it stands for a GOAWAY.
      delete sent.connection;
      this.#sessions.retire(stream.session);
    }
    if (body.length > MAX_BODY_BYTES) {
      if (stream === undefined) sent.connection = "close";
      else response.once("finish", () => stream.close());
      // A connection closed with unread bytes is reset, and the answer lost.
      await withinLimit(message);
    }
    if (message.method === "HEAD") {
      writeHead(response, answer.status, sent);
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
    message: Message,
    request: Omit<ServerRequest, "body">,
  ): Promise<Uint8Array | undefined> {
    const { method, headers } = request;
    if (
      (method === "GET" || method === "HEAD") &&
      headers["content-length"] === undefined &&
      headers["transfer-encoding"] === undefined
    ) return Promise.resolve(new Uint8Array());
    const limit = setTimeout(() => breakOff(message), this.#bodyTimeout);
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

  /**
   * Tells the clients of HTTP/2 to use other connections for further requests;
   * streams that run go on.
   */
  retireConnections(): void {
    this.#sessions.retireAll();
  }

  /** Breaks all connections and continues to listen. */
  dropConnections(): void {
    for (const socket of this.#sockets.keys()) socket.destroy();
  }

  /** Stops listening and breaks all connections. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) =>
      this.#server.close(() => resolve())
    );
    this.#sessions.endAll();
    this.dropConnections();
    this.#server.closeAllConnections?.();
    await closed;
  }
}

function requestOf(message: Message): Omit<ServerRequest, "body"> {
  const { method = "GET", url = "/" } = message;
  const headers = plainHeaders(message);
  // Clients send proxies the whole URL.
  const target = url.startsWith("/")
    ? url
    : url.replace(/^https?:\/\/[^/?]*/i, "") || "/";
  return { method, target, headers, certificate: peerOf(message) };
}

/** Client certificates by connection, read at the first request. */
const PEERS: WeakMap<object, PeerCertificate | undefined> = new WeakMap();

function peerOf(message: Message): PeerCertificate | undefined {
  const session = streamOf(message)?.session;
  const connection = session ?? message.socket;
  if (PEERS.has(connection)) return PEERS.get(connection);
  const socket = (session?.socket ?? connection) as TLSSocket;
  const sent = socket.getPeerCertificate?.();
  const { CN, O = [] } = sent?.subject ?? {};
  const peer = sent?.subject === undefined ? undefined : {
    isTrusted: socket.authorized,
    commonName: [CN].flat().at(-1) ?? "",
    organizations: [O].flat(),
    fingerprint: sent.fingerprint256?.replaceAll(":", "").toLowerCase(),
  };
  PEERS.set(connection, peer);
  return peer;
}

function plainHeaders(message: Message): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(message.headers)) {
    if (value === undefined) continue;
    const text = fromBytes(
      typeof value === "string" ? value : value.join(", "),
    );
    if (!name.startsWith(":")) headers[name] = text;
    else if (name === ":authority") headers.host ??= text;
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

// deno-lint-ignore no-control-regex -- ASCII
const ASCII = /^[\u0000-\u007f]*$/;

/** Text with one character for each UTF-8 byte of a text. */
function inBytes(text: string): string {
  return ASCII.test(text) ? text : Buffer.from(text).toString("latin1");
}

/** Text from UTF-8 with a character for each byte, as Node gives headers. */
function fromBytes(text: string): string {
  return ASCII.test(text) ? text : Buffer.from(text, "latin1").toString();
}

/** Waits for the discarded rest of a body for as long as Go's server does. */
function withinLimit(message: Message): Promise<void> {
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

function readBody(message: Message): Promise<Uint8Array | undefined> {
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
    for (const end of ["error", "aborted", "close"]) {
      message.on(end, () => resolve(undefined));
    }
  });
}
