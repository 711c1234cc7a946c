/**
 * Servers that write their answers byte by byte, for tests of what a client does
 * with them.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import {
  createAuthority,
  issueCertificate,
} from "../../core/admission/certificates.ts";
import type { HttpTransport } from "../../core/client/transport/transport.ts";
import { frame, PREFACE } from "./http2_frames.ts";
import { withTransport } from "./transport_case.ts";

/** Status line of a success. */
export const HEAD = "HTTP/1.1 200 OK\r\n";
/** Head of a body of two bytes. */
export const OK: string = `${HEAD}content-length: 2\r\n\r\n`;
/** Head of a body in chunks. */
export const CHUNKED: string = `${HEAD}transfer-encoding: chunked\r\n\r\n`;

/** Server of one test. */
export interface Peer {
  /** Number of connections so far. */
  connections: number;
  /** Sockets that are open. */
  readonly open: Set<Socket>;
  /** Requests that arrived, each with its body. */
  readonly requests: string[];
}

/** Answer to a request, or what the server does with its socket. */
export type Answer = string | Uint8Array | ((socket: Socket) => void);

/** Runs a test with a server that answers one request after the other. */
export async function withAnswers(
  answers: readonly Answer[],
  run: (transport: HttpTransport, peer: Peer) => Promise<void>,
): Promise<void> {
  const left = [...answers];
  const peer: Peer = { connections: 0, open: new Set(), requests: [] };
  const server = createServer((socket) => {
    note(peer, socket);
    socket.on("data", (data) => {
      peer.requests.push(data.toString("latin1"));
      give(socket, left.shift() ?? "");
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  try {
    await withTransport(
      { server: `http://127.0.0.1:${port}` },
      (transport) => run(transport, peer),
    );
  } finally {
    for (const socket of peer.open) socket.destroy();
    server.close();
  }
}

/** Authority and certificate of servers of HTTP/2, made with the first. */
let identity: (TlsOptions & { readonly ca: string }) | undefined;

function createIdentity(): NonNullable<typeof identity> {
  const authority = createAuthority({ commonName: "frames-authority" });
  const { certificate, key } = issueCertificate(authority, {
    commonName: "frames",
    usage: "server",
    hosts: ["127.0.0.1"],
  });
  return { ca: authority.certificate, cert: certificate, key };
}

/**
 * Runs a test with a server of HTTP/2 that answers one stream after the other.
 *
 * @param answers Functions that give the answer to a stream of a number.
 */
export async function withFrames(
  answers: readonly ((stream: number) => Answer)[],
  run: (transport: HttpTransport, peer: Peer) => Promise<void>,
): Promise<void> {
  const left = [...answers];
  const peer: Peer = { connections: 0, open: new Set(), requests: [] };
  const { ca, ...tls } = identity ??= createIdentity();
  const server = createTlsServer({ ...tls, ALPNProtocols: ["h2"] });
  server.on("tlsClientError", () => {});
  server.on("secureConnection", (socket: Socket) => {
    note(peer, socket);
    socket.write(frame("SETTINGS", 0, 0));
    let at = PREFACE.byteLength;
    let read: Buffer = Buffer.alloc(0);
    socket.on("data", (data) => {
      read = Buffer.concat([read, data]);
      while (read.byteLength >= at + 9) {
        const end = at + 9 + read.readUIntBE(at, 3);
        if (read.byteLength < end) return;
        const [type, flags] = [read[at + 3], read[at + 4]];
        const stream = read.readUInt32BE(at + 5);
        if (type === 4 && flags === 0) socket.write(frame("SETTINGS", 1, 0));
        if (type === 1) {
          peer.requests.push(`stream ${stream}`);
          give(socket, left.shift()?.(stream) ?? "");
        }
        at = end;
      }
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  try {
    await withTransport(
      {
        server: `https://127.0.0.1:${port}`,
        certificateAuthority: ca,
      },
      (transport) => run(transport, peer),
    );
  } finally {
    for (const socket of peer.open) socket.destroy();
    server.close();
  }
}

function note(peer: Peer, socket: Socket): void {
  peer.connections++;
  peer.open.add(socket);
  socket.on("close", () => peer.open.delete(socket));
  socket.on("error", () => {});
}

function give(socket: Socket, answer: Answer): void {
  if (typeof answer === "function") answer(socket);
  else if (typeof answer === "string") socket.write(answer, "latin1");
  else socket.write(answer);
}

/** Ends the connection behind an answer. */
export function thenEnd(answer: string | Uint8Array): Answer {
  return (socket) => socket.end(answer as string, "latin1");
}

/** Writes a start, and then more of it forever. */
export function endless(
  start: string | Uint8Array,
  more: string | Uint8Array,
): Answer {
  return (socket) => {
    give(socket, start);
    const write = () => {
      if (socket.destroyed) return;
      socket.write(more as string, "latin1", () => setImmediate(write));
    };
    write();
  };
}
