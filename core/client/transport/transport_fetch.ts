import {
  headerLines,
  type HttpRequest,
  type HttpResponse,
  type HttpTransport,
  type OpenExchange,
  OpenExchanges,
} from "./transport.ts";
import { closedError, connectionError } from "./transport_error.ts";
import {
  type ServerAddress,
  serverAddress,
  SHORT_BODY,
  type TransportSettings,
} from "./transport_settings.ts";

/** What a runtime adds to `fetch`. */
export interface FetchRuntime {
  /** Options of the runtime's own that every call takes. */
  readonly init: Readonly<Record<string, unknown>>;
  /** Frees the runtime's connections. */
  close(): void;
}

/**
 * A transport over a runtime's own `fetch`, for the runtimes whose `fetch` can
 * be told certificates and proxies. Connections, their reuse and decompression
 * are the runtime's work.
 */
export class FetchTransport implements HttpTransport {
  readonly #address: ServerAddress;
  readonly #runtime: FetchRuntime;
  readonly #exchanges = new OpenExchanges();
  #closed = false;

  constructor(settings: TransportSettings, runtime: FetchRuntime) {
    this.#address = serverAddress(settings.server);
    this.#runtime = runtime;
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    const { origin, prefix } = this.#address;
    if (this.#closed) throw closedError(origin);
    request.signal?.throwIfAborted();
    const headers = headerLines(request);
    const exchange = new FetchExchange({
      origin,
      signal: request.signal,
      exchanges: this.#exchanges,
    });
    return await exchange.run(`${origin}${prefix}${request.path}`, {
      ...this.#runtime.init,
      method: request.method,
      headers,
      body: request.body as BodyInit | undefined ?? null,
      redirect: "manual",
    });
  }

  async retire(): Promise<void> {
    await this.#exchanges.idle();
    await this.close();
  }

  close(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    this.#closed = true;
    this.#exchanges.abortAll(closedError(this.#address.origin));
    this.#runtime.close();
    return Promise.resolve();
  }
}

interface FetchExchangeParts {
  readonly origin: string;
  readonly signal: AbortSignal | undefined;
  /** Where it is noted until it ends. */
  readonly exchanges: OpenExchanges;
}

/** One request and its answer. */
class FetchExchange implements OpenExchange {
  readonly #parts: FetchExchangeParts;
  readonly #controller = new AbortController();
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  constructor(parts: FetchExchangeParts) {
    this.#parts = parts;
    parts.exchanges.add(this);
    parts.signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  readonly #onAbort = (): void => this.abort(this.#parts.signal?.reason);

  abort(reason: unknown): void {
    // What nobody has begun to read would never tell of its end.
    this.#end();
    this.#controller.abort(reason);
    // Deno does not always hear of the abort while it waits for a chunk: the
    // connection would stay, and with it the process.
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
      // The runtime took the compression off the body, but not off the headers.
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
      // After the end this does nothing; before it, it closes the connection.
      await reader.cancel().catch(() => {});
    }
  }

  async #cancel(
    reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
    length: number,
  ): Promise<void> {
    if (length > SHORT_BODY) {
      this.#end();
      await reader?.cancel().catch(() => {});
      return;
    }
    try {
      for await (const _chunk of this.#read(reader));
    } catch {
      // The connection broke: there is nothing left to cancel.
    }
  }

  #failure(error: unknown): unknown {
    this.#end();
    const { signal } = this.#controller;
    return signal.aborted
      ? signal.reason
      : connectionError(this.#parts.origin, error);
  }

  #end(): void {
    this.#parts.signal?.removeEventListener("abort", this.#onAbort);
    this.#parts.exchanges.delete(this);
  }
}
