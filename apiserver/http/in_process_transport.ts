import { textOf } from "../../core/client/transport/chunk_queue.ts";
import type {
  HttpRequest,
  HttpResponse,
  StreamConnection,
  StreamRequest,
  Transport,
} from "../../core/client/transport/transport.ts";
import { StreamRefusedError } from "../../core/client/transport/transport_error.ts";
import { streamPair } from "./message_stream.ts";
import {
  isStream,
  type ResponseStream,
  type ServerResponse,
  type StreamWriter,
} from "./exchange.ts";
import type { Handle } from "./listener.ts";

const encoder = new TextEncoder();

/**
 * Transport to a server in the same process, by function calls without a
 * socket.
 */
export class InProcessTransport implements Transport {
  readonly #handle: Handle;
  /** Open streams, which a lost connection breaks. */
  readonly #open: Set<{ destroy(): void }> = new Set();
  #closed = false;

  /**
   * Creates a transport that calls a handler in the same process.
   *
   * @param handle Handler of requests.
   */
  constructor(handle: Handle) {
    this.#handle = handle;
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    return this.#response(await this.#ask(request), request.signal);
  }

  async connect(request: StreamRequest): Promise<StreamConnection> {
    const { headers, protocols, signal } = request;
    const { upgrade, ...answer } = await this.#ask({
      ...request,
      method: "GET",
      headers: {
        ...headers,
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-protocol": protocols.join(", "),
      },
    });
    if (upgrade === undefined) {
      const { status, body } = this.#response(answer, signal);
      throw new StreamRefusedError("the server in this process", {
        status,
        body: await textOf(body),
      });
    }
    const stream = streamPair(upgrade.protocol);
    const open = { destroy: () => stream.fail(BROKEN()) };
    const onAbort = () => stream.fail(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#open.add(open);
    void upgrade.serve(stream.far).finally(() => {
      signal?.removeEventListener("abort", onAbort);
      this.#open.delete(open);
    });
    return stream.near;
  }

  async #ask(request: HttpRequest): Promise<ServerResponse> {
    const { method, path, body, signal } = request;
    let { headers } = request;
    for (const [name, lines] of Object.entries(request.repeatedHeaders ?? {})) {
      headers = { ...headers, [name]: lines.join(", ") };
    }
    if (this.#closed) {
      throw new Error("Cannot send a request: the transport is closed");
    }
    signal?.throwIfAborted();
    const answer = await this.#handle({
      method,
      target: path,
      headers,
      body: typeof body === "string"
        ? encoder.encode(body)
        : body ?? new Uint8Array(),
    });
    signal?.throwIfAborted();
    if (answer !== undefined) return answer;
    throw new Error(
      `Cannot send ${method} ${path.split("?")[0]}: the connection was refused`,
    );
  }

  #response(
    answer: ServerResponse,
    signal: AbortSignal | undefined,
  ): HttpResponse {
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(answer.headers)) {
      headers[name] = typeof value === "string" ? value : value.join(", ");
    }
    const { status, body } = answer;
    if (!isStream(body)) {
      const blocks = body instanceof Uint8Array ? [body] : body;
      return {
        status,
        headers,
        body: replay(blocks, signal),
        cancel: () => Promise.resolve(),
      };
    }
    const stream = new StreamBody(signal, () => this.#open.delete(stream));
    this.#open.add(stream);
    stream.begin(body);
    return {
      status,
      headers,
      body: stream,
      cancel: () => {
        stream.close();
        return Promise.resolve();
      },
    };
  }

  close(): Promise<void> {
    this.#closed = true;
    this.dropConnections();
    return Promise.resolve();
  }

  /** Breaks every open stream, like a lost connection. */
  dropConnections(): void {
    for (const stream of [...this.#open]) stream.destroy();
  }
}

const BROKEN = () => new Error("Cannot read on: the connection was broken");

async function* replay(
  blocks: Iterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  for (const block of blocks) {
    signal?.throwIfAborted();
    yield block;
  }
}

/** Body of a watch, which buffers chunks until they are read. */
class StreamBody implements StreamWriter, AsyncIterable<Uint8Array> {
  readonly #chunks: Uint8Array[] = [];
  #stop: (() => void) | undefined;
  readonly #onClose: () => void;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = () => this.#finish(this.#signal?.reason);
  #size = 0;
  #end: { readonly error: unknown } | undefined;
  #wake: (() => void) | undefined;

  constructor(signal: AbortSignal | undefined, onClose: () => void) {
    this.#signal = signal;
    this.#onClose = onClose;
    signal?.addEventListener("abort", this.#onAbort);
  }

  /** Starts the stream, which may end before the method returns. */
  begin(stream: ResponseStream): void {
    this.#stop = stream.start(this);
    if (this.#end) this.#stop();
  }

  get pending(): number {
    return this.#size;
  }

  write(chunk: Uint8Array): void {
    if (this.#end) return;
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    this.#wake?.();
  }

  end(): void {
    this.#finish(undefined);
  }

  destroy(): void {
    this.#chunks.length = 0;
    this.#finish(BROKEN());
  }

  /** Closes the body on behalf of the reader. */
  close(): void {
    this.#chunks.length = 0;
    this.#finish(undefined);
  }

  #finish(error: unknown): void {
    if (this.#end) return;
    this.#end = { error };
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#stop?.();
    this.#onClose();
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const chunk = this.#chunks.shift();
        if (chunk !== undefined) {
          this.#size -= chunk.length;
          yield chunk;
        } else if (this.#end) {
          if (this.#end.error !== undefined) throw this.#end.error;
          return;
        } else {
          await new Promise<void>((resolve) => this.#wake = resolve);
          this.#wake = undefined;
        }
      }
    } finally {
      this.close();
    }
  }
}
