import { immediate } from "../callback.ts";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { closeServer, listenOn, nodeHttp, serverLimits } from "../node_http.ts";
import type { OptionTable, Settings } from "../api/options.ts";
import { host } from "../client/host.ts";
import type { Logger } from "../logger.ts";

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
   * object, for `coracle why`, and `/debug/state` the controllers and the objects
   * that ran last, for `coracle ui`. The responses contain error messages of
   * reconcilers and conditions of objects; that of `/readyz` then contains error
   * messages of watches, sources and the Lease, beside counts and names.
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

export const PROBE_OPTIONS: OptionTable<ProbeOptions, "live"> = {
  port: "port",
  host: { type: "name", default: "0.0.0.0" },
  debug: { type: "boolean", default: false },
  live: "function?",
};

/** Options of the probes with defaults. */
export type ProbeSettings = Settings<ProbeOptions, "live">;

export interface ProbeContent {
  /** State of the operator, for `/healthz`. */
  state(): string;
  /**
   * Health of the operator, for `/readyz`.
   *
   * @param withTexts Whether it includes texts of errors, not only counts and
   * names: they may quote addresses, and messages of external systems.
   */
  health(withTexts: boolean): { readonly ready: boolean };
  /** Metrics in the text format of Prometheus. */
  metrics(): string;
  /** Run history of an object in each controller that knows it. */
  why(object: string): readonly unknown[];
  /** State of the operator, for `coracle ui`. */
  inspect(): object;
  /** Reports a check that has thrown. */
  failed(error: unknown): void;
}

/**
 * Pattern of Host headers that `/debug` accepts: addresses, and names that only
 * resolve on a machine or in a cluster. A page whose own name resolves to this
 * server (DNS rebinding) sends a different name.
 */
const LOCAL_HOST =
  /^(?:\[[\da-f:.]+\]|\d+(?:\.\d+){3}|[^.:]+|.+\.svc|.+\.(?:local|internal|localhost))(?::\d+)?$/i;

/** Base URL to parse paths with; the host does not matter. */
const BASE = "http://localhost";

/** Time limit for receiving a request, in milliseconds. */
const REQUEST_TIMEOUT_MS = 5_000;

/** HTTP server for `/healthz`, `/readyz` and `/metrics`. */
export class ProbeServer {
  readonly #content: ProbeContent;
  #debug = false;
  #live: () => boolean = () => true;
  #server: Server | undefined;

  /** Creates a server that does not listen yet. */
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
    // Probes are small and quick: a slow client only occupies a socket. A limit of
    // connections would let a crowd of them have the kubelet's probes fail.
    const limits = serverLimits(REQUEST_TIMEOUT_MS);
    const server = nodeHttp().createServer(limits, (request, response) => {
      try {
        respond(response, this.#answer(request));
      } catch (error) {
        // An error that is thrown here would end the process.
        this.#content.failed(error);
        respond(response, inText(500, "Internal error"));
      }
    });
    await listenOn(server, { port, host }, `serve probes on ${host}:${port}`);
    this.#server = server;
  }

  /** Stops listening and closes all connections. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server !== undefined) await closeServer(server);
  }

  #answer({ headers, method, url = "/" }: IncomingMessage): Answer {
    if (!URL.canParse(url, BASE)) {
      return inText(400, "Cannot serve this target: it must be a path");
    }
    if (method !== "GET" && method !== "HEAD") {
      return inText(405, "Cannot serve this method: it must be GET");
    }
    const { pathname, searchParams } = new URL(url, BASE);
    const isLocal = LOCAL_HOST.test(headers.host ?? "");
    switch (pathname) {
      case "/healthz":
      case "/livez":
        return inJson(immediate(this.#live(), "live()"), {
          state: this.#content.state(),
        });
      case "/readyz": {
        const health = this.#content.health(this.#debug && isLocal);
        return inJson(health.ready, health);
      }
      case "/metrics": {
        const type = "text/plain; version=0.0.4; charset=utf-8";
        return { status: 200, type, body: this.#content.metrics() };
      }
    }
    if (this.#debug && pathname.startsWith("/debug/") && !isLocal) {
      return inText(
        421,
        "Cannot serve this host: it must be an address or a name of the cluster",
      );
    }
    if (this.#debug && pathname === "/debug/why") {
      const found = this.#content.why(searchParams.get("object") ?? "");
      return inJson(found.length > 0, found);
    }
    if (this.#debug && pathname === "/debug/state") {
      return inJson(true, this.#content.inspect());
    }
    const known = ["/healthz", "/livez", "/readyz", "/metrics"];
    if (this.#debug) known.push("/debug/why", "/debug/state");
    const paths = known.join(", ");
    return inText(404, `Cannot serve this path: it must be one of ${paths}`);
  }
}

/** Response of the server to a request. */
interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

function inText(status: number, line: string): Answer {
  return { status, type: "text/plain", body: `${line}\n` };
}

/** Response to a probe: status 200 if the probe succeeds, otherwise 503. */
function inJson(ok: boolean, value: unknown): Answer {
  const body = `${JSON.stringify(value, plain, 2)}\n`;
  return { status: ok ? 200 : 503, type: "application/json", body };
}

function respond(
  response: ServerResponse,
  { status, type, body }: Answer,
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

/**
 * Serves the probes; in development on another port if theirs is in use.
 *
 * @throws {Error} If they cannot be served.
 */
export async function serveProbes(
  server: ProbeServer,
  settings: ProbeSettings,
  log: Logger,
): Promise<void> {
  try {
    await server.start(settings);
  } catch (error) {
    // In development another program may have the port.
    const { code } = Object((error as Error).cause);
    if (host().operators === undefined || code !== "EADDRINUSE") throw error;
    await server.start({ ...settings, port: 0 });
    log.warn("The port of the probes is in use: they are served on another", {
      inUse: settings.port,
      url: `http://127.0.0.1:${server.port}`,
    });
  }
}
