/** What a {@linkcode ChunkQueue} asks of whoever fills it. */
export interface ChunkSource {
  /** Enough is waiting: hold the sender back. */
  pause(): void;
  /** The reader caught up: go on. */
  resume(): void;
  /** The reader left before the end: nothing more is wanted. */
  leave(): void;
  /**
   * The reader asked for what follows a chunk: it is done with this one. Not
   * told of chunks that are lost when the reading fails or is left.
   */
  release?(chunk: Uint8Array): void;
}

/** Options of {@linkcode ChunkQueue}. */
export interface ChunkQueueOptions {
  /**
   * How many bytes may wait before the source is paused.
   *
   * @default {262_144}
   */
  readonly highWaterMark?: number | undefined;
  /**
   * How many bytes may wait at all; more make the reading fail. It matters only
   * where the source cannot be paused.
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
 * Chunks on their way from a source that pushes to one reader that pulls. What
 * was pushed before a failure is read before the failure is thrown.
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
  /** The chunk that the reader is at. */
  #read: Uint8Array | undefined;

  constructor(source: ChunkSource, options: ChunkQueueOptions = {}) {
    this.#source = source;
    this.#highWaterMark = options.highWaterMark ?? 256 << 10;
    this.#limit = options.limit ?? Infinity;
  }

  /** Whether nothing more will be pushed or read. */
  get closed(): boolean {
    return this.#state !== "open";
  }

  /** Adds a chunk; ignored after the end. */
  push(chunk: Uint8Array): void {
    if (this.#state !== "open") return;
    const waiter = this.#waiter;
    if (waiter !== undefined) {
      this.#waiter = undefined;
      this.#read = chunk;
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
          `Cannot read on: what arrives must be read before it is ${this.#limit} bytes: received ${this.#bytes}`,
        ),
      );
      this.#source.leave();
    }
  }

  /** Says that all was pushed. */
  end(): void {
    if (this.#state !== "open") return;
    this.#state = "ended";
    this.#waiter?.resolve(DONE);
    this.#waiter = undefined;
  }

  /** Says that nothing more will come, and why. */
  fail(error: unknown): void {
    if (this.#state !== "open") return;
    this.#state = "failed";
    this.#failure = error;
    this.#waiter?.reject(error);
    if (this.#waiter !== undefined) this.#state = "left";
    this.#waiter = undefined;
  }

  next(): Promise<IteratorResult<Uint8Array, void>> {
    if (this.#read !== undefined) this.#source.release?.(this.#read);
    const chunk = this.#read = this.#chunks.shift();
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

/** The text of chunks of UTF-8, which may be cut anywhere. */
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
