import {
  headerLines,
  type HttpRequest,
  type HttpResponse,
  type HttpTransport,
  type OpenRequest,
  OpenRequests,
} from "./transport.ts";
import { closedError, connectionError } from "./transport_error.ts";
import {
  type ServerAddress,
  serverAddress,
  SHORT_BODY_BYTES,
  type TransportOptions,
} from "./transport_options.ts";

/** Extensions of a runtime to `fetch`. */
export interface FetchRuntime {
  /** Additional options for every call. */
  readonly init: Readonly<Record<string, unknown>>;
  /** Closes the connections of the runtime. */
  close(): void;
}

/**
 * Transport over the `fetch` of a runtime, for runtimes whose `fetch` supports
 * certificates and proxies. The runtime manages connections and decompression.
 *
 * Only reads use `fetch`: after the reset of a kept-alive connection, Deno
 * repeats a write, and Bun a PUT or DELETE. Writes use the transport over
 * sockets, and so do requests with a check between connecting and sending,
 * `beforeSend`.
 */
export class FetchTransport implements HttpTransport {
  readonly #options: TransportOptions;
  readonly #address: ServerAddress;
  readonly #runtime: FetchRuntime;
  readonly #requests = new OpenRequests();
  /** Transport for writes and requests with `beforeSend`; opened by the first. */
  #sockets: Promise<HttpTransport> | undefined;
  #closed = false;

  constructor(options: TransportOptions, runtime: FetchRuntime) {
    this.#options = options;
    this.#address = serverAddress(options.server);
    this.#runtime = runtime;
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    const { origin, prefix } = this.#address;
    if (this.#closed) throw closedError(origin);
    request.signal?.throwIfAborted();
    if (request.method !== "GET" || request.beforeSend !== undefined) {
      if (this.#sockets === undefined) {
        this.#sockets = import("./transport_node.ts").then((node) =>
          node.openHttpTransport(this.#options)
        );
        this.#sockets.catch(() => this.#sockets = undefined);
      }
      return await (await this.#sockets).send(request);
    }
    const headers = headerLines(request);
    const fetching = new FetchRequest({
      origin,
      signal: request.signal,
      requests: this.#requests,
    });
    return await fetching.run(`${origin}${prefix}${request.path}`, {
      ...this.#runtime.init,
      method: request.method,
      headers,
      redirect: "manual",
    });
  }

  async retire(): Promise<void> {
    await this.#requests.idle();
    await (await this.#sockets)?.retire();
    await this.close();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#requests.abortAll(closedError(this.#address.origin));
    this.#runtime.close();
    await (await this.#sockets)?.close();
  }
}

interface FetchRequestDeps {
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
      const response = await fetch(url, {
        ...init,
        signal: this.#controller.signal,
      });
      const { body } = response;
      const headers = Object.fromEntries(response.headers);
      // The runtime decompresses the body but leaves the header.
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
