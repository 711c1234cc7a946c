import { Buffer } from "node:buffer";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { KubernetesObject } from "../core/api/object.ts";
import type { ObjectKey } from "../core/api/object_key.ts";
import { checkOptions, type OptionRules } from "../core/api/options.ts";
import type {
  EventSource,
  PrimaryCache,
  SourceContext,
  SourceHealth,
} from "../core/controller/event_source.ts";
import { keyTexts } from "./mappers.ts";
import { SourceRun } from "./source_run.ts";
import {
  checkVerification,
  isAuthentic,
  type WebhookCheck,
} from "./webhook_verification.ts";

/** A request that was let in. */
export interface WebhookRequest {
  /** The path, without the query. */
  readonly path: string;
  /** The query. */
  readonly query: URLSearchParams;
  /** The headers, names in lower case. */
  readonly headers: Readonly<
    Record<string, string | readonly string[] | undefined>
  >;
  /** The body as it came. */
  readonly body: Uint8Array;
  /**
   * The body as JSON.
   *
   * @throws {SyntaxError} If it is none; the sender is told.
   */
  json(): unknown;
}

/** Options of {@linkcode webhookSource}. */
export interface WebhookOptions<
  P extends KubernetesObject = KubernetesObject,
> {
  /** Unique within the controller. */
  readonly name: string;
  /**
   * How a request proves that it is from who it should be. There is no default:
   * an open endpoint must be asked for.
   */
  readonly check: WebhookCheck;
  /**
   * The primaries that a request is about, as keys or `namespace/name`; those
   * that the controller does not know are ignored. It may look them up among
   * those that are known. What it throws is told to the sender as a bad request.
   */
  readonly primaries: (
    request: WebhookRequest,
    known: PrimaryCache<P>,
  ) =>
    | Iterable<ObjectKey | string>
    | Promise<Iterable<ObjectKey | string>>;
  /**
   * The port; 0 takes any that is free, and {@linkcode WebhookSource.url} tells.
   *
   * @default {0}
   */
  readonly port?: number | undefined;
  /**
   * The address to listen on.
   *
   * @default {"127.0.0.1"}
   */
  readonly host?: string | undefined;
  /**
   * The one path that is served.
   *
   * @default {"/"}
   */
  readonly path?: string | undefined;
  /**
   * How many bytes a body may have.
   *
   * @default {1_048_576}
   */
  readonly bodyLimit?: number | undefined;
}

/** A source that outside systems call over HTTP. */
export interface WebhookSource<P extends KubernetesObject>
  extends EventSource<P, never> {
  /** Where it listens; undefined while it is not started. */
  readonly url: string | undefined;
}

/** How long a client may take to send its request, in milliseconds. */
const REQUEST_TIMEOUT = 15_000;

/** A reply that says what is wrong with a request. */
class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * Listens for HTTP requests of outside systems, such as a forge's webhooks, and
 * triggers the primaries that they are about.
 *
 * Only `POST` to the one path is served. The answer is 202 once the runs are
 * asked for; otherwise a line says what is wrong: 400 for a body that cannot be
 * read, 401 for a wrong signature or token, 404, 405, and 413 for a body that is
 * too large, of which no more than the limit is read.
 *
 * @param options Where to listen, whom to believe and what to trigger.
 * @throws {RangeError} If the port or the limit is out of range.
 * @throws {TypeError} If an option is unknown, missing or of another type, a
 * secret is empty, or the path does not begin with `/`.
 *
 * @example Believe only who knows a token
 * ```ts
 * import { webhookSource } from "@coracle/operator/sources";
 *
 * const pushes = webhookSource({
 *   name: "pushes",
 *   port: 9000,
 *   path: "/pushed",
 *   check: { bearer: { token: "of an environment variable" } },
 *   primaries(request) {
 *     const { shop } = request.json() as { shop: string };
 *     return [`default/${shop}`];
 *   },
 * });
 * if (pushes.url !== undefined) throw new Error("It listens once it is started");
 * ```
 */
export function webhookSource<P extends KubernetesObject>(
  options: WebhookOptions<P>,
): WebhookSource<P> {
  return new Webhook(options);
}

class Webhook<P extends KubernetesObject> implements WebhookSource<P> {
  readonly name: string;
  readonly #options: WebhookOptions<P>;
  readonly #bodyLimit: number;
  #server: Server | undefined;
  #run: SourceRun<P> | undefined;
  url: string | undefined;

  constructor(options: WebhookOptions<P>) {
    checkWebhook(options);
    this.name = options.name;
    this.#options = options;
    this.#bodyLimit = options.bodyLimit ?? 1 << 20;
  }

  async start(context: SourceContext<P>): Promise<void> {
    const { port = 0, host = "127.0.0.1", path = "/" } = this.#options;
    const run = new SourceRun(context);
    const { createServer } = await import("node:http");
    const server = createServer({
      requestTimeout: REQUEST_TIMEOUT,
      headersTimeout: REQUEST_TIMEOUT,
    }, (request, response) => void this.#serve(run, request, response));
    await new Promise<void>((resolve, reject) => {
      // It stays: an error of a server that nobody listens for ends the process.
      server.on("error", (error) => {
        reject(
          new Error(
            `Cannot start the webhook "${this.name}": it cannot listen: received ${error.message}`,
          ),
        );
      });
      server.listen(port, host, resolve);
    });
    const address = server.address();
    const bound = typeof address === "object" ? address?.port : port;
    this.url = `http://${
      host.includes(":") ? `[${host}]` : host
    }:${bound}${path}`;
    this.#server = server;
    this.#run = run;
    context.log.info("Webhook listens", { source: this.name, url: this.url });
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#run?.end();
    this.#run = undefined;
    this.#server = undefined;
    this.url = undefined;
    if (server === undefined) return;
    const closed = new Promise<void>((resolve) =>
      server.close(() => resolve())
    );
    server.closeAllConnections();
    await closed;
  }

  health(): SourceHealth {
    return this.#run?.health ?? { status: "unknown" };
  }

  async #serve(
    run: SourceRun<P>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    try {
      const keys = await this.#accept(run, request);
      for (const key of keys) run.context.trigger(key);
      reply(response, 202, `Accepted for ${keys.length}`);
    } catch (error) {
      if (!(error instanceof Refusal)) {
        run.context.log.warn("Cannot serve a webhook", {
          source: this.name,
          error,
        });
        reply(response, 400, "Cannot read the request");
        return;
      }
      run.context.log.debug("Refused a webhook", {
        source: this.name,
        status: error.status,
      });
      reply(response, error.status, error.message);
    }
  }

  async #accept(
    run: SourceRun<P>,
    request: IncomingMessage,
  ): Promise<string[]> {
    const { path = "/", check, primaries } = this.#options;
    const url = new URL(request.url ?? "/", "http://localhost");
    if (url.pathname !== path) throw new Refusal(404, "No such path");
    if (request.method !== "POST") {
      throw new Refusal(405, "Only POST is served");
    }
    const body = await this.#read(request);
    if (!await isAuthentic({ headers: request.headers, body }, check)) {
      throw new Refusal(401, "The signature or token is missing or wrong");
    }
    const found = await primaries({
      path: url.pathname,
      query: url.searchParams,
      headers: request.headers,
      body,
      json: () => parse(body),
    }, run.context.primaries);
    return keyTexts(found);
  }

  async #read(request: IncomingMessage): Promise<Uint8Array> {
    const tooLarge = () =>
      new Refusal(413, `The body must be at most ${this.#bodyLimit} bytes`);
    if (Number(request.headers["content-length"] ?? 0) > this.#bodyLimit) {
      throw tooLarge();
    }
    const chunks: Uint8Array[] = [];
    let length = 0;
    // Events instead of a loop: leaving a loop would close the connection
    // before the refusal is sent.
    return await new Promise((resolve, reject) => {
      request.on("data", (chunk: Uint8Array) => {
        length += chunk.length;
        if (length > this.#bodyLimit) {
          request.pause();
          reject(tooLarge());
        } else chunks.push(chunk);
      });
      request.on("end", () => resolve(Buffer.concat(chunks)));
      request.on("error", reject);
    });
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
  const { name, path = "/", check } = options;
  if (!path.startsWith("/")) {
    throw new TypeError(
      `Cannot make the webhook "${name}": "path" must begin with "/": received ${
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

function reply(response: ServerResponse, status: number, text: string): void {
  if (response.headersSent || response.destroyed) return;
  // What was not read of a refused body would hold the connection up.
  if (status >= 400) response.setHeader("connection", "close");
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8" });
  response.end(`${text}\n`);
}
