/**
 * Serves more Pods than fit into memory, in a process of its own: each is
 * generated when it is sent. `live_pods_process.ts OBJECTS CHANGES_PER_SECOND
 * [FINALIZER]` prints one line of JSON when it listens, and ends when its input
 * does. All Pods have the finalizer, if there is one.
 *
 * There are no ReplicaSets, although the Pods have owners, and no ConfigMaps; their
 * watches stay empty. Changes begin after a watch has received the initial state, which it
 * gets if it asks for it; `/sent` answers with the number of bytes sent so far.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { basename, dirname } from "node:path/posix";
import process from "node:process";
import { PodFactory } from "./pods.ts";

const [objects = 0, perSecond = 0] = process.argv.slice(2, 4).map(Number);
const [, , , , finalizer] = process.argv;
/** resourceVersion of the initial state; changes continue from there. */
const VERSION = 10_000_000;
const PER_WRITE = 16;
const TICK_MS = 20;

const LINE_FEED = Buffer.from("\n");

const pods = new PodFactory();
/** Bytes of watches that were sent. */
let sentBytes = 0;
const resources: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "/api/v1": { pods: "Pod", configmaps: "ConfigMap" },
  "/apis/apps/v1": { replicasets: "ReplicaSet" },
};

function discovery(path: string): object {
  const verbs = ["get", "list", "watch"];
  return {
    kind: "APIResourceList",
    resources: Object.entries(resources[path] ?? {}).map(([name, kind]) => ({
      name,
      kind,
      namespaced: true,
      verbs,
    })),
  };
}

/** Watch event of a Pod, with its line feed. */
function podEvent(type: string, number: number, version: number): Buffer {
  const event = pods.event(type, number, version);
  if (finalizer === undefined) return Buffer.concat([event, LINE_FEED]);
  const head = '"metadata":{';
  const at = event.indexOf(head) + head.length;
  return Buffer.concat([
    event.subarray(0, at),
    Buffer.from(`"finalizers":["${finalizer}"],`),
    event.subarray(at),
    LINE_FEED,
  ]);
}

/** Kind of a resource by its path, and its apiVersion. */
function kindOf(pathname: string): readonly [kind: string, version: string] {
  const [folder, name] = [dirname(pathname), basename(pathname)];
  return [resources[folder]?.[name] ?? "", folder.replace(/^\/apis?\//, "")];
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
  for (let first = 0; first < objects; first += PER_WRITE) {
    const parts: Buffer[] = [];
    const end = Math.min(first + PER_WRITE, objects);
    for (let i = first; i < end; i++) {
      parts.push(podEvent("ADDED", i, i + 1));
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
      await write(response, podEvent("MODIFIED", pod, VERSION + 1 + sent));
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
  } else response.write(bookmark(...kindOf(pathname)));
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
    const [kind, apiVersion] = kindOf(pathname);
    send(response, { kind: `${kind}List`, apiVersion, metadata, items: [] });
  }
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  const line = JSON.stringify({ url: `http://127.0.0.1:${port}` });
  process.stdout.write(`${line}\n`);
});
process.stdin.on("end", () => process.exit(0)).resume();
