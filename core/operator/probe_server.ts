import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { OptionTable, Settings } from "../api/options.ts";

/** Options of the server for probes and metrics. */
export interface ProbeOptions {
  /** Port to listen on; 0 for any free port. */
  readonly port: number;
  /**
   * Address to listen on.
   *
   * @default {"0.0.0.0"}
   */
  readonly host?: string | undefined;
  /**
   * Whether `/debug/why?object=NAMESPACE/NAME` returns the last runs of an
   * object, for `coracle why`. The response contains error messages of
   * reconcilers.
   *
   * @default {false}
   */
  readonly debug?: boolean | undefined;
  /**
   * Liveness check of the program: when it returns false, `/healthz` answers 503
   * and the kubelet restarts the container. Broken connections are not a reason
   * to return false, since they recover by themselves. Defaults to true.
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

/** Result of a probe. */
export interface ProbeAnswer {
  /** Whether the probe succeeds: status 200, otherwise 503. */
  readonly ok: boolean;
  /** Body of the response, written as JSON. */
  readonly body: unknown;
}

/** Content of the probes. */
export interface ProbeContent {
  /** Returns the body of `/healthz`. */
  state(): unknown;
  /** Returns the result of `/readyz`. */
  ready(): ProbeAnswer;
  /** Returns the metrics in the text format of Prometheus. */
  metrics(): string;
  /** Returns the run history of an object. */
  why(object: string): ProbeAnswer;
}

/** Base to parse paths with; the host does not matter. */
const BASE = "http://localhost";

/** HTTP server for `/healthz`, `/readyz` and `/metrics`. */
export class ProbeServer {
  readonly #content: ProbeContent;
  #debug = false;
  #live: () => boolean = () => true;
  #server: Server | undefined;

  /** @param content The content of the probes. */
  constructor(content: ProbeContent) {
    this.#content = content;
  }

  /** Port that the server listens on; undefined while it does not. */
  get port(): number | undefined {
    return (this.#server?.address() as AddressInfo | null | undefined)?.port;
  }

  /**
   * Starts to listen.
   *
   * @throws {Error} If the port is in use.
   */
  async start(options: ProbeSettings): Promise<void> {
    const { port, host, debug, live } = options;
    this.#debug = debug;
    if (live !== undefined) this.#live = live;
    const { createServer } = await import("node:http");
    const server = createServer((request, response) => {
      try {
        this.#answer(request, response);
      } catch {
        // An error that is thrown here would end the process.
        respond(response, 500, "text/plain", "Internal error\n");
      }
    });
    // Probes are small and quick: a slow client only occupies a socket.
    server.headersTimeout = server.requestTimeout = 5_000;
    await new Promise<void>((resolve, reject) => {
      // The listener stays: an unhandled error event would end the process.
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

  /** Stops listening and closes all connections. */
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
      respond(
        response,
        400,
        "text/plain",
        "Cannot serve this target: it must be a path\n",
      );
      return;
    }
    const url = new URL(target, BASE);
    if (request.method !== "GET" && request.method !== "HEAD") {
      respond(
        response,
        405,
        "text/plain",
        "Cannot serve this method: it must be GET\n",
      );
      return;
    }
    if (url.pathname === "/metrics") {
      const type = "text/plain; version=0.0.4; charset=utf-8";
      respond(response, 200, type, this.#content.metrics());
      return;
    }
    const answer = this.#find(url);
    if (answer === undefined) {
      const known = ["/healthz", "/livez", "/readyz", "/metrics"];
      if (this.#debug) known.push("/debug/why");
      respond(
        response,
        404,
        "text/plain",
        `Cannot serve this path: it must be one of ${known.join(", ")}\n`,
      );
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
