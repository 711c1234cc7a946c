/**
 * HTTPS server of HTTP/2 and HTTP/1.1 for tests of transports, in a child process on
 * Node for the clients of all runtimes. It ends with its standard input.
 *
 * The first line of standard output is an {@linkcode Http2Peer} as JSON; commands
 * and counters are served in plain HTTP on `controlPort`.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { createServer as createHttpServer } from "node:http";
import {
  createSecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import type { AddressInfo, Server, Socket } from "node:net";
import process from "node:process";
import {
  createAuthority,
  issueCertificate,
} from "../../core/admission/certificates.ts";

/** Addresses of the server. */
export interface Http2Peer {
  readonly port: number;
  /** Its process. */
  readonly pid: number;
  /** Plain HTTP: `GET /` gives {@linkcode Http2Counters}, other paths are commands. */
  readonly controlPort: number;
  /** Certificate authority of the server, in PEM. */
  readonly authority: string;
}

/** What the server has seen so far. */
export interface Http2Counters {
  /** Open connections. */
  connections: number;
  /** Sessions of HTTP/2, with those that have ended. */
  sessions: number;
  /** Requests that arrived. */
  requests: number;
  /** Responses of HTTP/2 that the client has reset. */
  abandoned: number;
  /** Open responses of `/watch`. */
  watches: number;
  /** Bytes that `/flow` has written. */
  flowBytes: number;
}

const counters: Http2Counters = {
  connections: 0,
  sessions: 0,
  requests: 0,
  abandoned: 0,
  watches: 0,
  flowBytes: 0,
};
const CHUNK = Buffer.alloc(16 << 10, "x");
/** Open sockets by the port of their client. */
const sockets = new Map<number | undefined, Socket>();
/** Open sessions, each with the port of its client. */
const sessions = new Map<ServerHttp2Session, number | undefined>();
const watches = new Set<Http2ServerResponse>();

const ANSWERS: Readonly<
  Record<
    string,
    (request: Http2ServerRequest, response: Http2ServerResponse) => void
  >
> = {
  "/whoami"(request, response) {
    response.end(JSON.stringify({
      version: request.httpVersion,
      method: request.method,
      headers: request.headers,
      session: request.stream?.session
        ? [...sessions.keys()].indexOf(
          request.stream.session as ServerHttp2Session,
        )
        : -1,
    }));
  },
  "/watch"(_request, response) {
    watches.add(response);
    counters.watches++;
    response.on("close", () => {
      watches.delete(response);
      counters.watches--;
    });
    response.writeHead(200);
    response.write("begun\n");
  },
  "/silent"() {},
  "/flow"(_request, response) {
    const write = () => {
      while (!response.destroyed) {
        counters.flowBytes += CHUNK.byteLength;
        if (!response.write(CHUNK)) return;
      }
    };
    response.on("drain", write);
    write();
  },
  "/reset"(request) {
    request.stream.close(2);
  },
  "/refuse"(request) {
    request.stream.close(7);
  },
  "/reset-body"(request, response) {
    response.writeHead(200);
    response.write("half of it", () => request.stream.close(2));
  },
  "/lying-length"(_request, response) {
    response.writeHead(200, { "content-length": "100" });
    response.end("short");
  },
  "/empty"(_request, response) {
    response.writeHead(204).end();
  },
  "/hints"(request, response) {
    request.stream.additionalHeaders({ ":status": 103, link: "x" });
    response.end("after hints");
  },
};

/** Sessions that take commands. */
function open(): ServerHttp2Session[] {
  return [...sessions.keys()].filter(({ destroyed }) => !destroyed);
}

/** Times of pings that sessions have not answered. */
const pings = new WeakMap<ServerHttp2Session, number>();
/** Time after which a session without an answer is taken for closed, in ms. */
const ANSWER_LIMIT_MS = 1_000;

const COMMANDS: Readonly<Record<string, () => void>> = {
  /**
   * Closes sessions whose client has gone: Node's server does not notice a
   * connection that was reset while it waited for the end of a write.
   */
  "/sweep"() {
    for (const session of open()) {
      const sent = pings.get(session);
      if (sent === undefined) {
        pings.set(session, performance.now());
        session.ping(() => pings.delete(session));
      } else if (performance.now() - sent > ANSWER_LIMIT_MS) {
        session.destroy();
        // Node would wait for the end of the write.
        sockets.get(sessions.get(session))?.destroy();
      }
    }
  },
  /** As Go's server: no further streams; those in progress go on. */
  "/goaway"() {
    for (const session of open()) session.goaway(0, 2 ** 31 - 1);
  },
  /** No more streams, and none that is not being served. */
  "/close"() {
    for (const session of open()) session.close();
  },
  "/goaway-error"() {
    for (const session of open()) session.goaway(11);
  },
  "/cut"() {
    for (const socket of sockets.values()) socket.destroy();
  },
  "/event"() {
    for (const watch of watches) watch.write("event\n");
  },
  "/end"() {
    for (const watch of watches) watch.end();
  },
};

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      resolve((server.address() as AddressInfo).port);
    });
  });
}

async function main(maxStreams: number | undefined): Promise<void> {
  const authority = createAuthority({ commonName: "test-authority" });
  const { certificate, key } = issueCertificate(authority, {
    commonName: "test-server",
    usage: "server",
    hosts: ["127.0.0.1"],
  });
  const server = createSecureServer({
    key,
    cert: certificate,
    allowHTTP1: true,
    settings: {
      ...(maxStreams !== undefined && { maxConcurrentStreams: maxStreams }),
    },
  }, (request, response) => {
    counters.requests++;
    request.stream?.on("error", () => {});
    request.stream?.on("aborted", () => counters.abandoned++);
    const path = (request.url ?? "").split("?")[0] ?? "";
    ANSWERS[path]?.(request, response);
  });
  server.on("session", (session) => {
    counters.sessions++;
    sessions.set(session, session.socket.remotePort);
    session.on("error", () => {});
    session.on("close", () => sessions.delete(session));
  });
  server.on("connection", (socket: Socket) => {
    counters.connections++;
    const { remotePort } = socket;
    sockets.set(remotePort, socket);
    socket.on("close", () => {
      counters.connections--;
      sockets.delete(remotePort);
    });
  });
  server.on("tlsClientError", () => {});
  server.on("sessionError", () => {});
  const control = createHttpServer((request, response) => {
    COMMANDS[request.url ?? ""]?.();
    response.end(JSON.stringify(counters));
  });
  const peer: Http2Peer = {
    port: await listen(server as Server),
    pid: process.pid,
    controlPort: await listen(control),
    authority: authority.certificate,
  };
  process.stdout.write(`${JSON.stringify(peer)}\n`);
  process.stdin.resume().on("end", () => process.exit(0));
}

if (import.meta.main) {
  const [limit] = process.argv.slice(2);
  await main(limit === undefined ? undefined : Number(limit));
}
