import { immediate } from "../callback.ts";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { closeServer, listenOn, nodeHttp, serverLimits } from "../node_http.ts";
import { host } from "../client/host.ts";
import { type Clock, loadModule } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { MetricsServerSettings, ProbeSettings } from "./probe_options.ts";
import type { RequestAccessDeps } from "./request_access.ts";
import type { SecureServer } from "./secure_server.ts";

export interface ProbeContent {
  /** Clock that measures profiles. */
  readonly clock: Clock;
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

/** Pattern of addresses on the loopback interface, also of IPv4 in IPv6. */
const LOOPBACK = /^(?:::ffff:)?127\.|^::1$/;

/** Pattern of the paths of profiles. */
const PROFILE_PATH = /^\/debug\/profile\/(\w+)(?:\?|$)/;

/** Base URL to parse paths with; the host does not matter. */
const BASE = "http://localhost";

/** Time limit for receiving a request, in milliseconds. */
const REQUEST_TIMEOUT_MS = 5_000;
/** Time of a profile by default, and at most, in seconds. */
const PROFILE_SECONDS = 10;
const MAX_PROFILE_SECONDS = 60;

/** HTTP server for `/healthz`, `/readyz` and `/metrics`, and HTTPS for the last. */
export class ProbeServer {
  readonly #content: ProbeContent;
  #debug = false;
  #isSecure = false;
  #isProfiling = false;
  #live: () => boolean = () => true;
  #server: Server | undefined;
  #secure: SecureServer | undefined;

  /** Creates a server that does not listen yet. */
  constructor(content: ProbeContent) {
    this.#content = content;
  }

  /** Port that the server listens on; undefined while it does not. */
  get port(): number | undefined {
    return (this.#server?.address() as AddressInfo | null | undefined)?.port;
  }

  /** Port of the metrics; that of the probes unless they are secure. */
  get metricsPort(): number | undefined {
    return this.#isSecure ? this.#secure?.port : this.port;
  }

  /**
   * Starts to listen.
   *
   * @throws {Error} If the port is in use.
   */
  async start(options: ProbeSettings): Promise<void> {
    const { port, host, debug, live, metrics } = options;
    this.#debug = debug;
    this.#isSecure = metrics.secure;
    if (live !== undefined) this.#live = live;
    // Probes are small and quick: a slow client only occupies a socket. A limit of
    // connections would let a crowd of them have the kubelet's probes fail.
    const limits = serverLimits(REQUEST_TIMEOUT_MS);
    const server = nodeHttp().createServer(
      limits,
      (request, response) => this.#serve(request, response, false),
    );
    await listenOn(server, { port, host }, `serve probes on ${host}:${port}`);
    this.#server = server;
  }

  /**
   * Starts to listen for those who are let in, if the settings say so.
   *
   * @throws {Error} If the port is in use, or the certificate cannot be read.
   */
  async startSecure(
    settings: MetricsServerSettings,
    deps: RequestAccessDeps,
  ): Promise<void> {
    if (!settings.secure) return;
    const { SecureServer } = await loadModule(import("./secure_server.ts"));
    const server = new SecureServer({
      ...deps,
      settings,
      handle: (request, response) => this.#serve(request, response, true),
    });
    await server.start();
    this.#secure = server;
  }

  /** Stops listening and closes all connections. */
  async stop(): Promise<void> {
    const server = this.#server;
    const secure = this.#secure;
    this.#server = this.#secure = undefined;
    await secure?.stop();
    if (server !== undefined) await closeServer(server);
  }

  #serve(
    request: IncomingMessage,
    response: ServerResponse,
    isKnown: boolean,
  ): void {
    // An error that is thrown here would end the process.
    const failed = (error: unknown) => {
      this.#content.failed(error);
      respond(response, inText(500, "Internal error"));
    };
    try {
      const url = request.url ?? "/";
      const subject = this.#debug && request.method === "GET" &&
        PROFILE_PATH.exec(url)?.[1];
      if (!subject) return respond(response, this.#answer(request, isKnown));
      this.#profile(subject, { request, response, isKnown }).then(
        (answer) => respond(response, answer),
        failed,
      );
    } catch (error) {
      failed(error);
    }
  }

  /** Records a profile for someone on the same machine, or who is known. */
  async #profile(
    subject: string,
    { request, response, isKnown }: {
      readonly request: IncomingMessage;
      readonly response: ServerResponse;
      readonly isKnown: boolean;
    },
  ): Promise<Answer> {
    const { headers, socket, url = "/" } = request;
    const isNear = LOOPBACK.test(socket.remoteAddress ?? "") &&
      LOCAL_HOST.test(headers.host ?? "");
    if (!isKnown && !isNear) {
      return inText(
        403,
        "Cannot serve this path: profiles are for the loopback interface and for secure metrics only",
      );
    }
    const { PROFILE_SUBJECTS, ProfileError, recordProfile } = await loadModule(
      import("./profile.ts"),
    );
    const known = PROFILE_SUBJECTS.find((one) => one === subject);
    if (known === undefined) {
      return inText(
        404,
        `Cannot serve this path: it must be one of ${
          PROFILE_SUBJECTS.map((one) => `/debug/profile/${one}`).join(", ")
        }`,
      );
    }
    const seconds = Number(
      URL.parse(url, BASE)?.searchParams.get("seconds") ?? PROFILE_SECONDS,
    );
    if (!(seconds > 0 && seconds <= MAX_PROFILE_SECONDS)) {
      return inText(
        400,
        `Cannot record a profile: "seconds" must be above 0, and at most ${MAX_PROFILE_SECONDS}`,
      );
    }
    if (this.#isProfiling) {
      return inText(409, "Cannot record a profile: another is in progress");
    }
    this.#isProfiling = true;
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    try {
      const profile = await recordProfile(known, seconds * 1_000, {
        clock: this.#content.clock,
        signal: gone.signal,
      });
      const type = "application/json";
      return { status: 200, type, body: JSON.stringify(profile) };
    } catch (error) {
      if (error instanceof ProfileError) return inText(501, error.message);
      if (gone.signal.aborted) return inText(499, "The client is gone");
      throw error;
    } finally {
      this.#isProfiling = false;
    }
  }

  /**
   * Answers a request.
   *
   * @param isKnown Whether the API server knows who sent it, and lets them in.
   */
  #answer(
    { headers, method, url = "/" }: IncomingMessage,
    isKnown: boolean,
  ): Answer {
    if (!URL.canParse(url, BASE)) {
      return inText(400, "Cannot serve this target: it must be a path");
    }
    if (method !== "GET" && method !== "HEAD") {
      return inText(405, "Cannot serve this method: it must be GET");
    }
    const { pathname, searchParams } = new URL(url, BASE);
    const isLocal = isKnown || LOCAL_HOST.test(headers.host ?? "");
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
        if (this.#isSecure && !isKnown) {
          return inText(
            404,
            "Cannot serve this path: metrics have a port of their own, with HTTPS",
          );
        }
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
    const known = ["/healthz", "/livez", "/readyz"];
    if (isKnown || !this.#isSecure) known.push("/metrics");
    if (this.#debug) {
      known.push("/debug/why", "/debug/state", "/debug/profile/cpu");
    }
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
  if (response.destroyed) return;
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
  const isOther = await onFreePort(
    settings.port,
    (port) => server.start({ ...settings, port }),
  );
  if (!isOther) return;
  log.warn("The port of the probes is in use: they are served on another", {
    inUse: settings.port,
    url: `http://127.0.0.1:${server.port}`,
  });
}

/**
 * Serves the metrics by HTTPS, if the settings say so; in development on another
 * port if theirs is in use.
 *
 * @throws {Error} If they cannot be served.
 */
export async function serveSecureMetrics(
  server: ProbeServer,
  settings: MetricsServerSettings,
  deps: RequestAccessDeps,
): Promise<void> {
  const isOther = await onFreePort(
    settings.port,
    (port) => server.startSecure({ ...settings, port }, deps),
  );
  if (!isOther) return;
  deps.log.warn(
    "The port of the metrics is in use: they are served on another",
    {
      inUse: settings.port,
      url: `https://127.0.0.1:${server.metricsPort}`,
    },
  );
}

/** Starts on a port; on another in development, where another program may have it. */
async function onFreePort(
  port: number,
  start: (port: number) => Promise<void>,
): Promise<boolean> {
  try {
    await start(port);
    return false;
  } catch (error) {
    const { code } = Object((error as Error).cause);
    if (host().operators === undefined || code !== "EADDRINUSE") throw error;
    await start(0);
    return true;
  }
}
