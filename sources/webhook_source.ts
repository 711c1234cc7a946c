import { createHmac, timingSafeEqual } from "node:crypto";
import type {
  IncomingHttpHeaders,
  IncomingMessage,
  Server,
  ServerResponse,
} from "node:http";
import { ApiError } from "../core/api/api_error.ts";
import type { KubernetesObject } from "../core/api/object.ts";
import type { Client } from "../core/client/client.ts";
import { type ObjectKey, parseKey } from "../core/api/object_key.ts";
import {
  checkOptions,
  type OptionRules,
  typeText,
} from "../core/api/options.ts";
import type {
  EventSource,
  PrimaryCache,
  SourceContext,
} from "../core/controller/event_source.ts";
import {
  closeServer,
  listenOn,
  nodeHttp,
  readBody,
  replyText,
  serverLimits,
} from "../core/node_http.ts";
import { systemCause } from "../core/error_text.ts";
import { keyTexts } from "../core/controller/watch/mappers.ts";
import { BaseSource, SourceRun } from "./source_run.ts";

/** Options of {@linkcode webhookSource}. */
export interface WebhookOptions<
  P extends KubernetesObject = KubernetesObject,
> {
  /** Name of the source, unique within the controller. */
  readonly name: string;
  /**
   * Check that authenticates requests. It is required; `"none"` accepts every
   * request.
   */
  readonly check:
    | {
      /** Check of an HMAC of the body that the sender puts into a header. */
      readonly hmac: {
        /**
         * Shared secret, or several while it is changed: each is accepted.
         */
        readonly secret: string | readonly string[];
        /**
         * Header with the HMAC in hexadecimal digits; the default is GitHub's.
         *
         * @default {"x-hub-signature-256"}
         */
        readonly header?: string | undefined;
        /**
         * Text before the hexadecimal digits in the header.
         *
         * @default {"sha256="}
         */
        readonly prefix?: string | undefined;
        /**
         * Hash function.
         *
         * @default {"sha256"}
         */
        readonly algorithm?: "sha256" | "sha384" | "sha512" | undefined;
      };
    }
    | {
      /** Check of a bearer token in the Authorization header. */
      readonly bearer: {
        /** Token, or several while it is changed: each is accepted. */
        readonly token: string | readonly string[];
      };
    }
    | "none";
  /**
   * Maps a request to primaries, as keys or `namespace/name`; unknown primaries
   * are ignored. `known` looks up the known primaries, and `client` is one whose
   * writes need no lease, since each replica is called. If the function throws,
   * the sender gets status 503 if the API server or another system was away, so
   * that it tries again, and otherwise 400.
   */
  readonly primaries: (
    request: {
      /** Path without the query. */
      readonly path: string;
      /** Query of the URL. */
      readonly query: URLSearchParams;
      /** Headers by name in lower case. */
      readonly headers: Readonly<
        Record<string, string | readonly string[] | undefined>
      >;
      /** Body as it was received. */
      readonly body: Uint8Array;
      /**
       * Parses the body as JSON.
       *
       * @throws {Error} If the body is not JSON; the sender gets status 400.
       */
      json(): unknown;
    },
    known: PrimaryCache<P>,
    client: Client,
  ) =>
    | Iterable<ObjectKey | string>
    | Promise<Iterable<ObjectKey | string>>;
  /**
   * Port; 0 for any free port, which the `url` of the source contains.
   *
   * @default {0}
   */
  readonly port?: number | undefined;
  /**
   * Address to listen on.
   *
   * @default {"127.0.0.1"}
   */
  readonly host?: string | undefined;
  /**
   * Path of the endpoint.
   *
   * @default {"/"}
   */
  readonly path?: string | undefined;
  /**
   * Maximum size of a body in bytes. All bodies together have at most 16 MiB, or
   * this size if it is larger; further requests get 503.
   *
   * @default {1_048_576}
   */
  readonly bodyLimit?: number | undefined;
}

type WebhookCheck = WebhookOptions["check"];

type HmacCheck = Extract<WebhookCheck, { readonly hmac: unknown }>["hmac"];

type BearerCheck = Extract<
  WebhookCheck,
  { readonly bearer: unknown }
>["bearer"];

const HMAC_RULES: OptionRules<HmacCheck> = {
  secret: "any",
  header: "name?",
  prefix: "string?",
  algorithm: ["sha256", "sha384", "sha512", undefined],
};
const BEARER_RULES: OptionRules<BearerCheck> = { token: "any" };

/** Time limit for receiving a request, in milliseconds. */
const REQUEST_TIMEOUT_MS = 15_000;
/** Maximum number of connections; further ones are closed at once. */
const MAX_CONNECTIONS = 100;
/** Maximum size of all bodies that are received or handled, in bytes. */
const MAX_HELD_BYTES = 16 << 20;

/** Error with the HTTP status of the reply. */
class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * Creates an event source that listens for HTTP requests of external systems,
 * such as the webhooks of a code forge, and triggers the primaries that
 * `primaries` returns.
 *
 * Only `POST` to the path is served. The reply is 202 once the runs are
 * requested. Otherwise its body says what is wrong: 400 for an unreadable body,
 * 401 for a wrong signature or token, 404, 405, 413 for a body that is too
 * large, which is not read beyond the limit, and 503 if another replica runs a
 * primary or too much arrives at once, so that the sender tries again. A request
 * without the right token, or without any signature, is refused before its body
 * is read. A request must arrive within 15 seconds; at most 100 connections are
 * open.
 *
 * @param options The address, the check and the mapping to primaries.
 * @throws {RangeError} If the port or the limit is out of range.
 * @throws {TypeError} If an option is unknown, missing or of another type, a
 * secret is empty, or the path does not begin with `/`.
 *
 * @example Require a token
 * ```ts
 * import { webhookSource } from "@coracle/operator/sources";
 *
 * const pushes = webhookSource({
 *   name: "pushes",
 *   port: 9000,
 *   path: "/pushed",
 *   check: { bearer: { token: "from an environment variable" } },
 *   primaries(request) {
 *     const { shop } = request.json() as { shop: string };
 *     return [`default/${shop}`];
 *   },
 * });
 * ```
 */
export function webhookSource<P extends KubernetesObject>(
  options: WebhookOptions<P>,
): EventSource<P, never> & {
  /** URL on which the source listens; undefined while it is stopped. */
  readonly url: string | undefined;
} {
  return new Webhook(options);
}

class Webhook<P extends KubernetesObject> extends BaseSource<P> {
  /** Address that is called from outside, for the manifests. */
  readonly listens: { readonly port: number; readonly host: string };
  readonly #options: WebhookOptions<P>;
  readonly #bodyLimit: number;
  readonly #accepts: Verification;
  /** Size of the bodies that are received or handled. */
  #held = 0;
  #server: Server | undefined;
  url: string | undefined;

  constructor(options: WebhookOptions<P>) {
    checkWebhook(options);
    super(options.name);
    this.#options = options;
    const { port = 0, host = "127.0.0.1" } = options;
    this.listens = { port, host };
    this.#bodyLimit = options.bodyLimit ?? 1 << 20;
    this.#accepts = verificationOf(options.check);
  }

  /** Path as it is in URLs, where other characters than ASCII are encoded. */
  get #path(): string {
    const { path = "/" } = this.#options;
    return new URL(`http://localhost${path}`).pathname;
  }

  override async start(context: SourceContext<P>): Promise<void> {
    const { port, host } = this.listens;
    const run = this.run = new SourceRun(context, "not listening yet");
    const server = nodeHttp().createServer(
      serverLimits(REQUEST_TIMEOUT_MS),
      (request, response) => void this.#serve(run, request, response),
    );
    server.maxConnections = MAX_CONNECTIONS;
    const action = `start the webhook "${this.name}": it cannot listen`;
    const bound = await listenOn(server, { port, host }, action);
    if (run.ended) return await closeServer(server);
    this.url = `http://${
      host.includes(":") ? `[${host}]` : host
    }:${bound}${this.#path}`;
    this.#server = server;
    run.worked();
    context.log.info("Webhook listens", { source: this.name, url: this.url });
  }

  override async stop(): Promise<void> {
    const server = this.#server;
    await super.stop();
    this.#server = undefined;
    this.url = undefined;
    if (server !== undefined) await closeServer(server);
  }

  async #serve(
    run: SourceRun<P>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    try {
      const keys = await this.#accept(run, request);
      const { trigger, primaries } = run.context;
      const left = keys.filter((key) => !trigger(key));
      const others = left.filter((key) => primaries.has(key)).length;
      if (others > 0) throw new Refusal(503, `Another replica runs ${others}`);
      replyText(response, 202, `Accepted for ${keys.length - left.length}`);
    } catch (error) {
      if (!(error instanceof Refusal)) {
        run.warn("Cannot serve a webhook", { source: this.name, error });
        if (mayPass(error)) replyText(response, 503, "Cannot be served now");
        else replyText(response, 400, "Cannot read the request");
        return;
      }
      run.context.log.debug("Refused a webhook", {
        source: this.name,
        status: error.status,
      });
      replyText(response, error.status, error.message);
    }
  }

  async #accept(
    run: SourceRun<P>,
    request: IncomingMessage,
  ): Promise<string[]> {
    const { primaries } = this.#options;
    const url = new URL(request.url ?? "/", "http://localhost");
    if (url.pathname !== this.#path) throw new Refusal(404, "No such path");
    if (request.method !== "POST") {
      throw new Refusal(405, "Only POST is served");
    }
    if (Number(request.headers["content-length"] ?? 0) > this.#bodyLimit) {
      throw this.#tooLarge();
    }
    const verifier = this.#accepts(request.headers);
    if (verifier === undefined) throw unauthorized();
    let held = 0;
    /** Takes a part of the body; all bodies together have a limit. */
    const hold = (chunk: Uint8Array) => {
      held += chunk.length;
      this.#held += chunk.length;
      if (held > this.#bodyLimit) throw this.#tooLarge();
      if (this.#held > Math.max(MAX_HELD_BYTES, this.#bodyLimit)) {
        throw new Refusal(503, "Too much arrives at once");
      }
      verifier.update(chunk);
    };
    try {
      const body = await readBody(request, hold);
      if (!verifier.isAuthentic()) throw unauthorized();
      const found = await primaries(
        {
          path: url.pathname,
          query: url.searchParams,
          headers: request.headers,
          body,
          json: () => parse(body),
        },
        run.context.primaries,
        run.context.unfenced,
      );
      const keys = keyTexts(found);
      keys.forEach(parseKey); // Before one of them is triggered.
      return keys;
    } finally {
      this.#held -= held;
    }
  }

  #tooLarge(): Refusal {
    return new Refusal(
      413,
      `The body must be at most ${this.#bodyLimit} bytes`,
    );
  }
}

const RULES: OptionRules<WebhookOptions<never>> = {
  name: "name",
  check: "any",
  primaries: "function",
  port: "port?",
  host: "name?",
  path: "name?",
  bodyLimit: "count?",
};

function checkWebhook(options: WebhookOptions<never>): void {
  checkOptions(options, RULES, "webhookSource()");
  const { name, path, check } = options;
  if (path?.startsWith("/") === false) {
    throw new TypeError(
      `Cannot create the webhook "${name}": "path" must begin with "/": received ${
        JSON.stringify(path)
      }`,
    );
  }
  checkVerification(check, `the webhook "${name}"`);
}

function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    throw new Refusal(400, "The body must be JSON");
  }
}

/**
 * Validates the check of a webhook.
 *
 * @throws {TypeError} If it is not a valid check, or the secret is empty.
 */
function checkVerification(check: WebhookCheck, subject: string): void {
  if (check === "none") return;
  const { hmac, bearer, ...others } = Object(check) as {
    readonly hmac?: HmacCheck;
    readonly bearer?: BearerCheck;
  };
  const [form] = [hmac, bearer].filter((one) => one !== undefined);
  if (!form || (hmac && bearer) || Object.keys(others).length > 0) {
    throw new TypeError(
      `Cannot read the options of ${subject}: "check" must be { hmac: { secret } }, { bearer: { token } } or "none": received ${
        typeText(check)
      }`,
    );
  }
  if (hmac) checkOptions(hmac, HMAC_RULES, `${subject}, check.hmac`);
  if (bearer) checkOptions(bearer, BEARER_RULES, `${subject}, check.bearer`);
  const [place, name, value] = hmac
    ? ["check.hmac", "secret", hmac.secret]
    : ["check.bearer", "token", bearer?.token];
  const secrets = textsOf(value ?? []);
  if (
    secrets.length > 0 &&
    secrets.every((secret) => typeof secret === "string" && secret !== "")
  ) return;
  throw new TypeError(
    `Cannot read the options of ${subject}, ${place}: "${name}" must be a string, or an array of strings, and none may be empty: received ${
      typeText(value)
    }`,
  );
}

/** Whether an error of a mapper may be gone when the sender tries again. */
function mayPass(error: unknown): boolean {
  return ApiError.is(error)
    ? error.status >= 500 || error.isTooManyRequests
    : systemCause(error, "") !== "";
}

function unauthorized(): Refusal {
  return new Refusal(401, "The signature or token is missing or wrong");
}

/** Verifier of one request, which gets the parts of its body. */
interface Verifier {
  update(chunk: Uint8Array): void;
  /** Whether the request is authentic, when its body has ended. */
  isAuthentic(): boolean;
}

/**
 * Begins the verification of a request by its headers; undefined if they alone
 * show that it is not authentic.
 */
type Verification = (headers: IncomingHttpHeaders) => Verifier | undefined;

const AUTHENTIC: Verifier = { update() {}, isAuthentic: () => true };

function verificationOf(check: WebhookCheck): Verification {
  if (check === "none") return () => AUTHENTIC;
  if ("bearer" in check) {
    const tokens = textsOf(check.bearer.token);
    return ({ authorization = "" }) => {
      const match = /^bearer +(\S+) *$/i.exec(authorization);
      return isOneOf(match?.[1] ?? "", tokens) ? AUTHENTIC : undefined;
    };
  }
  const {
    header = "x-hub-signature-256",
    prefix = "sha256=",
    algorithm = "sha256",
  } = check.hmac;
  const secrets = textsOf(check.hmac.secret);
  const length = createHmac(algorithm, "").digest("hex").length;
  return (headers) => {
    const given = single(headers[header.toLowerCase()]).toLowerCase();
    const digits = given.slice(prefix.length);
    if (
      !given.startsWith(prefix.toLowerCase()) || digits.length !== length ||
      !/^[0-9a-f]+$/.test(digits)
    ) return undefined;
    const hashes = secrets.map((secret) => createHmac(algorithm, secret));
    return {
      update(chunk) {
        for (const hash of hashes) hash.update(chunk);
      },
      isAuthentic: () =>
        isOneOf(digits, hashes.map((hash) => hash.digest("hex"))),
    };
  };
}

/** Whether a text is one of the expected ones, compared in constant time. */
function isOneOf(given: string, expected: readonly string[]): boolean {
  // Digests have equal lengths.
  const digest = (text: string) =>
    createHmac("sha256", "compare").update(text).digest();
  let isEqual = false;
  for (const text of expected) {
    isEqual = timingSafeEqual(digest(given), digest(text)) || isEqual;
  }
  return isEqual;
}

function textsOf(texts: string | readonly string[]): readonly string[] {
  return typeof texts === "string" ? [texts] : texts;
}

function single(value: string | readonly string[] | undefined): string {
  return typeof value === "string" ? value : value?.[0] ?? "";
}
