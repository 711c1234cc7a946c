import { Buffer } from "node:buffer";
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { ApiServer } from "@coracle/dev/apiserver";
import type { HttpRequest } from "@coracle/operator/client";

/** Requests that a fault can hit. */
export const OPERATIONS = [
  "list",
  "pages",
  "watchList",
  "watch",
  "write",
  "lease",
] as const;

export type Operation = typeof OPERATIONS[number];

/** Operation of a request for ConfigMaps or Leases; undefined for others. */
export function operationOf(
  method: string,
  target: string,
): Operation | undefined {
  const { pathname, searchParams } = new URL(target, "http://gate");
  if (/\/leases(\/|$)/.test(pathname)) {
    return method === "GET" ? undefined : "lease";
  }
  if (!/\/configmaps(\/|$)/.test(pathname)) return undefined;
  if (method !== "GET") return "write";
  if (/\/configmaps\/./.test(pathname)) return undefined;
  if (/^(true|1)$/.test(searchParams.get("watch") ?? "")) {
    return searchParams.get("sendInitialEvents") === "true"
      ? "watchList"
      : "watch";
  }
  return searchParams.has("continue") ? "pages" : "list";
}

/** Changes a chunk, which is an event of a watch; undefined resets. */
export type Alter = (
  chunk: Uint8Array,
  index: number,
) => Uint8Array | "reset" | "end";

/** Request that a fault hits, with what the fault may do to it. */
export interface Exchange {
  readonly operation: Operation;
  readonly method: string;
  readonly target: string;
  readonly authorization: string | undefined;
  readonly response: ServerResponse;
  /** Breaks the connection by a reset. */
  reset(): void;
  /** Answers with a Status. */
  refuse(
    code: number,
    reason: string,
    headers?: Readonly<Record<string, string>>,
  ): void;
  /** Passes the request to the server, and its answer back. */
  forward(
    options?: { readonly target?: string; readonly alter?: Alter },
  ): Promise<void>;
  /** Lets the server handle the request, and drops its answer. */
  handle(): Promise<void>;
}

export type Effect = (exchange: Exchange) => void | Promise<void>;

/**
 * HTTP server on loopback before an embedded API server: the next requests of an
 * operation meet a fault, the others are passed on.
 */
export class FaultGate {
  /** Number of requests by operation. */
  readonly counts: Record<Operation, number> = {
    list: 0,
    pages: 0,
    watchList: 0,
    watch: 0,
    write: 0,
    lease: 0,
  };
  /** Number of requests that met the fault. */
  hits = 0;
  readonly #server: Server;
  readonly #target: ApiServer;
  readonly #sockets: Set<Socket> = new Set();
  #fault:
    | { operation: Operation; effect: Effect; left: number; onHit: () => void }
    | undefined;
  #activity = 0;
  #busy = 0;
  /** Requests that a fault left without an answer. */
  #unanswered = 0;

  private constructor(target: ApiServer) {
    this.#target = target;
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
      socket.on("error", () => {});
    });
  }

  static async start(target: ApiServer): Promise<FaultGate> {
    const gate = new FaultGate(target);
    await new Promise<void>((resolve) =>
      gate.#server.listen(0, "127.0.0.1", resolve)
    );
    return gate;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Lets the next requests of an operation meet a fault. */
  arm(
    operation: Operation,
    effect: Effect,
    { times, onHit }: { readonly times: number; readonly onHit: () => void },
  ): void {
    this.#fault = { operation, effect, left: times, onHit };
  }

  /** Counts a request that met a fault before it came here. */
  count(operation: Operation): void {
    this.counts[operation]++;
    this.hits++;
  }

  /**
   * Resolves when no request and no event has passed for some turns, and only
   * requests that a fault leaves without an answer are open.
   *
   * @param open Number of requests that wait for an answer at the client.
   */
  async quiet(open: () => number): Promise<void> {
    let seen = this.#activity;
    for (let turns = 0; turns < 6; turns++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      const isQuiet = this.#busy === 0 && open() <= this.#unanswered;
      if (this.#activity === seen && isQuiet) continue;
      seen = this.#activity;
      turns = 0;
    }
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    this.#activity++;
    response.on("error", () => {});
    const { method = "GET", url: target = "/" } = request;
    const body: Uint8Array[] = [];
    for await (const chunk of request) body.push(chunk);
    const operation = operationOf(method, target);
    const send = (path: string, signal?: AbortSignal) =>
      this.#target.transport.send({
        method: method as HttpRequest["method"],
        path,
        headers: passed(request),
        body: body.length > 0 ? Buffer.concat(body) : undefined,
        signal,
      });
    const forward: Exchange["forward"] = async (options = {}) => {
      const { alter = (chunk) => chunk } = options;
      const end = new AbortController();
      response.on("close", () => end.abort());
      this.#busy++;
      const answer = await send(options.target ?? target, end.signal)
        .finally(() => this.#busy--);
      const { "content-length": _length, ...headers } = answer.headers;
      response.writeHead(answer.status, headers);
      response.flushHeaders();
      let index = 0;
      try {
        for await (const chunk of answer.body) {
          this.#activity++;
          const sent = alter(chunk, index++);
          if (sent === "end") break;
          if (sent === "reset") return reset();
          response.write(Buffer.from(sent));
          // A Bun server holds a chunk back until the next turn.
          await new Promise((resolve) => setImmediate(resolve));
        }
      } catch {
        if (!end.signal.aborted) return reset();
      }
      end.abort();
      response.end();
    };
    const reset = () => void response.socket?.resetAndDestroy();
    if (operation === undefined) return await forward();
    this.counts[operation]++;
    const fault = this.#fault;
    if (fault?.operation !== operation || fault.left === 0) {
      return await forward();
    }
    fault.left--;
    this.hits++;
    fault.onHit();
    await fault.effect({
      operation,
      method,
      target,
      authorization: request.headers.authorization,
      response,
      reset,
      refuse(code, reason, headers = {}) {
        response.writeHead(code, {
          "content-type": "application/json",
          ...headers,
        });
        response.end(JSON.stringify(statusOf(code, reason)));
      },
      forward,
      async handle() {
        for await (const _chunk of (await send(target)).body);
      },
    });
    if (response.headersSent || response.destroyed) return;
    this.#unanswered++;
    response.on("close", () => this.#unanswered--);
  }
}

/** Status of a refusal. */
export function statusOf(code: number, reason: string): object {
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: `injected ${reason}`,
    reason,
    code,
  };
}

/** Headers that matter to the API server. */
function passed({ headers }: IncomingMessage): Record<string, string> {
  const names = ["accept", "content-type"] as const;
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = headers[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
