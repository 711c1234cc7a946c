import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { OptionTable, Settings } from "../api/options.ts";

/** Where the probes are served. */
export interface ProbeOptions {
  /** The port; 0 for any that is free. */
  readonly port: number;
  /**
   * The address to listen on.
   *
   * @default {"0.0.0.0"}
   */
  readonly host?: string | undefined;
  /**
   * Whether `/debug/why?object=NAMESPACE/NAME` tells the last runs of an object,
   * for `coracle why`. Error messages of reconcilers are among what it tells.
   *
   * @default {false}
   */
  readonly debug?: boolean | undefined;
  /**
   * Whether the process should live on, as far as you can tell: `/healthz` then
   * answers 503, and the kubelet starts the container anew. Broken connections
   * are no reason: they heal by themselves.
   *
   * @default {always}
   */
  readonly live?: (() => boolean) | undefined;
}

/** Table of {@linkcode ProbeOptions}. */
export const PROBE_OPTIONS: OptionTable<ProbeOptions, "live"> = {
  port: "port",
  host: { type: "name", default: "0.0.0.0" },
  debug: { type: "boolean", default: false },
  live: "function?",
};

/** Options of the probes with defaults. */
export type ProbeSettings = Settings<ProbeOptions, "live">;

/** An answer to a probe. */
export interface ProbeAnswer {
  /** Whether all is well: 200, or 503. */
  readonly ok: boolean;
  /** What there is to say, as JSON. */
  readonly body: unknown;
}

/** What the probes tell. */
export interface ProbeContent {
  /** What `/healthz` says beside its status. */
  state(): unknown;
  /** Whether it does its work. */
  ready(): ProbeAnswer;
  /** Metrics in the text format of Prometheus. */
  metrics(): string;
  /** Why an object ran, and will run. */
  why(object: string): ProbeAnswer;
}

/** What paths are seen from; any host would do. */
const BASE = "http://localhost";

/** Serves `/healthz`, `/readyz` and `/metrics` over plain HTTP. */
export class ProbeServer {
  readonly #content: ProbeContent;
  #debug = false;
  #live: () => boolean = () => true;
  #server: Server | undefined;

  /** @param content What it tells. */
  constructor(content: ProbeContent) {
    this.#content = content;
  }

  /** The port that it listens on; undefined when it does not. */
  get port(): number | undefined {
    return (this.#server?.address() as AddressInfo | null | undefined)?.port;
  }

  /**
   * Listens.
   *
   * @throws {RangeError} If the port is none.
   * @throws {Error} If it is taken.
   */
  async start(options: ProbeSettings): Promise<void> {
    const { port, host, debug, live } = options;
    this.#debug = debug;
    if (live !== undefined) this.#live = live;
    if (!Number.isInteger(port) || port < 0 || port > 65_535) {
      throw new RangeError(
        `Cannot serve probes: "probes.port" must be from 0 to 65535: received ${port}`,
      );
    }
    const { createServer } = await import("node:http");
    const server = createServer((request, response) => {
      try {
        this.#answer(request, response);
      } catch {
        // Thrown from here it would end the process, whoever asked.
        respond(response, 500, "text/plain", "Cannot tell\n");
      }
    });
    // A probe is small and quick: whoever is slow only holds a socket.
    server.headersTimeout = server.requestTimeout = 5_000;
    await new Promise<void>((resolve, reject) => {
      // It stays: an error of a server that nobody listens for ends the process.
      server.on("error", (error) =>
        reject(
          new Error(
            `Cannot serve probes on ${host}:${port}: received ${error.message}`,
            { cause: error },
          ),
        ));
      server.listen({ port, host }, resolve);
    });
    this.#server = server;
  }

  /** Listens no more and closes all connections. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { url: target = "/" } = request;
    if (!URL.canParse(target, BASE)) {
      respond(response, 400, "text/plain", "Only paths are served\n");
      return;
    }
    const url = new URL(target, BASE);
    if (request.method !== "GET" && request.method !== "HEAD") {
      respond(response, 405, "text/plain", "Only GET is served\n");
      return;
    }
    if (url.pathname === "/metrics") {
      const type = "text/plain; version=0.0.4; charset=utf-8";
      respond(response, 200, type, this.#content.metrics());
      return;
    }
    const answer = this.#find(url);
    if (answer === undefined) {
      const known = "/healthz, /readyz and /metrics";
      respond(response, 404, "text/plain", `There are ${known}\n`);
      return;
    }
    respond(
      response,
      answer.ok ? 200 : 503,
      "application/json",
      `${JSON.stringify(answer.body, plain, 2)}\n`,
    );
  }

  #find(url: URL): ProbeAnswer | undefined {
    switch (url.pathname) {
      case "/healthz":
      case "/livez":
        return { ok: this.#live(), body: this.#content.state() };
      case "/readyz":
        return this.#content.ready();
      case "/debug/why":
        return this.#debug
          ? this.#content.why(url.searchParams.get("object") ?? "")
          : undefined;
      default:
        return undefined;
    }
  }
}

function respond(
  response: ServerResponse,
  status: number,
  type: string,
  body: string,
): void {
  response.writeHead(status, {
    "content-type": type,
    "cache-control": "no-store",
  });
  response.end(body);
}

function plain(_name: string, value: unknown): unknown {
  return value instanceof Map ? Object.fromEntries(value) : value;
}
