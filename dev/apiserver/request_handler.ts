import { gzip } from "node:zlib";
import { promisify } from "node:util";
import { attributesOf } from "./access/attributes.ts";
import {
  impersonated,
  impersonates,
  ImpersonationError,
} from "./access/impersonation.ts";
import { issuerDocument } from "./access/issuer_documents.ts";
import type { ApiContext } from "./api_context.ts";
import { checkReads, discover } from "./discovery/discovery_routes.ts";
import type { OpenApiRoutes } from "./discovery/openapi_routes.ts";
import {
  isStream,
  jsonResponse,
  pageNotFound,
  type ResponseHeaders,
  type ServerRequest,
  type ServerResponse,
  textResponse,
} from "./http/exchange.ts";
import { healthResponse } from "./health.ts";
import { versionInfo } from "./kubernetes_release.ts";
import { ServerMetrics } from "./metrics.ts";
import { respondValue } from "./read/respond.ts";
import { failureMedia } from "./request/negotiation.ts";
import {
  readTarget,
  type RequestInfo,
  verbOf,
} from "./request/request_info.ts";
import { ANONYMOUS, isPrivileged, type User } from "./request/user.ts";
import { route } from "./router.ts";
import { badRequest, StatusError } from "./status.ts";
import { warningHeaders } from "./warning_headers.ts";
import { parseGoDuration } from "./cel/go_time.ts";
import { errorMessage } from "@coracle/operator/internal";

/** Pattern of the paths that every user may read. */
const HEALTH_PATHS = /^\/(?:healthz|livez|readyz)(?:\/.+)?$/;

/**
 * Minimum size in bytes of responses that are compressed, if the client accepts
 * that.
 */
const GZIP_THRESHOLD_BYTES = 128 * 1024;

/** Audit event of one request. */
export interface AuditEvent {
  /** HTTP method, such as `GET`. */
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /**
   * Verb, such as `list`; for paths without a resource, the method in lower
   * case.
   */
  readonly verb: string;
  /** API group; empty for the core group and for paths without a resource. */
  readonly group: string;
  /** Plural; empty for paths without a resource. */
  readonly resource: string;
  /** Subresource, such as `status`; empty for the object itself. */
  readonly subresource: string;
  /** Namespace; empty for requests across the cluster. */
  readonly namespace: string;
  /** Object name; empty for requests without one, such as lists. */
  readonly name: string;
  /** User name; `system:anonymous` without a token. */
  readonly user: string;
  /** `User-Agent` header; empty if absent. */
  readonly userAgent: string;
  /** HTTP status of the response. */
  readonly status: number;
  /** Annotations of admission plug-ins and policies, by key. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** Options of a {@linkcode RequestHandler}. */
export interface RequestHandlerOptions {
  readonly context: ApiContext;
  readonly openApi: OpenApiRoutes;
  /** Callback for every request whose response is ready. */
  readonly audit?: ((event: AuditEvent) => void) | undefined;
}

const compress = promisify(gzip);
const NOTHING = new Uint8Array();

/**
 * Request handler, independent of sockets: authenticates, authorizes and routes
 * requests.
 */
export class RequestHandler {
  readonly #context: ApiContext;
  readonly #openApi: OpenApiRoutes;
  readonly #metrics: ServerMetrics;
  readonly #audit: ((event: AuditEvent) => void) | undefined;

  constructor({ context, openApi, audit }: RequestHandlerOptions) {
    this.#context = context;
    this.#openApi = openApi;
    this.#metrics = new ServerMetrics(context.store, context.clock.wallTime());
    this.#audit = audit;
  }

  /**
   * Whether a request is authenticated and authorized, checked before its body
   * is read.
   *
   * @param head The request without its body.
   */
  admits(head: Omit<ServerRequest, "body">): boolean {
    const request = { ...head, body: NOTHING };
    const info = readTarget(head.target);
    if (info === undefined) return false;
    try {
      const user = this.#context.authenticator.authenticate(request);
      this.#authorize(this.#actingUser(request, user), request, info);
      return true;
    } catch {
      return false;
    }
  }

  /** Handles a request; never throws. */
  async handle(request: ServerRequest): Promise<ServerResponse> {
    const info = readTarget(request.target);
    if (info === undefined) return textResponse(400, "400 Bad Request");
    const started = this.#context.clock.now();
    this.#metrics.flight(request.method, 1);
    const warnings: string[] = [];
    const annotations: Record<string, string> = {};
    let user = ANONYMOUS;
    let response: ServerResponse;
    let flow: ResponseHeaders | undefined;
    try {
      const { method, target } = request;
      if (target.includes("timeout=")) checkTimeout(method, info);
      user = this.#context.authenticator.authenticate(request);
      user = this.#actingUser(request, user);
      flow = this.#context.flows.headers(user, verbOf(method, info), info);
      this.#authorize(user, request, info);
      response = await this.#answer({
        http: request,
        info,
        user,
        warnings,
        annotations,
      });
    } catch (error) {
      response = await this.#failure(error, request);
    }
    response = await finish(request, response, { warnings, flow });
    this.#metrics.flight(request.method, -1);
    this.#metrics.observe(verbOf(request.method, info), info, {
      status: response.status,
      duration: this.#context.clock.now() - started,
    });
    this.#audit?.(auditEvent(request, { info, user, response, annotations }));
    return response;
  }

  /** User of a request after impersonation. */
  #actingUser(request: ServerRequest, user: User): User {
    return impersonates(request)
      ? impersonated(request, user, this.#context.authorizer)
      : user;
  }

  /**
   * Checks that a user may make a request.
   *
   * @throws {StatusError} 403 if no rule allows it.
   */
  #authorize(user: User, { method }: ServerRequest, info: RequestInfo): void {
    if (isPrivileged(user) || HEALTH_PATHS.test(info.path)) return;
    this.#context.authorizer.check(user, attributesOf(method, info));
  }

  async #answer(request: {
    readonly http: ServerRequest;
    readonly info: RequestInfo;
    readonly user: User;
    readonly warnings: string[];
    readonly annotations: Record<string, string>;
  }): Promise<ServerResponse> {
    const { info, http } = request;
    const { path } = info;
    if (info.resource) return await route(this.#context, request);
    if (/^\/version\/?$/.test(path)) {
      checkReads(http);
      return jsonResponse(200, versionInfo(this.#context.release));
    }
    if (HEALTH_PATHS.test(path)) {
      return healthResponse(path, info.query);
    }
    if (path === "/metrics") {
      checkReads(http);
      return this.#metrics.respond(this.#context.flows.seats());
    }
    if (path === "/openapi" || path.startsWith("/openapi/")) {
      return await this.#openApi.respond(http, path);
    }
    if (/^\/(?:\.well-known|openid)\//.test(path)) {
      checkReads(http);
      return issuerDocument(this.#context.accountTokens, http, path) ??
        pageNotFound();
    }
    if (path === "/") return jsonResponse(200, { paths: ["/api", "/apis"] });
    return await discover(this.#context, http, path) ?? pageNotFound();
  }

  async #failure(
    error: unknown,
    request: ServerRequest,
  ): Promise<ServerResponse> {
    if (error instanceof ImpersonationError) {
      const path = JSON.stringify(request.target);
      const text = `Internal Server Error: ${path}: ${error.message}\n`;
      return textResponse(500, text);
    }
    if (error instanceof StatusError) {
      const { status, headers } = error;
      const media = failureMedia(request.headers.accept);
      const response = await respondValue(status.code, status, { media });
      return { ...response, headers: { ...response.headers, ...headers } };
    }
    this.#context.logger.error("Cannot answer a request", {
      method: request.method,
      path: request.target.split("?")[0],
      error,
    });
    const why = errorMessage(error);
    return jsonResponse(500, {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: `Internal error occurred: ${why}`,
      reason: "InternalError",
      details: { causes: [{ message: why }] },
      code: 500,
    });
  }
}

/** Subresources whose requests have no limit `timeout`. */
const LONG_SUBRESOURCES: ReadonlySet<string> = new Set([
  ...["attach", "exec", "log", "portforward", "proxy"],
]);

/**
 * Checks the `timeout` parameter, which limits all requests except watches.
 *
 * @throws {StatusError} 400 if it is not a duration in Go's syntax.
 */
function checkTimeout(method: string, info: RequestInfo): void {
  const text = info.query.get("timeout") ?? "";
  if (text === "" || verbOf(method, info) === "watch") return;
  if (LONG_SUBRESOURCES.has(info.resource?.subresource ?? "")) return;
  if (parseGoDuration(text) !== undefined) return;
  const [, unit] = /^[+-]?(?:\d+\.?\d*|\.\d+)([^\d.]*)/.exec(text) ?? [];
  const shown = JSON.stringify(text);
  throw badRequest(
    `invalid timeout specified in the request URL - time: ${
      unit === undefined || /^(?:[nuµμm]?s|m|h)$/.test(unit)
        ? `invalid duration ${shown}`
        : unit === ""
        ? `missing unit in duration ${shown}`
        : `unknown unit ${JSON.stringify(unit)} in duration ${shown}`
    }`,
  );
}

/** Adds warning headers and compression to a response. */
async function finish(
  request: ServerRequest,
  response: ServerResponse,
  { warnings, flow }: {
    readonly warnings: readonly string[];
    readonly flow: ResponseHeaders | undefined;
  },
): Promise<ServerResponse> {
  const headers: ResponseHeaders = {
    "cache-control": "no-cache, private",
    ...flow,
    ...response.headers,
    ...(warnings.length === 0 ? {} : { warning: warningHeaders(warnings) }),
  };
  const { body, status } = response;
  if (isStream(body)) return { ...response, headers };
  const bytes = await compressed(request, body);
  if (bytes === undefined) return { ...response, headers };
  return {
    status,
    headers: {
      ...headers,
      "content-encoding": "gzip",
      vary: "Accept-Encoding",
    },
    body: bytes,
  };
}

async function compressed(
  request: ServerRequest,
  body: Uint8Array | Iterable<Uint8Array>,
): Promise<Uint8Array | undefined> {
  const accepted = request.headers["accept-encoding"] ?? "";
  if (!/\bgzip\b/.test(accepted) || !(body instanceof Uint8Array)) {
    return undefined;
  }
  if (body.length < GZIP_THRESHOLD_BYTES) return undefined;
  return await compress(body, { level: 1 });
}

function auditEvent(
  { method, target, headers }: ServerRequest,
  { info, user, response, annotations }: {
    readonly info: RequestInfo;
    readonly user: User;
    readonly response: ServerResponse;
    readonly annotations: Readonly<Record<string, string>>;
  },
): AuditEvent {
  const { resource } = info;
  return {
    method,
    target,
    verb: verbOf(method, info),
    group: resource?.group ?? "",
    resource: resource?.plural ?? "",
    subresource: resource?.subresource ?? "",
    namespace: resource?.namespace ?? "",
    name: resource?.name ?? "",
    user: user.name,
    userAgent: headers["user-agent"] ?? "",
    status: response.status,
    annotations,
  };
}
