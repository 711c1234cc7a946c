/**
 * Fake API server of one kind for tests of informers: it keeps a history of
 * versions, serves get, list in pages and watch over real sockets, and fails by a
 * script of faults per verb (watch_faults.ts). A test creates objects with
 * `put`, removes them with `delete`, compacts the history and cuts watches; what
 * a request means is in fake_watch_call.ts.
 *
 * @module
 */

import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { Client } from "../../core/client/client.ts";
import { openHttpTransport } from "../../core/client/transport/open_transport.ts";
import type { HttpTransport } from "../../core/client/transport/transport.ts";
import {
  type Answer,
  asAsked,
  type Call,
  type Fault,
  isSelected,
  sendEvent,
  sendJson,
  sendStatus,
  sendTooLarge,
  socketAnswer,
  stateOf,
  Widget,
} from "./fake_watch_call.ts";

/** Discovery document of a {@linkcode FakeWatchServer}. */
const DISCOVERY = {
  kind: "APIResourceList",
  groupVersion: "example.dev/v1",
  resources: [{
    name: Widget.plural,
    kind: Widget.kind,
    namespaced: true,
    verbs: ["get", "list", "watch"],
  }],
};

interface Change {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly version: number;
  readonly object: Widget;
  /** Previous state, for the deletion events of watches with selectors. */
  readonly before: Widget | undefined;
}

interface OpenWatch {
  readonly call: Call;
  sent: number;
}

/**
 * API server of one kind over real sockets with a history of versions. The next
 * calls of a verb get the faults of a script; later calls are served.
 */
export class FakeWatchServer {
  /** Every call, in order. */
  readonly calls: Call[] = [];
  readonly #server: Server;
  readonly #sockets: Set<Socket> = new Set();
  readonly #script: { readonly verb: Call["verb"]; readonly fault: Fault }[] =
    [];
  readonly #watches: Set<OpenWatch> = new Set();
  readonly #objects: Map<string, Widget> = new Map();
  readonly #transports: HttpTransport[] = [];
  #history: Change[] = [];
  #version = 100;
  /** Changes up to this version are forgotten. */
  #compacted = 0;
  #uids = 0;
  /** Whether it knows `sendInitialEvents`, refuses it, or ignores it. */
  watchList: "yes" | "refused" | "ignored" = "yes";
  /** Maximum number of objects in a page, whatever the request says. */
  maxPage: number = Infinity;

  private constructor(server: Server) {
    this.#server = server;
    server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
      socket.on("error", () => {});
    });
    server.on("request", (request, response) => {
      response.on("error", () => {});
      this.receive(
        request.url ?? "/",
        request.headers.accept ?? "",
        socketAnswer(response),
      );
    });
  }

  static async start(): Promise<FakeWatchServer> {
    const server = createServer();
    const fake = new FakeWatchServer(server);
    await new Promise<void>((resolve) =>
      server.listen(0, "127.0.0.1", resolve)
    );
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** How many connections are open. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** How many watches are open. */
  get watches(): number {
    return this.#watches.size;
  }

  /** The newest version. */
  get version(): string {
    return String(this.#version);
  }

  /** All objects. */
  get objects(): Iterable<Widget> {
    return this.#objects.values();
  }

  /** The object of a key. */
  get(key: string): Widget | undefined {
    return this.#objects.get(key);
  }

  /** The version of each object, by key. */
  get state(): Record<string, string | undefined> {
    return stateOf(this.#objects.values());
  }

  /** A client of it; `stop` closes it. */
  async client(): Promise<Client> {
    const transport = await openHttpTransport({ server: this.url });
    this.#transports.push(transport);
    return new Client({ transport });
  }

  /** Closes everything. */
  async stop(): Promise<void> {
    for (const transport of this.#transports) await transport.close();
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Creates or changes an object and sends the event to the watches. */
  put(
    key: string,
    part: {
      readonly size?: number;
      readonly labels?: Record<string, string>;
      readonly padding?: number;
      readonly uid?: string;
    } = {},
  ): Widget {
    const before = this.#objects.get(key);
    const [namespace = "", name = ""] = key.split("/");
    const object: Widget = {
      apiVersion: "example.dev/v1",
      kind: "Widget",
      metadata: {
        name,
        namespace,
        uid: before?.metadata.uid ?? part.uid ?? uuidOf(++this.#uids),
        resourceVersion: String(++this.#version),
        generation: (before?.metadata.generation ?? 0) + 1,
        labels: part.labels ?? before?.metadata.labels ?? {},
        ...(part.padding
          ? { annotations: { padding: "x".repeat(part.padding) } }
          : {}),
      },
      spec: { size: part.size ?? (before?.spec.size ?? 0) + 1 },
    };
    this.#objects.set(key, object);
    this.#record(before ? "MODIFIED" : "ADDED", object, before);
    return object;
  }

  /** Deletes an object and sends the event. @returns Its last state. */
  delete(key: string): Widget | undefined {
    const before = this.#objects.get(key);
    if (before === undefined) return undefined;
    this.#objects.delete(key);
    const metadata = {
      ...before.metadata,
      resourceVersion: String(++this.#version),
    };
    this.#record("DELETED", { ...before, metadata }, before);
    return before;
  }

  /** Forgets the history: older versions are answered with 410. */
  compact(): void {
    this.#compacted = this.#version;
    this.#history = [];
  }

  /** Loses everything and counts from the start again. */
  loseData(): void {
    this.#objects.clear();
    this.#history = [];
    this.#version = 1;
    this.#compacted = 0;
  }

  /**
   * Takes a backup of the objects and the version.
   *
   * @returns Function that puts it back: changes since then are lost, and their
   * versions and generations are given out again.
   */
  backUp(): () => void {
    const objects = [...this.#objects];
    const version = this.#version;
    return () => {
      this.loseData();
      for (const [key, object] of objects) this.#objects.set(key, object);
      this.#version = version;
      this.#compacted = version;
    };
  }

  /** Lets the next calls of a verb meet these faults. */
  script(verb: Call["verb"], ...faults: readonly Fault[]): void {
    this.#script.push(...faults.map((fault) => ({ verb, fault })));
  }

  /** Sends a bookmark to all watches. */
  bookmark(): void {
    for (const watch of this.#watches) this.#sendBookmark(watch);
  }

  /** Sends any bytes to all watches. */
  send(bytes: string | Uint8Array): void {
    for (const { call } of this.#watches) call.response.write(bytes);
  }

  /** Ends all watches in order, or by a reset of their connections. */
  endWatches(how: "clean" | "reset" = "clean"): void {
    for (const { call } of this.#watches) {
      if (how === "clean") call.response.end();
      else call.response.reset();
    }
    this.#watches.clear();
  }

  #record(
    type: Change["type"],
    object: Widget,
    before: Widget | undefined,
  ): void {
    const change = { type, version: this.#version, object, before };
    this.#history.push(change);
    for (const watch of this.#watches) this.#sendChange(watch, change);
  }

  /** Takes a request. */
  receive(target: string, accept: string, response: Answer): void {
    const url = new URL(target, "http://fake");
    if (url.pathname === "/apis/example.dev/v1") {
      return sendJson(response, 200, DISCOVERY);
    }
    const path =
      /^\/apis\/example\.dev\/v1\/(?:namespaces\/([^/]+)\/)?widgets(?:\/([^/]+))?$/
        .exec(url.pathname);
    if (path === null) return sendStatus(response, 404, "NotFound");
    const verb = path[2] !== undefined
      ? "get"
      : url.searchParams.get("watch") === "true"
      ? "watch"
      : "list";
    const serve = {
      get: () => this.#get(call),
      list: () => this.#list(call),
      watch: () => this.#watch(call),
    };
    const call: Call = {
      verb,
      namespace: path[1],
      name: path[2],
      query: url.searchParams,
      accept,
      response,
      serve: serve[verb],
    };
    this.calls.push(call);
    const index = this.#script.findIndex((entry) => entry.verb === verb);
    const [scripted] = index < 0 ? [] : this.#script.splice(index, 1);
    if (scripted === undefined) call.serve();
    else scripted.fault(call);
  }

  #get({ namespace, name, response, accept }: Call): void {
    const object = this.#objects.get(`${namespace}/${name}`);
    if (object === undefined) sendStatus(response, 404, "NotFound");
    else sendJson(response, 200, asAsked(object, accept));
  }

  #list(call: Call): void {
    const { query, response } = call;
    const [version = this.version, offset = "0"] =
      query.get("continue")?.split(":") ?? [];
    if (Number(version) < this.#compacted) {
      return sendStatus(response, 410, "Expired");
    }
    if (Number(query.get("resourceVersion") ?? 0) > this.#version) {
      return sendTooLarge(response);
    }
    const all = this.#selected(call, Number(version));
    const limit = Math.min(
      Number(query.get("limit") ?? Infinity),
      this.maxPage,
    );
    const end = Number(offset) + limit;
    sendJson(response, 200, {
      apiVersion: "example.dev/v1",
      kind: "WidgetList",
      metadata: {
        resourceVersion: version,
        ...(end < all.length ? { continue: `${version}:${end}` } : {}),
      },
      items: all.slice(Number(offset), end),
    });
  }

  /** The objects of a call as they were at a version. */
  #selected(call: Call, version: number): Widget[] {
    const objects = new Map(this.#objects);
    for (const change of this.#history.toReversed()) {
      if (change.version <= version) break;
      const { namespace, name } = change.object.metadata;
      const key = `${namespace}/${name}`;
      if (change.before === undefined) objects.delete(key);
      else objects.set(key, change.before);
    }
    // In an order of their own, so that pages fit together whatever goes between.
    return [...objects].sort(([a], [b]) => a < b ? -1 : 1)
      .map(([, object]) => object)
      .filter((object) => isSelected(call, object));
  }

  #watch(call: Call): void {
    const { query, response } = call;
    const from = Number(query.get("resourceVersion") ?? 0);
    const initial = query.get("sendInitialEvents") === "true";
    if (initial && this.watchList === "refused") {
      return sendStatus(response, 422, "Invalid");
    }
    if (from > this.#version) return sendTooLarge(response);
    if (!initial && from > 0 && from < this.#compacted) {
      return sendStatus(response, 410, "Expired");
    }
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    const watch: OpenWatch = { call, sent: from };
    this.#watches.add(watch);
    response.onClose(() => this.#watches.delete(watch));
    if (initial || from === 0) {
      this.#sendState(watch);
      if (initial && this.watchList === "yes") {
        this.#sendBookmark(watch, { "k8s.io/initial-events-end": "true" });
      }
    } else {
      for (const change of this.#history) this.#sendChange(watch, change);
    }
  }

  #sendState(watch: OpenWatch): void {
    for (const object of this.#selected(watch.call, this.#version)) {
      sendEvent(watch.call, "ADDED", object);
    }
    watch.sent = this.#version;
  }

  #sendBookmark(watch: OpenWatch, annotations?: Record<string, string>): void {
    sendEvent(watch.call, "BOOKMARK", {
      apiVersion: "example.dev/v1",
      kind: "Widget",
      metadata: {
        resourceVersion: this.version,
        creationTimestamp: null,
        ...(annotations ? { annotations } : {}),
      },
    });
  }

  #sendChange(watch: OpenWatch, change: Change): void {
    const { call } = watch;
    if (change.version <= watch.sent) return;
    watch.sent = change.version;
    const { before, object } = change;
    const was = before !== undefined && isSelected(call, before);
    const is = change.type !== "DELETED" && isSelected(call, object);
    if (was && is) sendEvent(call, "MODIFIED", object);
    else if (is) sendEvent(call, "ADDED", object);
    else if (was) sendEvent(call, "DELETED", object);
  }
}

/** UUID of a number, as a server gives to objects. */
function uuidOf(number: number): string {
  return `5eed0000-0000-4000-a000-${number.toString(16).padStart(12, "0")}`;
}
