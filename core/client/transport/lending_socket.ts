import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";

/** Size of a slab, in bytes; a read is at most as long. */
const SLAB_BYTES = 64 << 10;
/** Number of slabs that wait for their next use, of all sockets together. */
const MAX_FREE = 32;
/** Bytes that wait to be parsed above which the socket stops reading. */
const HIGH_WATER_MARK = 128 << 10;

/** Memory that every socket reads into; each read is copied before the next. */
const SCRATCH: Buffer = Buffer.allocUnsafeSlow(SLAB_BYTES);

/** Memory of a connection, whose parts are lent to the reader of a response. */
interface Slab {
  readonly bytes: Buffer;
  /** Number of chunks that the reader has not given back. */
  lent: number;
  /** Bytes that its socket had passed on when its filling ended. */
  until: number;
}

/** Slabs that nobody uses. */
const free: Slab[] = [];
/** All slabs by their memory. */
const slabs = new WeakMap<ArrayBufferLike, Slab>();

function newSlab(): Slab {
  const slab = {
    bytes: Buffer.allocUnsafeSlow(SLAB_BYTES),
    lent: 0,
    until: 0,
  };
  slabs.set(slab.bytes.buffer, slab);
  return slab;
}

/** Options of `net.connect` and `tls.connect` that say how a socket reads. */
export interface ReadOptions {
  readonly onread: {
    readonly buffer: Uint8Array;
    readonly callback: (length: number) => boolean;
  };
}

/**
 * Socket whose bytes lie in memory that is used again: Node allocates 64 KiB for
 * each read, which costs more than all that is done with a watch event. Reads are
 * collected in slabs, and one turn of the event loop gives one chunk.
 *
 * Chunks of one response are lent to its reader, who gives each back with
 * {@linkcode LendingSocket.release}; nothing else may keep what it has read.
 */
export class LendingSocket extends Duplex {
  readonly #socket: Socket & { readonly alpnProtocol?: unknown };
  /** Slab that is filled up to `#end`, and passed on up to `#start`. */
  #slab: Slab | undefined;
  #start = 0;
  #end = 0;
  /** Number of bytes that were passed on. */
  #passed = 0;
  /** Lengths of the chunks that wait to be read. */
  readonly #lengths: number[] = [];
  #isDue = false;
  #isFull = false;

  /**
   * Opens the socket.
   *
   * @param connect Opens a socket that reads as the options say.
   */
  constructor(connect: (options: ReadOptions) => Socket) {
    super({ readableHighWaterMark: HIGH_WATER_MARK, allowHalfOpen: false });
    const socket = this.#socket = connect({
      onread: {
        buffer: SCRATCH,
        callback: (length) => this.#take(length),
      },
    });
    socket.on("end", () => {
      this.#pass();
      this.push(null);
    });
    socket.on("error", (error) => this.destroy(error));
    socket.on("close", () => this.destroy());
  }

  /** Protocol that TLS has chosen. */
  get alpnProtocol(): unknown {
    return this.#socket.alpnProtocol;
  }

  /** Lends a chunk of a body, which must be given back by `release`. */
  lend(chunk: Uint8Array): void {
    const slab = slabs.get(chunk.buffer);
    if (slab !== undefined) slab.lent++;
  }

  /** Takes back a chunk that was lent: a socket that is idle keeps no memory. */
  release(chunk: Uint8Array): void {
    const slab = slabs.get(chunk.buffer);
    if (slab === undefined) return;
    slab.lent--;
    if (slab !== this.#slab) this.#free(slab);
    else if (slab.lent === 0 && this.#start === this.#end) this.#leaveSlab();
  }

  /** Frees a slab that is not filled any more, if nobody uses it. */
  #free(slab: Slab): void {
    // What waits to be parsed may lie in it.
    const isParsed = this.#passed - this.readableLength >= slab.until;
    if (slab.lent > 0 || !isParsed) return;
    if (free.length < MAX_FREE) free.push(slab);
  }

  /** Ends the filling of the present slab. */
  #leaveSlab(): void {
    this.#pass();
    const slab = this.#slab;
    this.#slab = undefined;
    if (slab === undefined) return;
    slab.until = this.#passed;
    this.#free(slab);
  }

  ref(): this {
    this.#socket.ref();
    return this;
  }

  unref(): this {
    this.#socket.unref();
    return this;
  }

  /**
   * Reads a chunk as it was passed on: all that wait would be joined in a copy. Of a
   * broken connection all is read at once, since undici asks no second time.
   */
  override read(size?: number): Buffer | null {
    const isWhole = size !== undefined || this.destroyed;
    return super.read(isWhole ? size : this.#lengths.shift());
  }

  /** Takes back the rest of a chunk, when the parser has paused in it. */
  override unshift(chunk: Buffer): void {
    if (chunk.length > 0) this.#lengths.unshift(chunk.length);
    super.unshift(chunk);
  }

  override _read(): void {
    if (!this.#isFull) return;
    this.#isFull = false;
    this.#socket.resume();
  }

  override _write(
    chunk: Uint8Array,
    _encoding: string,
    done: (error?: Error | null) => void,
  ): void {
    this.#socket.write(chunk, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end(done);
  }

  override _destroy(
    error: Error | null,
    done: (error?: Error | null) => void,
  ): void {
    this.#socket.destroy();
    done(error);
  }

  /** Collects the bytes of a read; false if reading must pause. */
  #take(length: number): boolean {
    let slab = this.#slab;
    if (slab === undefined || SLAB_BYTES - this.#end < length) {
      this.#leaveSlab();
      slab = this.#slab = free.pop() ?? newSlab();
      this.#start = this.#end = 0;
    }
    SCRATCH.copy(slab.bytes, this.#end, 0, length);
    this.#end += length;
    if (!this.#isDue) {
      this.#isDue = true;
      queueMicrotask(this.#passDue);
    }
    return !this.#isFull;
  }

  readonly #passDue = (): void => {
    this.#isDue = false;
    this.#pass();
  };

  /** Passes on what has been collected. */
  #pass(): void {
    if (this.#slab === undefined || this.#start === this.#end) return;
    const chunk = this.#slab.bytes.subarray(this.#start, this.#end);
    this.#start = this.#end;
    this.#passed += chunk.length;
    this.#lengths.push(chunk.length);
    if (!this.push(chunk)) this.#isFull = true;
  }
}
