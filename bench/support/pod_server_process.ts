/**
 * Serves Pods in a process of its own, so that its work is not measured:
 * `pod_server_process.ts OBJECTS EVENTS http|https`. Prints one line of JSON
 * when it listens, and ends when its input does.
 *
 * Everything is encoded before it listens. `POST /send` writes the events to
 * every open watch with back-pressure, as soon as there is a watch.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { createServer, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import process from "node:process";
import {
  createAuthority,
  issueCertificate,
} from "../../core/admission/certificates.ts";
import { PodFactory } from "./pods.ts";

const [objects = 0, events = 0] = process.argv.slice(2).map(Number);
const isTls = process.argv[4] === "https";
/** resourceVersion of the initial state; changes continue from there. */
const VERSION = 1_000_000;
/**
 * Chunk size, about that of a TLS record and of a write of a real server, in
 * bytes.
 */
const CHUNK_BYTES = 64 * 1024;

const factory = new PodFactory();
const pods = Array.from(
  { length: objects },
  (_, index) => factory.bytes(index, index + 1),
);
const changes = Array.from(
  { length: events },
  (_, index) => factory.bytes(index % objects, VERSION + 1 + index),
);
const endOfState = {
  type: "BOOKMARK",
  object: {
    kind: "Pod",
    apiVersion: "v1",
    metadata: {
      resourceVersion: String(VERSION),
      annotations: { "k8s.io/initial-events-end": "true" },
    },
  },
};
const watches: ServerResponse[] = [];
/**
 * Time limit for the first watch, since some clients start it after their list
 * is complete.
 */
const watched: PromiseWithResolvers<void> = Promise.withResolvers();

/** Writes parts with a prefix and suffix each, in chunks with back-pressure. */
async function write(
  response: ServerResponse,
  parts: readonly Buffer[],
  around: { readonly before: string; readonly after: string },
): Promise<void> {
  const before = Buffer.from(around.before);
  const after = Buffer.from(around.after);
  let chunk: Buffer[] = [];
  let size = 0;
  for (const [index, part] of parts.entries()) {
    chunk.push(before, part, after);
    size += part.length;
    if (size < CHUNK_BYTES && index < parts.length - 1) continue;
    if (!response.write(Buffer.concat(chunk))) {
      await new Promise((resolve) => response.once("drain", resolve));
    }
    chunk = [];
    size = 0;
  }
}

async function list(
  response: ServerResponse,
  query: URLSearchParams,
): Promise<void> {
  const from = Number(query.get("continue") ?? 0);
  const end = Math.min(from + Number(query.get("limit") ?? objects), objects);
  const metadata = {
    resourceVersion: String(VERSION),
    ...(end < objects ? { continue: String(end) } : {}),
  };
  response.writeHead(200, { "content-type": "application/json" });
  const head = { kind: "PodList", apiVersion: "v1", metadata, items: [] };
  response.write(JSON.stringify(head).slice(0, -2));
  const page = pods.slice(from, end);
  await write(response, page.slice(0, -1), { before: "", after: "," });
  await write(response, page.slice(-1), { before: "", after: "" });
  response.end("]}");
}

async function watch(
  response: ServerResponse,
  query: URLSearchParams,
): Promise<void> {
  response.writeHead(200, { "content-type": "application/json" });
  response.flushHeaders();
  if (query.has("sendInitialEvents")) {
    const before = '{"type":"ADDED","object":';
    await write(response, pods, { before, after: "}\n" });
    response.write(`${JSON.stringify(endOfState)}\n`);
  }
  watches.push(response);
  watched.resolve();
}

async function receive(
  target: string,
  response: ServerResponse,
): Promise<void> {
  const { pathname, searchParams } = new URL(target, "http://pods");
  if (pathname === "/send") {
    const before = '{"type":"MODIFIED","object":';
    await watched.promise;
    for (const open of watches) {
      await write(open, changes, { before, after: "}\n" });
    }
    response.end();
  } else if (searchParams.has("watch")) await watch(response, searchParams);
  else await list(response, searchParams);
}

const authority = createAuthority({ commonName: "bench" });
const leaf = issueCertificate(authority, {
  commonName: "bench",
  usage: "server",
  hosts: ["127.0.0.1"],
});
const server = isTls
  ? createTlsServer({ cert: leaf.certificate, key: leaf.key })
  : createServer();
server.on("request", (request, response) => {
  // A client that asks for a WebSocket first, such as fabric8, reads no watch
  // from the answer, and then asks for a stream.
  if (request.headers.upgrade !== undefined) response.end();
  else void receive(request.url ?? "/", response);
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  const url = `${isTls ? "https" : "http"}://127.0.0.1:${port}`;
  const line = JSON.stringify({ url, authority: authority.certificate });
  process.stdout.write(`${line}\n`);
});
process.stdin.on("end", () => process.exit(0)).resume();
