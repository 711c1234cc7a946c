import type {
  ClusterConfig,
  Credential,
  CredentialSource,
} from "../../config/cluster_config.ts";
import {
  headerLines,
  type HttpRequest,
  type HttpResponse,
  type OpenRequest,
  OpenRequests,
  type Transport,
} from "./transport.ts";
import { closedError, connectionError } from "./transport_error.ts";
import {
  type ServerAddress,
  serverAddress,
  SHORT_BODY_BYTES,
} from "./transport_options.ts";

/** Options of a cluster that a `fetch` of the user cannot have. */
const OF_SOCKETS = [
  "certificateAuthority",
  "serverName",
  "insecureSkipTlsVerify",
  "proxyUrl",
] as const;

/**
 * Creates a transport to a cluster over a `fetch` of the user.
 *
 * @throws {TypeError} If the server is not a URL, or the configuration has options
 * that only sockets have: they must not be dropped silently.
 */
export function fetchTransport(
  config: ClusterConfig,
  send: typeof fetch,
): FetchTransport {
  const foreign = OF_SOCKETS.find((name) => config[name]);
  if (foreign !== undefined) throw foreignError(foreign);
  return new FetchTransport(config.server, send);
}

/** Credentials without certificates, which a `fetch` of the user cannot present. */
export function tokensOnly(source: CredentialSource): CredentialSource {
  const checked = (credential: Credential): Credential => {
    if (credential.certificate) throw foreignError("certificate");
    return credential;
  };
  return {
    current: (signal) => source.current(signal).then(checked),
    refresh: (previous, signal) =>
      source.refresh(previous, signal).then(checked),
  };
}

function foreignError(name: string): TypeError {
  return new TypeError(
    `Cannot use "fetch" for a cluster: it makes its own connections, so the configuration must not have "${name}"`,
  );
}

/**
 * Transport over a `fetch` of the user, for runtimes without sockets. The `fetch`
 * decides on connections, certificates and proxies.
 *
 * What sockets promise does not hold: `beforeSend` is called before `fetch`, which
 * may connect first, and may repeat a request, even a write, whose connection broke.
 */
export class FetchTransport implements Transport {
  readonly #address: ServerAddress;
  readonly #fetch: typeof fetch;
  readonly #requests = new OpenRequests();
  #closed = false;

  /**
   * Creates a transport.
   *
   * @param server URL of the server.
   * @param fetch Function that sends the requests.
   * @throws {TypeError} If the server is not a URL.
   */
  constructor(server: string, fetch: typeof globalThis.fetch) {
    this.#address = serverAddress(server);
    this.#fetch = fetch;
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    const { origin, prefix } = this.#address;
    if (this.#closed) throw closedError(origin);
    request.signal?.throwIfAborted();
    const headers = headerLines(request);
    request.beforeSend?.();
    const fetching = new FetchRequest({
      fetch: this.#fetch,
      origin,
      signal: request.signal,
      requests: this.#requests,
    });
    return await fetching.run(`${origin}${prefix}${request.path}`, {
      method: request.method,
      headers,
      redirect: "manual",
      ...(request.body !== undefined && {
        body: request.body as string | Uint8Array<ArrayBuffer>,
      }),
    });
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#requests.abortAll(closedError(this.#address.origin));
    return Promise.resolve();
  }
}

interface FetchRequestDeps {
  readonly fetch: typeof fetch;
  /** Origin of the server, for errors. */
  readonly origin: string;
  readonly signal: AbortSignal | undefined;
  /** Requests in progress; the request registers itself until it ends. */
  readonly requests: OpenRequests;
}

/** Request in progress and its response. */
class FetchRequest implements OpenRequest {
  readonly #deps: FetchRequestDeps;
  readonly #controller = new AbortController();
  readonly #number: number;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  constructor(deps: FetchRequestDeps) {
    this.#deps = deps;
    this.#number = deps.requests.add(this);
    deps.signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  readonly #onAbort = (): void => this.abort(this.#deps.signal?.reason);

  abort(reason: unknown): void {
    // A body that is not being read would never report its end.
    this.#end();
    this.#controller.abort(reason);
    // Deno does not always notice the abort while it waits for a chunk: the
    // connection would stay open and keep the process alive.
    this.#reader?.cancel(reason).catch(() => {});
  }

  async run(url: string, init: RequestInit): Promise<HttpResponse> {
    try {
      const { fetch } = this.#deps;
      const { signal } = this.#controller;
      const response = await fetch(url, { ...init, signal });
      const { body } = response;
      const headers = Object.fromEntries(response.headers);
      // The body is decompressed, but the header left.
      delete headers["content-encoding"];
      if (body === null) this.#end();
      const reader = this.#reader = body?.getReader();
      const chunks = this.#read(reader);
      const length = Number(headers["content-length"] ?? Infinity);
      return {
        status: response.status,
        headers,
        body: chunks,
        cancel: () => this.#cancel(reader, length),
      };
    } catch (error) {
      throw this.#failure(error);
    }
  }

  async *#read(
    reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    if (reader === undefined) return;
    try {
      while (true) {
        const { done, value } = await reader.read();
        if (done) return this.#controller.signal.throwIfAborted();
        yield value;
      }
    } catch (error) {
      throw this.#failure(error);
    } finally {
      this.#end();
      // Closes the connection, unless the body has ended.
      await reader.cancel().catch(() => {});
    }
  }

  async #cancel(
    reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
    length: number,
  ): Promise<void> {
    if (length > SHORT_BODY_BYTES) {
      this.#end();
      await reader?.cancel().catch(() => {});
      return;
    }
    try {
      for await (const _chunk of this.#read(reader));
    } catch {
      // The connection failed: there is nothing to cancel.
    }
  }

  #failure(error: unknown): unknown {
    this.#end();
    const { signal } = this.#controller;
    return signal.aborted
      ? signal.reason
      : connectionError(this.#deps.origin, error);
  }

  #end(): void {
    this.#deps.signal?.removeEventListener("abort", this.#onAbort);
    this.#deps.requests.delete(this.#number);
  }
}
