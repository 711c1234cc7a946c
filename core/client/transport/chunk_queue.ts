import type { HttpResponse } from "./transport.ts";

/** Source of a {@linkcode ChunkQueue}, which calls these methods. */
export interface ChunkSource {
  /** Stops pushing: the queue is full. */
  pause(): void;
  /** Continues pushing: the reader has caught up. */
  resume(): void;
  /** Ends the source: the reader left before the end. */
  leave(): void;
  /** Takes back a chunk that the reader has done with, as it asks for the next. */
  release?(chunk: Uint8Array): void;
}

export interface ChunkQueueOptions {
  /**
   * Size of the queue above which the source is paused, in bytes.
   *
   * @default {262_144}
   */
  readonly highWaterMark?: number | undefined;
  /**
   * Maximum size of the queue, in bytes; reading fails beyond it. For sources
   * that cannot be paused.
   *
   * @default {Infinity}
   */
  readonly limit?: number | undefined;
}

interface Waiter {
  readonly resolve: (result: IteratorResult<Uint8Array, void>) => void;
  readonly reject: (error: unknown) => void;
}

const DONE: IteratorResult<Uint8Array, void> = Object.freeze({
  done: true,
  value: undefined,
});

/**
 * Queue of chunks between a source that pushes and one reader that pulls, with
 * back-pressure. Chunks that were pushed before a failure are read before the
 * failure is thrown.
 */
export class ChunkQueue
  implements AsyncIterable<Uint8Array>, AsyncIterator<Uint8Array, void> {
  readonly #source: ChunkSource;
  readonly #highWaterMark: number;
  readonly #limit: number;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;
  #paused = false;
  #state: "open" | "ended" | "failed" | "left" = "open";
  #failure: unknown;
  #waiter: Waiter | undefined;
  /** Chunk that the reader has. */
  #lent: Uint8Array | undefined;

  constructor(source: ChunkSource, options: ChunkQueueOptions = {}) {
    this.#source = source;
    this.#highWaterMark = options.highWaterMark ?? 256 << 10;
    this.#limit = options.limit ?? Infinity;
  }

  /** Whether the queue has ended, failed or been left. */
  get closed(): boolean {
    return this.#state !== "open";
  }

  /** Number of bytes that wait to be read. */
  get size(): number {
    return this.#bytes;
  }

  /** Appends a chunk; ignored after the end. */
  push(chunk: Uint8Array): void {
    if (this.#state !== "open") return;
    const waiter = this.#waiter;
    if (waiter !== undefined) {
      this.#waiter = undefined;
      this.#lent = chunk;
      waiter.resolve({ done: false, value: chunk });
      return;
    }
    this.#chunks.push(chunk);
    this.#bytes += chunk.byteLength;
    if (!this.#paused && this.#bytes > this.#highWaterMark) {
      this.#paused = true;
      this.#source.pause();
    }
    if (this.#bytes > this.#limit) {
      this.fail(
        new RangeError(
          `Cannot read a stream: at most ${this.#limit} bytes may be unread: received ${this.#bytes}`,
        ),
      );
      this.#source.leave();
    }
  }

  /** Ends the queue: no further chunk follows. */
  end(): void {
    if (this.#state !== "open") return;
    this.#state = "ended";
    this.#waiter?.resolve(DONE);
    this.#waiter = undefined;
  }

  /** Fails the queue: no further chunk follows, and none that waits if `drops` is set. */
  fail(error: unknown, drops = false): void {
    if (this.#state !== "open") return;
    if (drops) this.#chunks.length = this.#bytes = 0;
    this.#state = "failed";
    this.#failure = error;
    this.#waiter?.reject(error);
    if (this.#waiter !== undefined) this.#state = "left";
    this.#waiter = undefined;
  }

  next(): Promise<IteratorResult<Uint8Array, void>> {
    if (this.#lent !== undefined) this.#source.release?.(this.#lent);
    const chunk = this.#lent = this.#chunks.shift();
    if (chunk !== undefined) {
      this.#bytes -= chunk.byteLength;
      if (this.#paused && this.#bytes <= this.#highWaterMark / 2) {
        this.#paused = false;
        this.#source.resume();
      }
      return Promise.resolve({ done: false, value: chunk });
    }
    if (this.#state === "failed") {
      this.#state = "left";
      return Promise.reject(this.#failure);
    }
    if (this.#state !== "open") return Promise.resolve(DONE);
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
    });
  }

  return(): Promise<IteratorResult<Uint8Array, void>> {
    if (this.#state === "open") {
      this.#state = "left";
      this.#source.leave();
      this.#waiter?.resolve(DONE);
      this.#waiter = undefined;
    }
    this.#chunks.length = 0;
    this.#bytes = 0;
    return Promise.resolve(DONE);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

/** Body that has arrived completely; readers may take its bytes directly. */
export class WholeBody implements AsyncIterable<Uint8Array> {
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    if (this.bytes.length > 0) yield this.bytes;
  }
}

/** Response that has arrived completely. */
export class WholeResponse implements HttpResponse {
  readonly status: number;
  readonly headers: HttpResponse["headers"];
  readonly body: WholeBody;
  readonly cancel: () => Promise<void> = nothing;

  constructor(
    status: number,
    headers: HttpResponse["headers"],
    body: Uint8Array,
  ) {
    this.status = status;
    this.headers = headers;
    this.body = new WholeBody(body);
  }
}

/** Returns a resolved promise. */
function nothing(): Promise<void> {
  return Promise.resolve();
}

/** Decodes chunks of UTF-8, which may be split anywhere, as one text. */
export async function textOf(
  chunks: AsyncIterable<Uint8Array>,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of chunks) {
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
