import { Buffer } from "node:buffer";

/** What one read of TCP brings at most. */
const BUFFER_BYTES = 64 << 10;
/** How many buffers wait to be used again. */
const MOST_FREE = 8;

/**
 * Memory for sockets to read into, used again. New memory for each read would
 * cost more than the read: the collector has to find out that it is free, and
 * the system has to give and clear it.
 */
export class ReadBuffers {
  readonly #free: ArrayBufferLike[] = [];

  /** Gives memory that nobody else has; what is in it is anybody's. */
  take(): Buffer {
    return Buffer.from(
      this.#free.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES).buffer,
    );
  }

  /** Takes memory back that nobody reads any more. */
  give(memory: ArrayBufferLike): void {
    if (this.#free.length < MOST_FREE) this.#free.push(memory);
  }
}
