import type { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { ResponseParser } from "./response_parser.ts";
import type { ResponseController, ResponseStream } from "./response_stream.ts";

/** Time after which an idle connection is closed; API servers wait 90 seconds. */
const IDLE_LIMIT_MS = 60_000;
/** Margin before the server closes an idle connection by its own limit. */
const IDLE_MARGIN_MS = 1_000;

/** Pool of a {@linkcode PooledConnection}. */
export interface ConnectionPool {
  /** Called when a response is complete and the connection can be used again. */
  idle(connection: PooledConnection): void;
  /** Called when the connection can no longer be used. */
  closed(connection: PooledConnection): void;
}

/**
 * Connection that serves requests one after the other. A response that is not
 * read to its end, an invalid one, or bytes that belong to no response close it.
 */
export class PooledConnection implements ResponseController {
  readonly #socket: Socket;
  readonly #pool: ConnectionPool;
  #stream: ResponseStream | undefined;
  #parser: ResponseParser = new ResponseParser();
  #isBegun = false;
  /** Time by which an idle connection must have been used again. */
  #expiry = Infinity;

  /**
   * @param socket Open socket.
   * @param pool Pool of the connection.
   */
  constructor(socket: Socket, pool: ConnectionPool) {
    this.#socket = socket;
    this.#pool = pool;
    socket.on("data", (chunk) => this.#onData(chunk));
    socket.on("error", (error) => this.#fail(error));
    socket.on("end", () => this.#onEnd());
    socket.on("close", () => this.#onEnd());
  }

  /** Whether the connection is open and was not idle for too long. */
  get isUsable(): boolean {
    return !this.#socket.destroyed && this.#socket.writable &&
      performance.now() < this.#expiry;
  }

  /**
   * Sends a request.
   *
   * @param stream Receives the response.
   * @param request Bytes of the request.
   */
  send(stream: ResponseStream, request: Uint8Array): void {
    const socket = this.#socket;
    this.#stream = stream;
    this.#isBegun = false;
    this.#parser = new ResponseParser();
    socket.ref();
    stream.onRequestStart(this);
    if (this.#stream === stream) socket.write(request);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Closes the connection. */
  abort(): void {
    this.#stream = undefined;
    this.#socket.destroy();
    this.#pool.closed(this);
  }

  #onData(chunk: Buffer): void {
    const stream = this.#stream;
    if (stream === undefined) return this.abort();
    const parser = this.#parser;
    let end = 0;
    try {
      end = parser.read(chunk);
    } catch (error) {
      this.#begin(stream);
      return this.#fail(error);
    }
    this.#begin(stream);
    if (end > 0) stream.onResponseData(chunk.subarray(0, end));
    if (parser.isComplete && this.#stream === stream) {
      this.#finish(stream, parser.position < chunk.length);
    }
  }

  /** Reports the head, once. */
  #begin(stream: ResponseStream): void {
    const { head } = this.#parser;
    if (this.#isBegun || head === undefined) return;
    this.#isBegun = true;
    stream.onResponseStart(head);
  }

  #finish(stream: ResponseStream, hasMore: boolean): void {
    const socket = this.#socket;
    const { head, keepsAlive } = this.#parser;
    this.#stream = undefined;
    if (!keepsAlive || hasMore || socket.writableLength > 0) this.abort();
    else {
      this.#expiry = performance.now() + idleLimit(head?.headers["keep-alive"]);
      if (socket.isPaused()) socket.resume();
      // An idle connection does not keep the process alive.
      socket.unref();
      this.#pool.idle(this);
    }
    stream.onResponseEnd();
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
function idleLimit(header: string | undefined): number {
  const [, seconds] = /timeout=(\d{1,6})/i.exec(header ?? "") ?? [];
  return seconds === undefined
    ? IDLE_LIMIT_MS
    : Math.min(IDLE_LIMIT_MS, Number(seconds) * 1_000 - IDLE_MARGIN_MS);
}
