import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import type { ReadTarget } from "./connect.ts";
import { ResponseParser } from "./response_parser.ts";
import type { ResponseController, ResponseStream } from "./response_stream.ts";

/** Time limit of idle connections, in milliseconds; API servers have 90 s. */
const IDLE_LIMIT_MS = 60_000;
/** Time between the end of an idle connection and the server's limit, in ms. */
const IDLE_MARGIN_MS = 1_000;

/** Size of the buffer of a connection. */
const BUFFER_BYTES = 64 << 10;

export interface ConnectionPool {
  /** Takes back a connection after a complete response, for reuse. */
  idle(connection: PooledConnection): void;
  /** Removes a connection that can no longer be used. */
  closed(connection: PooledConnection): void;
}

/**
 * Connection that serves requests one after the other. A response that is not
 * read to its end, an invalid one, or bytes that belong to no response close it.
 *
 * The socket may read into one buffer, and bodies are copied from it: a new buffer
 * for each read would cost more, as its size must fit any read.
 */
export class PooledConnection implements ResponseController, ReadTarget {
  readonly #pool: ConnectionPool;
  #socket: Socket | undefined;
  #buffer: Buffer | undefined;
  #stream: ResponseStream | undefined;
  #parser: ResponseParser = new ResponseParser();
  #isBegun = false;
  /** Whether the socket keeps the process alive. */
  #isReferenced = true;
  /** Time limit of the idle connection, by its first response. */
  #idleLimit: number | undefined;
  /** Time at which the connection expires unless it was used again. */
  #expiry = Infinity;

  /**
   * Creates a connection that is not open yet.
   *
   * @param pool Pool of the connection.
   */
  constructor(pool: ConnectionPool) {
    this.#pool = pool;
  }

  /** Starts to use an open socket; it reads into the buffer or emits data. */
  open(socket: Socket): void {
    this.#socket = socket;
    if (this.#buffer === undefined) {
      socket.on("data", (chunk) => this.#receive(chunk, chunk.length));
    }
    socket.on("error", (error) => this.#fail(error));
    socket.on("end", () => this.#onEnd());
    socket.on("close", () => this.#onEnd());
  }

  readonly buffer = (): Uint8Array =>
    this.#buffer ??= Buffer.alloc(BUFFER_BYTES);

  readonly callback = (length: number): boolean => {
    this.#receive(this.buffer(), length);
    return true;
  };

  /** Whether the connection is open and was not idle for too long. */
  get isUsable(): boolean {
    return this.#socket?.writable === true &&
      performance.now() < this.#expiry;
  }

  /**
   * Sends a request.
   *
   * @param stream Receives the response.
   * @param request Bytes of the request.
   */
  send(stream: ResponseStream, request: Uint8Array): void {
    this.#stream = stream;
    this.#isBegun = false;
    this.#parser = new ResponseParser();
    if (!this.#isReferenced) {
      this.#isReferenced = true;
      this.#socket?.ref();
    }
    stream.onRequestStart(this);
    if (this.#stream === stream) this.#socket?.write(request);
  }

  pause(): void {
    this.#socket?.pause();
  }

  resume(): void {
    this.#socket?.resume();
  }

  /** Closes the connection. */
  abort(): void {
    this.#stream = undefined;
    this.#socket?.destroy();
    this.#pool.closed(this);
  }

  #receive(bytes: Uint8Array, length: number): void {
    const stream = this.#stream;
    if (stream === undefined) return this.abort();
    const parser = this.#parser;
    let end = 0;
    try {
      end = parser.read(bytes, 0, length);
    } catch (error) {
      this.#begin(stream);
      return this.#fail(error);
    }
    const body = bytes === this.#buffer
      ? Buffer.from(bytes.subarray(0, end))
      : bytes.subarray(0, end);
    if (parser.isComplete && !this.#isBegun) this.#begin(stream, body);
    else {
      this.#begin(stream);
      if (end > 0) stream.onResponseData(body);
    }
    if (parser.isComplete && this.#stream === stream) {
      this.#finish(stream, parser.position < length);
    }
  }

  /** Reports the head of the response, once, and the body if it is complete. */
  #begin(stream: ResponseStream, body?: Uint8Array): void {
    const { head } = this.#parser;
    if (this.#isBegun || head === undefined) return;
    this.#isBegun = true;
    stream.onResponseStart(head, body);
  }

  #finish(stream: ResponseStream, hasMore: boolean): void {
    const socket = this.#socket;
    const { head, keepsAlive } = this.#parser;
    this.#stream = undefined;
    // Only a refusal may come before the whole request was sent: Node reports a
    // write in a later turn, often after the response.
    const isUnsent = !!socket?.writableLength && (head?.status ?? 0) >= 300;
    if (socket === undefined || !keepsAlive || hasMore || isUnsent) {
      this.abort();
    } else {
      this.#idleLimit ??= idleLimit(head?.headers["keep-alive"]);
      this.#expiry = performance.now() + this.#idleLimit;
      if (socket.isPaused()) socket.resume();
      this.#pool.idle(this);
    }
    stream.onResponseEnd();
  }

  /** Lets the process end while the connection is idle. */
  unref(): void {
    if (this.#stream !== undefined || !this.#isReferenced) return;
    this.#isReferenced = false;
    this.#socket?.unref();
  }

  #onEnd(): void {
    const stream = this.#stream;
    if (stream === undefined) return this.abort();
    try {
      this.#parser.finish();
      this.#finish(stream, true);
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    const stream = this.#stream;
    this.abort();
    stream?.onResponseError(error);
  }
}

/** Idle time limit of a connection, by a response's `keep-alive` header. */
function idleLimit(header = ""): number {
  const [, seconds] = /timeout=(\d{1,6})/i.exec(header) ?? [];
  return seconds === undefined
    ? IDLE_LIMIT_MS
    : Math.min(IDLE_LIMIT_MS, Number(seconds) * 1_000 - IDLE_MARGIN_MS);
}
