import { constants } from "node:crypto";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Server as SecureServer } from "node:https";
import type { Server as TcpServer, Socket } from "node:net";
import process from "node:process";
import { nextTurn, sleep, systemClock } from "../clock.ts";
import { listenOn, nodeHttps, serverLimits } from "../node_http.ts";
import type { KeyPair } from "./certificates.ts";

/** Certificate that a server presents, and whom it asks for one. */
export interface ServerIdentity extends KeyPair {
  /**
   * Authorities of client certificates, in PEM. With them clients are asked for one,
   * and the handler decides about those without.
   */
  readonly clientAuthorities?: string | undefined;
}

/** Part of the connections from which on those without a request are closed. */
const FULL_SHARE = 0.9;
/** Time in which a request is read that has arrived, in milliseconds. */
const READING_MS = 50;

/** Address, limits and handler of a {@linkcode TlsServer}. */
export interface TlsServerOptions {
  readonly port: number;
  readonly host: string;
  /** Time limit for receiving a request, in milliseconds. */
  readonly requestTimeout: number;
  /**
   * Maximum number of connections; further ones are closed at once. From nine tenths
   * on, connections without a request are closed, which others may hold.
   */
  readonly maxConnections: number;
  /** What cannot be done if the server cannot listen, for the error. */
  readonly action: string;
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
}

/**
 * HTTPS server whose certificate can be replaced: connections that are open stay
 * open, and new ones get the new certificate.
 *
 * Bun's servers keep their certificate. There each certificate has a server of its
 * own on the loopback interface, and the port is that of a server in front, which
 * passes the bytes of a connection on to the newest of them.
 */
export class TlsServer {
  readonly #options: TlsServerOptions;
  #pair: ServerIdentity | undefined;
  /** Server of the current certificate. */
  #server: SecureServer | undefined;
  /** Server in front; undefined where servers can replace their certificate. */
  #front: TcpServer | undefined;
  readonly #servers: Set<SecureServer> = new Set();
  readonly #sockets: Set<Socket> = new Set();
  /** Number of connections. */
  #open = 0;
  #port: number | undefined;
  /** Resolves when the servers that stop have no connection left. */
  #closed: Promise<unknown> | undefined;

  constructor(options: TlsServerOptions) {
    this.#options = options;
  }

  /** Port of the server; undefined while it does not listen. */
  get port(): number | undefined {
    return this.#port;
  }

  /**
   * Starts to listen.
   *
   * @throws {Error} If the port is in use, or the certificate does not fit its key.
   */
  async start(pair: ServerIdentity): Promise<void> {
    const { port, host, action, maxConnections } = this.#options;
    this.#pair = pair;
    const server = this.#create(pair);
    if (replacesCertificate(server)) {
      server.maxConnections = maxConnections;
      server.on("connection", this.#makeRoom);
      this.#port = await listenOn(server, { port, host }, action);
      return;
    }
    await this.#listenBehind(server, action);
    const front = process.getBuiltinModule("node:net").createServer(
      (socket) => {
        this.#makeRoom(socket);
        this.#pass(socket);
      },
    );
    front.maxConnections = maxConnections;
    this.#port = await listenOn(front, { port, host }, action);
    this.#front = front;
  }

  /** Replaces the certificate for new connections. */
  async use(pair: ServerIdentity): Promise<void> {
    const { certificate, key, clientAuthorities: ca } = this.#pair ?? {};
    const isSame = pair.certificate === certificate && pair.key === key &&
      pair.clientAuthorities === ca;
    if (isSame) return;
    const before = this.#server;
    if (before === undefined) return;
    this.#pair = pair;
    if (replacesCertificate(before)) {
      before.setSecureContext(secureContext(pair));
      return;
    }
    await this.#listenBehind(this.#create(pair), this.#options.action);
    this.#closeIdle();
  }

  /**
   * Stops listening, and closes the connections without a request. Requests that have
   * arrived are read first, and go on.
   */
  async drain(): Promise<void> {
    await sleep(READING_MS, { clock: systemClock }); // Its sockets are real.
    // On a busy process the time may have passed without a look at the sockets.
    await nextTurn();
    const servers = [this.#front, ...this.#servers].filter((one) =>
      one !== undefined
    );
    this.#port = undefined;
    this.#closed ??= Promise.all(
      servers.map((server) =>
        new Promise<void>((resolve) => server.close(() => resolve()))
      ),
    );
    for (const server of this.#servers) server.closeIdleConnections();
  }

  /** Stops listening and breaks all connections. */
  async stop(): Promise<void> {
    await this.drain();
    for (const socket of this.#sockets) socket.destroy();
    for (const server of this.#servers) server.closeAllConnections();
    this.#front = this.#server = undefined;
    this.#servers.clear();
    await this.#closed;
    this.#closed = undefined;
  }

  #create(pair: ServerIdentity): SecureServer {
    const { handle, requestTimeout } = this.#options;
    const server = nodeHttps().createServer({
      ...serverLimits(requestTimeout),
      handshakeTimeout: requestTimeout,
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
      ...secureContext(pair),
      ...pair.clientAuthorities !== undefined && {
        requestCert: true,
        rejectUnauthorized: false,
      },
    }, handle);
    // Without a listener, a client that breaks its handshake ends the process on
    // some runtimes.
    server.on("tlsClientError", () => {});
    server.on("clientError", (_error, socket) => socket.destroy());
    this.#servers.add(server);
    this.#server ??= server;
    return server;
  }

  async #listenBehind(server: SecureServer, action: string): Promise<void> {
    await listenOn(server, { port: 0, host: "127.0.0.1" }, action);
    this.#server = server;
  }

  /** Closes connections without a request if a new one is among the last. */
  readonly #makeRoom = (socket: Socket): void => {
    this.#open++;
    socket.on("close", () => this.#open--);
    if (this.#open < this.#options.maxConnections * FULL_SHARE) return;
    for (const server of this.#servers) server.closeIdleConnections();
  };

  /** Passes a connection on to the server of the current certificate. */
  #pass(socket: Socket): void {
    const server = this.#server;
    const address = server?.address();
    if (server === undefined || typeof address !== "object" || !address) {
      socket.destroy();
      return;
    }
    const behind = process.getBuiltinModule("node:net")
      .connect(address.port, "127.0.0.1");
    SERVED.set(socket, server);
    for (const [one, other] of [[socket, behind], [behind, socket]] as const) {
      this.#sockets.add(one);
      one.setNoDelay(true);
      one.pipe(other);
      one.on("error", () => {});
      one.on("close", () => {
        this.#sockets.delete(one);
        other.destroy();
        if (one === socket) this.#closeIdle();
      });
    }
  }

  /** Closes servers of earlier certificates that have no connection left. */
  #closeIdle(): void {
    const used = new Set(
      Array.from(this.#sockets, (socket) => SERVED.get(socket)),
    );
    for (const server of this.#servers) {
      if (server === this.#server || used.has(server)) continue;
      this.#servers.delete(server);
      server.close();
    }
  }
}

function secureContext(
  { certificate, key, clientAuthorities }: ServerIdentity,
) {
  return {
    cert: certificate,
    key,
    ...clientAuthorities !== undefined && { ca: clientAuthorities },
  };
}

/** Servers behind the connections of servers in front. */
const SERVED: WeakMap<Socket, SecureServer> = new WeakMap();

/** Whether a server can replace its certificate. */
function replacesCertificate(server: Server | SecureServer): boolean {
  return typeof (server as Partial<SecureServer>).setSecureContext ===
    "function";
}
