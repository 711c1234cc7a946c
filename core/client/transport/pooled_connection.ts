import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import type { ReadTarget } from "./connect.ts";
import { ResponseParser } from "./response_parser.ts";
import type { ResponseController, ResponseStream } from "./response_stream.ts";

/** Time after which an idle connection is closed; API servers wait 90 seconds. */
const IDLE_LIMIT_MS = 60_000;
/** Margin before the server closes an idle connection by its own limit. */
const IDLE_MARGIN_MS = 1_000;

/** Size of the buffer of a connection. */
const BUFFER_BYTES = 64 << 10;

export interface ConnectionPool {
  /** Called when a response is complete and the connection can be used again. */
  idle(connection: PooledConnection): void;
  /** Called when the connection can no longer be used. */
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
  #buffer: Uint8Array | undefined;
  #stream: ResponseStream | undefined;
  #parser: ResponseParser = new ResponseParser();
  #isBegun = false;
  /** Whether the socket keeps the process alive. */
  #isReferenced = true;
  /** Time by which an idle connection must have been used again. */
  #expiry = Infinity;

  /** @param pool Pool of the connection. */
  constructor(pool: ConnectionPool) {
    this.#pool = pool;
  }

  /** Takes the open socket; it reads into the buffer, or emits its data. */
  open(socket: Socket): void {
    this.#socket = socket;
    if (this.#buffer === undefined) {
      socket.on("data", (chunk) => this.#receive(chunk, chunk.length));
    }
    socket.on("error", (error) => this.#fail(error));
    socket.on("end", () => this.#onEnd());
    socket.on("close", () => this.#onEnd());
  }

  buffer(): Uint8Array {
    return this.#buffer ??= new Uint8Array(BUFFER_BYTES);
  }

  callback(length: number): boolean {
    this.#receive(this.buffer(), length);
    return true;
  }

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

  /** Reports the head, once, with the body if that is complete. */
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
    if (
      socket === undefined || !keepsAlive || hasMore ||
      socket.writableLength > 0
    ) this.abort();
    else {
      this.#expiry = performance.now() + idleLimit(head?.headers["keep-alive"]);
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

/** Time that a connection may be idle, by the header `keep-alive` of a response. */
function idleLimit(header = ""): number {
  const [, seconds] = /timeout=(\d{1,6})/i.exec(header) ?? [];
  return seconds === undefined
    ? IDLE_LIMIT_MS
    : Math.min(IDLE_LIMIT_MS, Number(seconds) * 1_000 - IDLE_MARGIN_MS);
}
