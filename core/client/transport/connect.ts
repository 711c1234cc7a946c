import type { Buffer } from "node:buffer";
import {
  connect as connectTcp,
  isIP,
  type Socket,
  type TcpNetConnectOpts,
} from "node:net";
import {
  connect as connectTls,
  type ConnectionOptions,
  type TLSSocket,
} from "node:tls";
import {
  CONNECT_TIMEOUT_MS,
  type TlsOptions,
  tlsOptions,
  type TransportOptions,
} from "./transport_options.ts";
import { openTunnel } from "./tunnel.ts";

/** Silence in milliseconds after which TCP checks that the peer responds. */
const KEEP_ALIVE_DELAY_MS = 60_000;

/**
 * Memory into which a socket reads, in place of a new buffer for each read. Node
 * calls the functions with another `this`.
 */
export interface ReadTarget {
  /** Returns the memory for the next read. */
  readonly buffer: () => Uint8Array;
  /** Receives the number of bytes read; returns `true` to continue. */
  readonly callback: (length: number) => boolean;
}

/** Options of a TLS connection and its TCP connection. */
type TlsConnectOptions = ConnectionOptions & Partial<TcpNetConnectOpts>;

/** Outcome of a connection attempt. */
export type Connected = (error: unknown, socket?: Socket) => void;

/**
 * Opener of TCP and TLS connections to one server, directly or through a proxy. A
 * TLS session is resumed by the next connection.
 */
export class Connector {
  readonly #server: URL;
  readonly #tls: TlsOptions;
  readonly #proxyUrl: string | undefined;
  readonly #timeout: number;
  #session: Buffer | undefined;

  constructor(options: TransportOptions) {
    this.#server = new URL(options.server);
    this.#tls = tlsOptions(options);
    this.#proxyUrl = options.proxyUrl;
    this.#timeout = options.connectTimeout ?? CONNECT_TIMEOUT_MS;
  }

  /** Host and port, as in the header `host`. */
  get host(): string {
    return this.#server.host;
  }

  /**
   * Opens a connection.
   *
   * @param done Called once with the open socket, or with the reason of the failure.
   * @param onread Memory to read into; only for direct connections on Node.
   * @returns Function that ends the attempt; `done` is not called after it.
   */
  open(done: Connected, onread?: ReadTarget): () => void {
    let socket: Socket | undefined;
    let isOver = false;
    const cancel = () => {
      isOver = true;
      clearTimeout(timer);
      socket?.destroy();
    };
    const fail = (error: unknown) => {
      if (isOver) return;
      cancel();
      done(error);
    };
    const timer = setTimeout(() =>
      fail(
        new Error(
          `Cannot connect: the server did not answer within ${this.#timeout} ms`,
        ),
      ), this.#timeout);
    const isTls = this.#server.protocol === "https:";
    const connect = (tunnel?: Socket) => {
      if (isOver) {
        tunnel?.destroy();
        return;
      }
      // Kept first: certificates and keys that are not valid make the next line throw.
      socket = tunnel;
      const opened = isTls
        ? this.#openTls(tunnel, onread)
        : tunnel ?? this.#openTcp(onread);
      socket = opened;
      const ready = () => {
        if (isOver) return;
        isOver = true;
        clearTimeout(timer);
        done(null, opened);
      };
      opened.on("error", fail);
      opened.once(
        "close",
        () =>
          fail(new Error("Cannot connect: the server closed the connection")),
      );
      opened.setNoDelay(true);
      if (opened === tunnel) ready();
      else opened.once(isTls ? "secureConnect" : "connect", ready);
    };
    const timeout = this.#timeout;
    const tunnel = this.#proxyUrl === undefined
      ? Promise.resolve(undefined)
      : openTunnel(this.#proxyUrl, this.#server, { timeout });
    tunnel.then(connect).catch(fail);
    return cancel;
  }

  #openTls(tunnel: Socket | undefined, onread?: ReadTarget): TLSSocket {
    const { host, port } = this.#target();
    const servername = this.#tls.servername ?? (isIP(host) ? "" : host);
    const options: TlsConnectOptions = {
      ...this.#tls,
      ...(tunnel ? { socket: tunnel } : { port, keepAlive: true }),
      keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS,
      host,
      servername,
      // HTTP/2 would put all watches on one connection and its flow control.
      ALPNProtocols: ["http/1.1"],
      ...(this.#session && { session: this.#session }),
      ...(onread && { onread }),
    };
    const socket = connectTls(options);
    socket.on("session", (session) => this.#session = session);
    return socket;
  }

  #openTcp(onread?: ReadTarget): Socket {
    const options: TcpNetConnectOpts = {
      ...this.#target(),
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS,
      ...(onread && { onread }),
    };
    return connectTcp(options);
  }

  #target(): { readonly host: string; readonly port: number } {
    const { hostname, port, protocol } = this.#server;
    return {
      host: hostname.replace(/^\[|\]$/g, ""),
      port: Number(port) || (protocol === "https:" ? 443 : 80),
    };
  }
}
