import { gzip } from "node:zlib";
import { promisify } from "node:util";
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
import { respondValue } from "./read/respond.ts";
import { failureMedia } from "./request/negotiation.ts";
import { readTarget, type RequestInfo } from "./request/request_info.ts";
import { ANONYMOUS, bearerToken, type User } from "./request/user.ts";
import { route, verbOf } from "./router.ts";
import { badRequest, forbidden, StatusError } from "./status.ts";

/** Kubernetes version whose behaviour the server reproduces. */
const VERSION = {
  major: "1",
  minor: "32",
  gitVersion: "v1.32.13",
  gitCommit: "0000000000000000000000000000000000000000",
  gitTreeState: "clean",
  buildDate: "1970-01-01T00:00:00Z",
  goVersion: "go1.23",
  compiler: "gc",
  platform: "linux/amd64",
};

/** Paths that anonymous users may read. */
const PUBLIC_PATHS = /^\/(?:healthz|livez|readyz)(?:\/.+)?$|^\/version\/?$/;

/**
 * Minimum size in bytes of answers that are compressed, if the client accepts
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
  /** HTTP status of the answer. */
  readonly status: number;
  /** Annotations of admission plug-ins and policies, by key. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** Options of a {@linkcode RequestHandler}. */
export interface RequestHandlerOptions {
  readonly context: ApiContext;
  readonly openApi: OpenApiRoutes;
  /** Called for every request when its answer is ready. */
  readonly audit?: ((event: AuditEvent) => void) | undefined;
}

const compress = promisify(gzip);

/**
 * Request handler, independent of sockets: authenticates, authorizes, routes
 * and answers.
 */
export class RequestHandler {
  readonly #context: ApiContext;
  readonly #openApi: OpenApiRoutes;
  readonly #audit: ((event: AuditEvent) => void) | undefined;

  constructor({ context, openApi, audit }: RequestHandlerOptions) {
    this.#context = context;
    this.#openApi = openApi;
    this.#audit = audit;
  }

  /** Handles a request; never throws. */
  async handle(request: ServerRequest): Promise<ServerResponse> {
    const info = readTarget(request.target);
    if (info === undefined) return textResponse(400, "400 Bad Request");
    const warnings: string[] = [];
    const annotations: Record<string, string> = {};
    let user = ANONYMOUS;
    let response: ServerResponse;
    try {
      user = this.#authenticate(request);
      authorize(user, request.method, info);
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
    response = await finish(request, response, warnings);
    this.#audit?.(auditEvent(request, { info, user, response, annotations }));
    return response;
  }

  #authenticate({ headers }: ServerRequest): User {
    const { authorization } = headers;
    if (authorization === undefined) return ANONYMOUS;
    const token = bearerToken(authorization);
    const user = token && this.#context.authenticate(token);
    if (user) return user;
    throw new StatusError({
      code: 401,
      reason: "Unauthorized",
      message: "Unauthorized",
    });
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
    if (http.target.includes("timeout=")) checkTimeout(http.method, info);
    if (info.resource) return await route(this.#context, request);
    if (/^\/version\/?$/.test(path)) {
      checkReads(http);
      return jsonResponse(200, VERSION);
    }
    if (PUBLIC_PATHS.test(path)) {
      return healthResponse(path, info.query);
    }
    if (path === "/openapi" || path.startsWith("/openapi/")) {
      return await this.#openApi.respond(http, path);
    }
    if (path === "/") return jsonResponse(200, { paths: ["/api", "/apis"] });
    return await discover(this.#context, http, path) ?? pageNotFound();
  }

  async #failure(
    error: unknown,
    request: ServerRequest,
  ): Promise<ServerResponse> {
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
    const why = error instanceof Error ? error.message : String(error);
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

/**
 * Checks the `timeout` parameter, which limits all requests but watches.
 *
 * @throws {StatusError} 400 if it is no duration of Go.
 */
function checkTimeout(method: string, info: RequestInfo): void {
  const text = info.query.get("timeout") ?? "";
  if (text === "" || verbOf(method, info) === "watch") return;
  if (
    /^[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/.test(text)
  ) {
    return;
  }
  const [, unit] = /^[+-]?(?:\d+\.?\d*|\.\d+)([^\d.]*)/.exec(text) ?? [];
  const shown = JSON.stringify(text);
  throw badRequest(
    `invalid timeout specified in the request URL - time: ${
      unit === undefined
        ? `invalid duration ${shown}`
        : unit === ""
        ? `missing unit in duration ${shown}`
        : `unknown unit ${JSON.stringify(unit)} in duration ${shown}`
    }`,
  );
}

/**
 * Authorizes a request: the administrator has all rights, others may read
 * public paths.
 */
function authorize(user: User, method: string, info: RequestInfo): void {
  if (user.groups.includes("system:masters")) return;
  if (PUBLIC_PATHS.test(info.path)) return;
  const { resource } = info;
  const who = `User ${JSON.stringify(user.name)} cannot ${
    verbOf(method, info)
  }`;
  if (resource === undefined) {
    throw forbidden(
      { group: "", kind: "" },
      `${who} path ${JSON.stringify(info.path)}`,
    );
  }
  const { group, plural, name, namespace, subresource } = resource;
  const what = subresource ? `${plural}/${subresource}` : plural;
  throw forbidden(
    { group, kind: plural, name },
    `${who} resource ${JSON.stringify(what)} in API group ${
      JSON.stringify(group)
    } ${
      namespace === undefined
        ? "at the cluster scope"
        : `in the namespace ${JSON.stringify(namespace)}`
    }`,
  );
}

/** Adds warning headers and compression to an answer. */
async function finish(
  request: ServerRequest,
  response: ServerResponse,
  warnings: readonly string[],
): Promise<ServerResponse> {
  const headers: ResponseHeaders = {
    "cache-control": "no-cache, private",
    ...response.headers,
    ...(warnings.length === 0 ? {} : { warning: warnings.map(warningHeader) }),
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

/** Value of a `Warning` header (RFC 7234). */
function warningHeader(text: string): string {
  // deno-lint-ignore no-control-regex -- a header must hold none of them
  const safe = text.replaceAll(/[\u0000-\u001f\u007f]/g, " ")
    .replaceAll(/["\\]/g, "\\$&");
  return `299 - "${safe}"`;
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
