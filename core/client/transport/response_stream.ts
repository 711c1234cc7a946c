import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import type { AnswerHead } from "./response_parser.ts";
import { ChunkQueue, type ChunkSource } from "./chunk_queue.ts";
import type { HttpResponse, OpenExchange, OpenExchanges } from "./transport.ts";
import { socketQueueOptions } from "./runtime.ts";
import { connectionError } from "./transport_error.ts";
import { SHORT_BODY } from "./transport_settings.ts";

/** What brings the answer of an {@linkcode HttpExchange}. */
export interface Carrier {
  /** Holds the sender back. */
  pause(): void;
  /** Goes on. */
  resume(): void;
  /** Ends it at once: nobody waits for more. */
  stop(): void;
  /** Takes the memory of a chunk back, if it was lent. */
  release?(chunk: Uint8Array): void;
}

/** What an {@linkcode HttpExchange} needs. */
export interface HttpExchangeOptions {
  readonly origin: string;
  readonly signal: AbortSignal | undefined;
  /** Where it is noted until it ends. */
  readonly exchanges: OpenExchanges;
  readonly resolve: (response: HttpResponse) => void;
  readonly reject: (error: unknown) => void;
}

/** One request and its answer, as whoever carries them tells of them. */
export class HttpExchange implements ChunkSource, OpenExchange {
  readonly #options: HttpExchangeOptions;
  readonly #body: ChunkQueue = new ChunkQueue(this, socketQueueOptions());
  #carrier: Carrier | undefined;
  #stopped = false;

  constructor(options: HttpExchangeOptions) {
    this.#options = options;
    options.exchanges.add(this);
    options.signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  readonly #onAbort = (): void => this.abort(this.#options.signal?.reason);

  abort(reason: unknown): void {
    this.#end();
    this.#options.reject(reason);
    this.#body.fail(reason);
    this.#stop();
  }

  /** Who brings the answer from now on. */
  carriedBy(carrier: Carrier): void {
    this.#carrier = carrier;
    if (this.#stopped) carrier.stop();
  }

  /** The head of the answer came. */
  answer({ status, headers: received }: AnswerHead): void {
    const headers = { ...received };
    let body: AsyncIterable<Uint8Array> = this.#body;
    if (headers["content-encoding"] === "gzip") {
      body = this.#decompressed();
      delete headers["content-encoding"];
    }
    const length = Number(headers["content-length"] ?? Infinity);
    this.#options.resolve({
      status,
      headers,
      body,
      cancel: () => this.#cancel(length),
    });
  }

  /** The next bytes of its body came. */
  push(chunk: Uint8Array): void {
    this.#body.push(chunk);
  }

  /** Its body is complete. */
  end(): void {
    this.#end();
    this.#body.end();
  }

  /** There is no answer, or no more of it. */
  fail(error: unknown): void {
    this.#end();
    const failure = connectionError(this.#options.origin, error);
    this.#options.reject(failure);
    this.#body.fail(failure);
  }

  pause(): void {
    this.#carrier?.pause();
  }

  resume(): void {
    this.#carrier?.resume();
  }

  release(chunk: Uint8Array): void {
    this.#carrier?.release?.(chunk);
  }

  leave(): void {
    this.#end();
    this.#stop();
  }

  async #cancel(length: number): Promise<void> {
    if (length > SHORT_BODY) await this.#body.return();
    try {
      for await (const _chunk of this.#body);
    } catch {
      // The connection broke: there is nothing left to cancel.
    }
  }

  async *#decompressed(): AsyncGenerator<Uint8Array, void, undefined> {
    const gunzip = createGunzip();
    // Streams ask for the next chunk before they are done with the last.
    const chunks = this.#carrier?.release ? copies(this.#body) : this.#body;
    const source = Readable.from(chunks, { objectMode: false });
    source.on("error", (error) => gunzip.destroy(error));
    try {
      yield* source.pipe(gunzip);
    } finally {
      source.destroy();
      await this.#body.return();
    }
  }

  // A request that waits for a connection may have no carrier yet: it is stopped
  // as soon as it gets one, and its caller does not wait for that.
  #stop(): void {
    this.#stopped = true;
    this.#carrier?.stop();
  }

  #end(): void {
    this.#options.exchanges.delete(this);
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
  }
}

async function* copies(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of chunks) yield Uint8Array.from(chunk);
}
