import {
  type HttpRequest,
  type HttpResponse,
  type StreamConnection,
  StreamRefusedError,
  type StreamRequest,
  type Transport,
} from "@coracle/operator/client";
import { ChunkQueue, nextTurn, textOf } from "@coracle/operator/internal";
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
 * Number of requests that are answered in one turn of the event loop. Without a
 * limit a client whose every answer causes a request would never let go of it:
 * answers take no I/O.
 */
const MAX_BURST = 100;

/**
 * Transport to a server in the same process, by function calls without a
 * socket.
 */
export class InProcessTransport implements Transport {
  readonly #handle: Handle;
  /** Open streams, which a lost connection breaks. */
  readonly #open: Set<{ destroy(): void }> = new Set();
  /** Number of requests in this turn of the event loop. */
  #burst = 0;
  readonly #closing = new AbortController();

  /**
   * Creates a transport that calls a handler in the same process.
   *
   * @param handle Handler of requests.
   */
  constructor(handle: Handle) {
    this.#handle = handle;
  }

  get ended(): AbortSignal {
    return this.#closing.signal;
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
    this.ended.throwIfAborted();
    signal?.throwIfAborted();
    if (this.#burst++ === 0) void nextTurn().then(() => this.#burst = 0);
    if (this.#burst > MAX_BURST) await nextTurn();
    const answer = await this.#handle({
      method,
      target: path,
      headers,
      body: typeof body === "string"
        ? encoder.encode(body)
        : body ?? new Uint8Array(),
    });
    if (signal?.aborted) {
      // A watch that nobody reads any more has to be stopped.
      if (answer) await this.#response(answer, undefined).cancel();
      throw signal.reason;
    }
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
    const stream = streamBody(signal, () => this.#open.delete(stream));
    this.#open.add(stream);
    stream.begin(body);
    const { queue } = stream;
    return {
      status,
      headers,
      body: queue,
      cancel: async () => void await queue.return(),
    };
  }

  close(): Promise<void> {
    this.#closing.abort(
      new Error(
        "Cannot send a request: the server was stopped, or its client closed",
      ),
    );
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

/** Writer of a watch, with the queue in which its chunks wait for the reader. */
interface StreamBody extends StreamWriter {
  readonly queue: ChunkQueue;
  /** Starts the stream, which may end before the method returns. */
  begin(stream: ResponseStream): void;
}

function streamBody(
  signal: AbortSignal | undefined,
  onClose: () => void,
): StreamBody {
  let stop: (() => void) | undefined;
  let isClosed = false;
  const close = () => {
    if (isClosed) return;
    isClosed = true;
    signal?.removeEventListener("abort", onAbort);
    stop?.();
    onClose();
  };
  const queue = new ChunkQueue({ pause() {}, resume() {}, leave: close });
  const onAbort = () => {
    queue.fail(signal?.reason);
    close();
  };
  signal?.addEventListener("abort", onAbort);
  return {
    queue,
    begin(stream) {
      stop = stream.start(this);
      if (isClosed) stop();
    },
    get pending() {
      return queue.size;
    },
    write: (chunk) => queue.push(chunk),
    end() {
      queue.end();
      close();
    },
    destroy() {
      queue.fail(BROKEN(), true);
      close();
    },
  };
}
