/**
 * Servers for tests of transports, in a child process on Node for the clients of
 * all runtimes: an HTTPS server that requests client certificates, proxies, and a
 * port that never responds. They end with their standard input.
 *
 * The first line of standard output is a {@linkcode TlsPeer} as JSON; the
 * counters are served in plain HTTP on `controlPort`.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { connect, createServer as createTcpServer } from "node:net";
import type { AddressInfo, Server as TcpServer, Socket } from "node:net";
import process from "node:process";
import type { TLSSocket } from "node:tls";
import { gzipSync } from "node:zlib";
import { type WebSocket, WebSocketServer } from "ws";
import {
  createAuthority,
  issueCertificate,
} from "../../core/admission/certificates.ts";

/** Addresses of the servers, and certificates of their clients. */
export interface TlsPeer {
  readonly port: number;
  /** Plain HTTP: `GET /` gives {@linkcode PeerCounters}. */
  readonly controlPort: number;
  /** HTTP proxy without authentication. */
  readonly proxyPort: number;
  /** HTTP proxy for the user `jane` with the password `p@ss`. */
  readonly guardedProxyPort: number;
  /** SOCKS5 proxy without authentication. */
  readonly socksPort: number;
  /** Port that accepts connections and never sends anything. */
  readonly stalledPort: number;
  /** Certificate authority of all certificates, in PEM. */
  readonly authority: string;
  /** Client certificates by user name. */
  readonly clients: Readonly<
    Record<
      "jane" | "joe",
      { readonly certificate: string; readonly key: string }
    >
  >;
}

/** Counters of the events so far. */
export interface PeerCounters {
  handshakes: number;
  /** Open connections to all ports except the control port. */
  connections: number;
  /** Responses that the client ended early. */
  abandoned: number;
  /** Requests of `/silent`. */
  silent: number;
  /** Requests of `/reset-write`, whose connection is reset. */
  resets: number;
  /** Bytes that `/flow` has written. */
  flowBytes: number;
  /** Tunnels that the proxies opened. */
  tunnels: number;
  /** WebSockets that have ended. */
  closedStreams: number;
}

const counters: PeerCounters = {
  handshakes: 0,
  connections: 0,
  abandoned: 0,
  silent: 0,
  resets: 0,
  flowBytes: 0,
  tunnels: 0,
  closedStreams: 0,
};
const CHUNK = Buffer.alloc(64 << 10, "x");
/** Number of lines of a stream of some megabytes. */
const COUNTED_LINES = 4_000;

/** TCP connections of the HTTPS server by the port of the client. */
const tcpSockets: Map<number | undefined, Socket> = new Map();

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

const ANSWERS: Readonly<Record<string, Answer>> = {
  "/whoami"(request, response) {
    const socket = request.socket as TLSSocket;
    response.setHeader("x-repeated", ["one", "two"]);
    response.end(JSON.stringify({
      user: socket.getPeerCertificate().subject?.CN ?? null,
      serverName: Reflect.get(socket, "servername") || null,
      host: request.headers.host,
      peerPort: socket.remotePort,
    }));
  },
  async "/echo"(request, response) {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    response.end(JSON.stringify({
      method: request.method,
      headers: request.headers,
      lines: request.rawHeaders,
      body: Buffer.concat(chunks).toString(),
    }));
  },
  "/gzip"(_request, response) {
    const body = gzipSync("compressed ".repeat(20_000));
    response.writeHead(200, { "content-encoding": "gzip" }).end(body);
  },
  "/gzip-cut"(_request, response) {
    const body = gzipSync("compressed ".repeat(20_000));
    response.writeHead(200, { "content-encoding": "gzip" })
      .end(body.subarray(0, body.byteLength / 2));
  },
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
  async "/count"(_request, response) {
    for (let line = 0; line < COUNTED_LINES; line++) {
      // Lines of many lengths: some share a TLS record, some need several.
      const text = `${line} `.repeat(1 + (line * 37) % 500);
      if (!response.write(`${text}\n`)) await once(response, "drain");
    }
    response.end();
  },
  async "/slow-count"(_request, response) {
    for (let line = 0; line < 20; line++) {
      response.write(`${line}\n`);
      await new Promise((resolve) => setImmediate(resolve));
    }
    response.end();
  },
  "/early-hints"(_request, response) {
    response.writeEarlyHints({ link: "</style.css>; rel=preload" }, () => {
      response.addTrailers({ "x-trailer": "yes" });
      response.end("after hints");
    });
  },
  "/until-close"(request) {
    request.socket.end("HTTP/1.1 200 OK\r\n\r\nuntil close");
  },
  "/garbage-head"(request) {
    request.socket.end("HTTP/1.1 200 OK\r\nno header\r\n\r\n");
  },
  "/garbage-body"(request) {
    request.socket.end(
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\nnext",
    );
  },
  "/silent"() {},
  "/head-then-silent"(_request, response) {
    response.write("first");
  },
  "/reset-head"(request) {
    request.socket.destroy();
  },
  "/reset-write"(request) {
    counters.resets++;
    tcpSockets.get(request.socket.remotePort)?.resetAndDestroy();
  },
  "/reset-body"(_request, response) {
    response.writeHead(200, { "content-length": "100" });
    response.write("half of it");
    setImmediate(() => response.socket?.destroy());
  },
  "/redirect"(_request, response) {
    response.writeHead(302, { location: "https://elsewhere.invalid/" }).end();
  },
  "/empty"(_request, response) {
    response.writeHead(204).end();
  },
  async "/long-error"(_request, response) {
    response.writeHead(500);
    for (let line = 0; line < 100; line++) {
      if (!response.write(`${line} `.repeat(1_000))) {
        await once(response, "drain");
      }
    }
    response.end();
  },
  "/missing"(_request, response) {
    response.writeHead(404).end("nothing here");
  },
};

/** WebSocket handlers by path; each ends differently. */
const STREAMS: Readonly<Record<string, (socket: WebSocket) => void>> = {
  "/stream/echo"(socket) {
    socket.on("message", (data) => socket.send(data));
  },
  "/stream/flow"(socket) {
    const write = () => {
      counters.flowBytes += CHUNK.byteLength;
      socket.send(CHUNK, (error) => error ?? setImmediate(write));
    };
    write();
  },
  "/stream/three"(socket) {
    for (const text of ["one", "two", "three"]) socket.send(text);
    socket.close(1000);
  },
  "/stream/broken"(socket) {
    socket.send("one", () => socket.terminate());
  },
  "/stream/silent"() {},
  // The behavior of a kubelet for `cat`, with the channels of Kubernetes.
  "/api/v1/namespaces/default/pods/web/exec"(socket) {
    socket.on("message", (data: Buffer) => {
      if (data[0] === 0) {
        socket.send(Buffer.concat([Buffer.of(1), data.subarray(1)]));
      } else if (data[0] === 255) {
        socket.send(`\x03${JSON.stringify({ status: "Success" })}`);
        socket.close(1000);
      }
    });
  },
};

/** Handles upgrades: opens a WebSocket or refuses. */
function serveStreams(server: Server): void {
  const sockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) =>
      offered.has("v5.channel.k8s.io") ? "v5.channel.k8s.io" : false,
  });
  server.on("upgrade", (request: IncomingMessage, socket: TLSSocket, head) => {
    const serve = STREAMS[request.url?.split("?")[0] ?? ""];
    const expired = request.headers.authorization === "Bearer expired";
    if (serve === undefined || expired) {
      const [code, reason] = expired
        ? [401, "Unauthorized"]
        : [404, "Not Found"];
      const body = JSON.stringify({ kind: "Status", message: "no pod" });
      socket.end(
        `HTTP/1.1 ${code} ${reason}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
      return;
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      webSocket.on("close", () => counters.closedStreams++);
      webSocket.on("error", () => {});
      if (request.url === "/stream/echo") {
        webSocket.send(JSON.stringify({
          user: socket.getPeerCertificate().subject?.CN ?? null,
          authorization: request.headers.authorization ?? null,
        }));
      }
      serve(webSocket);
    });
  });
}

function listen(server: TcpServer): Promise<number> {
  server.on("connection", (socket: Socket) => {
    counters.connections++;
    socket.on("close", () => counters.connections--);
    socket.on("error", () => {});
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** HTTP proxy; with credentials, requires them. */
function proxy(authorization?: string): Server {
  const server = createHttpServer((_request, response) => {
    response.writeHead(405).end();
  });
  server.on("connect", (request: IncomingMessage, client: Socket) => {
    client.on("error", () => {});
    const given = request.headers["proxy-authorization"];
    if (authorization !== undefined && given !== authorization) {
      client.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
      return;
    }
    counters.tunnels++;
    const { hostname, port } = new URL(`http://${request.url}`);
    const upstream = connect(Number(port), hostname, () => {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      upstream.pipe(client).pipe(upstream);
    });
    upstream.on("error", () => client.destroy());
    client.on("close", () => upstream.destroy());
  });
  return server;
}

/** SOCKS5 (RFC 1928) without password, for IPv4 addresses and names. */
function serveSocks(client: Socket): void {
  client.once("data", () => {
    client.write(Uint8Array.of(5, 0));
    client.once("data", (request: Buffer) => {
      const name = request[3] === 3;
      const end = name ? 5 + (request[4] ?? 0) : 8;
      const host = name
        ? request.subarray(5, end).toString()
        : request.subarray(4, end).join(".");
      const upstream = connect(request.readUInt16BE(end), host, () => {
        counters.tunnels++;
        client.write(Uint8Array.of(5, 0, 0, 1, 0, 0, 0, 0, 0, 0));
        upstream.pipe(client).pipe(upstream);
      });
      upstream.on("error", () => client.destroy());
      client.on("close", () => upstream.destroy());
    });
  });
}

async function main(): Promise<void> {
  const authority = createAuthority({ commonName: "test-authority" });
  const server = issueCertificate(authority, {
    commonName: "test-server",
    usage: "server",
    hosts: ["127.0.0.1", "api.internal"],
  });
  const client = (commonName: string) =>
    issueCertificate(authority, { commonName, usage: "client" });
  const main = createHttpsServer({
    key: server.key,
    cert: server.certificate,
    ca: authority.certificate,
    requestCert: true,
    rejectUnauthorized: false,
    keepAliveTimeout: 60_000,
  }, (request, response) => {
    response.on("close", () => {
      if (!response.writableFinished) counters.abandoned++;
    });
    const path = (request.url ?? "").replace(/^\/prefix/, "").split("?")[0];
    if (path === "/silent") counters.silent++;
    const answer = ANSWERS[path ?? ""] ?? ANSWERS["/missing"];
    answer?.(request, response);
  });
  main.on("connection", (socket: Socket) => {
    const { remotePort } = socket;
    tcpSockets.set(remotePort, socket);
    socket.on("close", () => tcpSockets.delete(remotePort));
  });
  main.on("secureConnection", () => counters.handshakes++);
  main.on("tlsClientError", () => {});
  serveStreams(main);
  const control = createHttpServer((_request, response) => {
    response.end(JSON.stringify(counters));
  });
  const controlPort = await new Promise<number>((resolve) => {
    control.listen(0, "127.0.0.1", () => {
      resolve((control.address() as AddressInfo).port);
    });
  });
  const credentials = Buffer.from("jane:p@ss").toString("base64");
  const peer: TlsPeer = {
    port: await listen(main),
    controlPort,
    proxyPort: await listen(proxy()),
    guardedProxyPort: await listen(proxy(`Basic ${credentials}`)),
    socksPort: await listen(createTcpServer(serveSocks)),
    stalledPort: await listen(createTcpServer((socket) => socket.resume())),
    authority: authority.certificate,
    clients: { jane: client("jane"), joe: client("joe") },
  };
  process.stdout.write(`${JSON.stringify(peer)}\n`);
  process.stdin.resume().on("end", () => process.exit(0));
}

if (import.meta.main) await main();
