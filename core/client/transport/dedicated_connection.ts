import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { setImmediate } from "node:timers";
import type { Connector } from "./connect.ts";
import { ResponseParser } from "./response_parser.ts";
import type { ResponseController, ResponseStream } from "./response_stream.ts";

/** Size of a TLS record; a buffer with less free space counts as full. */
const MIN_FREE_BYTES = 16 << 10;

/** Time between two reads in milliseconds below which more are expected to follow. */
const BURST_MS = 1;

export interface DedicatedConnectionDeps {
  /** Opener of the connection. */
  readonly connector: Connector;
  /** Pool of read buffers. */
  readonly buffers: ReadBuffers;
}

/**
 * Connection for a single GET request with a long response, such as a watch: the
 * socket reads into reused buffers, whose bytes are delivered without copying.
 *
 * Bytes of a burst that arrive within one turn of the event loop are delivered as
 * one chunk per buffer, as TLS records and HTTP chunks may be much smaller; the
 * first ones are delivered immediately.
 */
export class DedicatedConnection implements ResponseController {
  readonly #stream: ResponseStream;
  readonly #buffers: ReadBuffers;
  readonly #parser: ResponseParser = new ResponseParser();
  readonly #cancel: () => void;
  #socket: Socket | undefined;
  #isBegun = false;
  /** Whether the response has ended or is no longer needed. */
  #isOver = false;
  /** Whether chunks are borrowed; those of error responses are copied. */
  #lends = false;
  /** Current buffer: delivered up to `#start`, filled up to `#end`. */
  #buffer: Buffer;
  #start = 0;
  #end = 0;
  /** Whether a delivery is scheduled. */
  #isDue = false;
  /** Time of the last read that scheduled one. */
  #readAt = -Infinity;

  /**
   * Connects and sends a request.
   *
   * @param stream Receives the response.
   * @param request Bytes of the request.
   * @param deps Connector and buffers.
   */
  constructor(
    stream: ResponseStream,
    request: Uint8Array,
    { buffers, connector }: DedicatedConnectionDeps,
  ) {
    this.#stream = stream;
    this.#buffers = buffers;
    this.#buffer = buffers.take();
    this.#cancel = connector.open((error, socket) => {
      if (socket === undefined) return stream.onResponseError(error);
      this.#socket = socket;
      socket.on("error", (error) => this.#fail(error));
      socket.on("end", () => this.#onEnd());
      socket.on("close", () => this.#onEnd());
      stream.onRequestStart(this);
      if (!socket.destroyed) socket.write(request);
    }, {
      buffer: () => this.#buffer.subarray(this.#end),
      callback: (length) => this.#onRead(length),
    });
    stream.onConnecting(this.#cancel);
  }

  pause(): void {
    this.#socket?.pause();
  }

  resume(): void {
    this.#socket?.resume();
  }

  abort(): void {
    this.#isOver = true;
    this.#cancel();
    this.#socket?.destroy();
  }

  release({ buffer, byteLength, byteOffset }: Uint8Array): void {
    if (!this.#lends) return;
    const left = buffer.byteLength - byteOffset - byteLength;
    // Only the last chunk of a buffer has so little space behind it.
    if (left < MIN_FREE_BYTES) this.#buffers.give(buffer);
  }

  /** Parses the bytes of a read; returns true to continue reading. */
  #onRead(length: number): boolean {
    const parser = this.#parser;
    try {
      this.#end = parser.read(this.#buffer, this.#end, this.#end + length);
      this.#begin();
      if (parser.isComplete) this.#finish();
      else if (this.#buffer.length - this.#end < MIN_FREE_BYTES) {
        this.#nextBuffer();
      } else if (!this.#isDue && this.#end > this.#start) {
        this.#isDue = true;
        const now = performance.now();
        if (now - this.#readAt < BURST_MS) setImmediate(this.#deliverDue);
        else queueMicrotask(this.#deliverDue);
        this.#readAt = now;
      }
    } catch (error) {
      this.#begin();
      this.#fail(error);
    }
    return true;
  }

  /** Reports the head of the response, once. */
  #begin(): void {
    const { head } = this.#parser;
    if (this.#isBegun || head === undefined) return;
    this.#isBegun = true;
    this.#lends = head.status < 300;
    this.#stream.onResponseStart(head);
  }

  readonly #deliverDue = (): void => {
    this.#isDue = false;
    this.#deliver();
  };

  #nextBuffer(): void {
    this.#deliver();
    this.#buffer = this.#buffers.take();
    this.#start = this.#end = 0;
  }

  #deliver(): void {
    if (this.#start === this.#end) return;
    const part = this.#buffer.subarray(this.#start, this.#end);
    this.#start = this.#end;
    this.#stream.onResponseData(this.#lends ? part : Uint8Array.from(part));
  }

  #onEnd(): void {
    if (this.#isOver) return;
    try {
      this.#parser.finish();
      this.#finish();
    } catch (error) {
      this.#fail(error);
    }
  }

  #finish(): void {
    this.#deliver();
    this.#stream.onResponseEnd();
    this.abort();
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    this.#deliver();
    this.#stream.onResponseError(error);
    this.abort();
  }
}

/** Size of a buffer; a TCP read returns at most this much. */
const BUFFER_BYTES = 64 << 10;
/** Maximum number of free buffers that are kept. */
const MAX_FREE_BUFFERS = 8;

/**
 * Pool of read buffers for sockets. Allocating a buffer for each read would cost
 * more than the read itself, because of garbage collection and of clearing
 * memory.
 */
export class ReadBuffers {
  readonly #free: ArrayBufferLike[] = [];

  /** Takes a buffer out of the pool; its content is arbitrary. */
  take(): Buffer {
    return Buffer.from(
      this.#free.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES).buffer,
    );
  }

  /** Returns memory that is no longer read to the pool. */
  give(memory: ArrayBufferLike): void {
    if (this.#free.length < MAX_FREE_BUFFERS) this.#free.push(memory);
  }
}
