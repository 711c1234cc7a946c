import { Buffer } from "node:buffer";
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
import { LendingSocket, type ReadOptions } from "./lending_socket.ts";
import { currentRuntime } from "./runtime.ts";
import {
  CONNECT_TIMEOUT_MS,
  type TlsOptions,
  tlsOptions,
  type TransportOptions,
} from "./transport_options.ts";
import { openTunnel } from "./tunnel.ts";

/** Silence in milliseconds after which TCP checks that the peer responds. */
const KEEP_ALIVE_DELAY_MS = 60_000;

/** Open connection to a server. */
export interface OpenedSocket {
  /** Socket of TCP or TLS. */
  readonly socket: (Socket | LendingSocket) & {
    readonly alpnProtocol?: unknown;
  };
  /**
   * TCP socket below a TLS socket that reads on while it is paused: who pauses it
   * pauses this one, too.
   */
  readonly lower?: Socket | undefined;
}

/** What reads for a socket. */
interface ReadHandle {
  readStart(): void;
  readStop(): void;
}

/** Outcome of a connection attempt. */
export type Connected = (error: unknown, opened?: OpenedSocket) => void;

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

  /** Whether sockets can read into memory that is used again. */
  get lends(): boolean {
    return this.#proxyUrl === undefined && currentRuntime() === "node";
  }

  /** Whether connections use TLS. */
  get isTls(): boolean {
    return this.#server.protocol === "https:";
  }

  /**
   * Opens a connection.
   *
   * @param protocols Names of protocols that the server may choose from, by
   * preference; for TLS only.
   * @param done Called once with the open socket, or with the reason of the failure.
   * @param lends Whether the socket reads into memory that is used again, where
   * that is possible.
   * @returns Function that ends the attempt; `done` is not called after it.
   */
  open(
    protocols: readonly string[],
    done: Connected,
    lends = false,
  ): () => void {
    let socket: Socket | undefined;
    let lending: LendingSocket | undefined;
    let lower: Socket | undefined;
    let isOver = false;
    const cancel = () => {
      isOver = true;
      clearTimeout(timer);
      socket?.destroy();
      lower?.destroy();
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
    const { isTls } = this;
    const connect = (below?: Socket) => {
      if (isOver) {
        below?.destroy();
        return;
      }
      // Kept first: certificates and keys that are not valid make the next line throw.
      lower = below;
      const open = (read?: ReadOptions) =>
        socket = isTls
          ? this.#openTls(below, protocols, read)
          : below ?? this.#openTcp(read);
      if (lends && this.lends) lending = new LendingSocket(open);
      const opened = socket ?? open();
      const outer = lending ?? opened;
      const ready = () => {
        if (isOver) return;
        isOver = true;
        clearTimeout(timer);
        done(null, {
          socket: outer,
          lower: isTls && readsWhilePaused() ? below : undefined,
        });
      };
      outer.on("error", fail);
      outer.once(
        "close",
        () =>
          fail(new Error("Cannot connect: the server closed the connection")),
      );
      opened.setNoDelay(true);
      if (opened === below) ready();
      else opened.once(isTls ? "secureConnect" : "connect", ready);
    };
    const timeout = this.#timeout;
    const below = this.#proxyUrl !== undefined
      ? openTunnel(this.#proxyUrl, this.#server, { timeout })
      : Promise.resolve(
        isTls && readsWhilePaused() ? this.#openTcp() : undefined,
      );
    below.then(connect).catch(fail);
    return cancel;
  }

  #openTls(
    below: Socket | undefined,
    protocols: readonly string[],
    read: ReadOptions | undefined,
  ): TLSSocket {
    const { host, port } = this.#target();
    const socket = connectTls({
      ...this.#tls,
      ...(below ? { socket: below } : { port }),
      host,
      ...(!this.#tls.servername && !isIP(host) && { servername: host }),
      ALPNProtocols: [...protocols],
      ...(this.#session && { session: this.#session }),
      ...read,
    } as ConnectionOptions);
    socket.on("session", (session) => this.#session = session);
    if (currentRuntime() === "deno") writeBytes(socket);
    socket.setKeepAlive(true, KEEP_ALIVE_DELAY_MS);
    return socket;
  }

  #openTcp(read?: ReadOptions): Socket {
    const options: TcpNetConnectOpts = {
      ...this.#target(),
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS,
      ...(read as Pick<TcpNetConnectOpts, "onread">),
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

/**
 * Starts or stops reading from a socket below TLS. By its handle: on Deno, `pause`
 * and `resume` do nothing if the socket is not marked as read, and whether it is
 * depends on which was ready first, it or TLS.
 */
export function setReading(lower: Socket, isReading: boolean): void {
  const handle: ReadHandle | null | undefined = Reflect.get(lower, "_handle");
  if (isReading) handle?.readStart();
  else handle?.readStop();
}

/**
 * Makes a TLS socket of Deno write texts in Latin-1 as their bytes: together with
 * other writes it would send them in UTF-8.
 */
function writeBytes(socket: TLSSocket): void {
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  socket.write = (chunk: unknown, ...others: unknown[]) =>
    typeof chunk === "string" && others[0] === "latin1"
      ? write(Buffer.from(chunk, "latin1"), ...others.slice(1))
      : write(chunk, ...others);
}

/** Whether TLS sockets of this runtime read on while they are paused. */
function readsWhilePaused(): boolean {
  return currentRuntime() === "deno";
}
