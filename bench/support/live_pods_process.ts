/**
 * Serves more Pods than fit into memory, in a process of its own: each is
 * generated when it is sent. `live_pods_process.ts OBJECTS CHANGES_PER_SECOND`
 * prints one line of JSON when it listens, and ends when its input does.
 *
 * There are no ReplicaSets, although the Pods have owners; their watch stays
 * empty. Changes begin after a watch has received the initial state, which it
 * gets if it asks for it; `/sent` answers with the number of bytes sent so far.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { PodFactory } from "./pods.ts";

const [objects = 0, perSecond = 0] = process.argv.slice(2).map(Number);
/** resourceVersion of the initial state; changes continue from there. */
const VERSION = 10_000_000;
const PER_WRITE = 16;
const TICK_MS = 20;

const pods = new PodFactory();
/** Bytes of watches that were sent. */
let sentBytes = 0;
const resources: Readonly<Record<string, string>> = {
  "/api/v1": "pods Pod",
  "/apis/apps/v1": "replicasets ReplicaSet",
};

function discovery(path: string): object {
  const [name, kind] = (resources[path] ?? "").split(" ");
  const verbs = ["get", "list", "watch"];
  return {
    kind: "APIResourceList",
    resources: [{ name, kind, namespaced: true, verbs }],
  };
}

function send(response: ServerResponse, value: object): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}

async function write(response: ServerResponse, bytes: Buffer): Promise<void> {
  sentBytes += bytes.length;
  if (response.write(bytes)) return;
  await new Promise((resolve) => response.once("drain", resolve));
}

function bookmark(kind: string, apiVersion: string): Buffer {
  const metadata = {
    resourceVersion: String(VERSION),
    annotations: { "k8s.io/initial-events-end": "true" },
  };
  const object = { kind, apiVersion, metadata };
  return Buffer.from(`${JSON.stringify({ type: "BOOKMARK", object })}\n`);
}

async function sendState(response: ServerResponse): Promise<void> {
  const lineFeed = Buffer.from("\n");
  for (let first = 0; first < objects; first += PER_WRITE) {
    const parts: Buffer[] = [];
    const end = Math.min(first + PER_WRITE, objects);
    for (let i = first; i < end; i++) {
      parts.push(pods.event("ADDED", i, i + 1), lineFeed);
    }
    await write(response, Buffer.concat(parts));
  }
  await write(response, bookmark("Pod", "v1"));
}

async function sendChanges(response: ServerResponse): Promise<void> {
  const start = performance.now();
  for (let sent = 0; !response.closed;) {
    await new Promise((resolve) => setTimeout(resolve, TICK_MS));
    const due = (performance.now() - start) * perSecond / 1000;
    for (; sent < due; sent++) {
      const pod = sent * 7919 % objects;
      const line = pods.event("MODIFIED", pod, VERSION + 1 + sent);
      await write(response, Buffer.concat([line, Buffer.from("\n")]));
    }
  }
}

async function watch(
  response: ServerResponse,
  { pathname, searchParams }: URL,
): Promise<void> {
  response.writeHead(200, { "content-type": "application/json" });
  response.flushHeaders();
  const isWhole = searchParams.get("sendInitialEvents") === "true";
  if (pathname.endsWith("/pods")) {
    await (isWhole
      ? sendState(response)
      : write(response, bookmark("Pod", "v1")));
    await sendChanges(response);
  } else response.write(bookmark("ReplicaSet", "apps/v1"));
}

const server = createServer((request, response) => {
  const url = new URL(request.url ?? "/", "http://pods");
  const { pathname, searchParams } = url;
  if (searchParams.has("watch")) void watch(response, url);
  else if (pathname === "/sent") send(response, { bytes: sentBytes });
  else if (pathname === "/api/v1/namespaces/kube-system") {
    const metadata = {
      name: "kube-system",
      uid: "5eed0000",
      resourceVersion: "1",
    };
    send(response, { kind: "Namespace", apiVersion: "v1", metadata });
  } else if (pathname in resources) send(response, discovery(pathname));
  else {
    const metadata = { resourceVersion: String(VERSION) };
    const kind = pathname.endsWith("/pods") ? "PodList" : "ReplicaSetList";
    const apiVersion = pathname.endsWith("/pods") ? "v1" : "apps/v1";
    send(response, { kind, apiVersion, metadata, items: [] });
  }
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  const line = JSON.stringify({ url: `http://127.0.0.1:${port}` });
  process.stdout.write(`${line}\n`);
});
process.stdin.on("end", () => process.exit(0)).resume();
