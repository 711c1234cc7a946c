// By file: it needs a third of the package's memory, and on Bun the name of the
// package is another implementation.
import undiciClient from "undici/lib/dispatcher/client.js";
import type { Socket } from "node:net";
import type { Client, Dispatcher } from "undici";
import { type OpenedSocket, setReading } from "./connect.ts";
import { LendingSocket } from "./lending_socket.ts";

/** The class; the compiler takes the CommonJS file for a module. */
const HttpClient = undiciClient as unknown as typeof Client;

/** Time limit of idle connections, in milliseconds; API servers have 90 s. */
const IDLE_LIMIT_MS = 60_000;
/** Time between the end of an idle connection and the server's limit, in ms. */
const IDLE_MARGIN_MS = 1_000;
/** Maximum size of a head and of trailers, in bytes; Node has the same limit. */
const MAX_HEAD_BYTES = 16 << 10;
/** Maximum number of streams of an HTTP/2 connection. */
const MAX_STREAMS = 100;
/** Flow control window of an HTTP/2 stream, in bytes: that of undici. */
const STREAM_WINDOW_BYTES = 256 << 10;
/** Interval of pings in ms; an HTTP/2 connection that leaves two unanswered is closed. */
const PING_INTERVAL_MS = 20_000;
/** Interval of looking for requests that a server has not accepted, in milliseconds. */
const MOVE_INTERVAL_MS = 500;
/** Time from the first answer until the limit of a server is known, in ms. */
const SETTLE_MS = 100;

/** Error of a request that its connection no longer takes. */
const RETIRED = new Error("Cannot send: the server closed the connection");

/** Error of requests whose connection is closed. */
const CLOSED = new Error("Cannot read: the connection was closed");

/** Whether a request failed because its connection refused further requests. */
export function isRetired(error: unknown): boolean {
  return error === RETIRED || isSessionOver(error);
}

/**
 * Whether a request came after the session of its HTTP/2 connection had failed,
 * which undici may notice later.
 */
export function isSessionOver(error: unknown): boolean {
  return error instanceof Error &&
    Reflect.get(error, "code") === "ERR_HTTP2_INVALID_SESSION";
}

/** Request that a connection sends; undici calls it back. */
export interface Sendable extends Dispatcher.DispatchHandler {
  /** Request in the form that undici takes. */
  readonly options: Dispatcher.DispatchOptions;
  /** Whether a connection is about to write the request, or has written it. */
  readonly isStarted: boolean;
  /** Sets the connection that sends the request next. */
  assign(connection: HttpConnection): void;
  /** Hands the request, which has no response yet, to another connection. */
  moved(reason?: unknown): void;
}

/** What a connection tells the transport that opened it. */
export interface ConnectionEvents {
  /** The connection has room for another request. */
  onRoom(connection: HttpConnection): void;
  /** The connection takes no further requests; those in progress go on. */
  onGone(connection: HttpConnection): void;
}

/**
 * Connection to a server: an undici client over one socket, which never connects
 * again. HTTP/1.1 serves one request after the other, HTTP/2 many at a time.
 */
export class HttpConnection {
  /** Whether it speaks HTTP/2. */
  readonly isMultiplexed: boolean;
  /** Whether it counts among the connections of short requests. */
  isShort = false;
  readonly #opened: OpenedSocket;
  readonly #events: ConnectionEvents;
  readonly #client: Client;
  #isGone = false;
  /** Number of requests in progress. */
  #running = 0;
  /** Number of requests that the server accepts at a time. */
  #limit: number;
  /** Whether the limit of the server is known: HTTP/2 announces it at the start. */
  #isSettled = false;
  /** Timer that was set with the first answer of HTTP/2. */
  #settling: ReturnType<typeof setTimeout> | undefined;
  /** Requests of HTTP/2 without a response. */
  readonly #unanswered = new Set<Sendable>();
  /** Request of HTTP/2 that waits for the server's limit. */
  #waiting: Sendable | undefined;

  /**
   * Takes over an open socket.
   *
   * @param origin Origin of the server.
   * @param opened The socket.
   * @param events Callbacks.
   */
  constructor(origin: string, opened: OpenedSocket, events: ConnectionEvents) {
    this.#opened = opened;
    this.#events = events;
    this.isMultiplexed = opened.socket.alpnProtocol === "h2";
    this.#limit = this.isMultiplexed ? MAX_STREAMS : 1;
    let socket: OpenedSocket["socket"] | undefined = opened.socket;
    const options: Client.Options = {
      connect: (_options, callback) => {
        const first = socket;
        socket = undefined;
        queueMicrotask(() =>
          first ? callback(null, first as Socket) : callback(RETIRED, null)
        );
      },
      // The client and the readers of streams limit the time by themselves.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: IDLE_LIMIT_MS,
      keepAliveMaxTimeout: IDLE_LIMIT_MS,
      keepAliveTimeoutThreshold: IDLE_MARGIN_MS,
      maxHeaderSize: MAX_HEAD_BYTES,
      h2Options: {
        maxConcurrentStreams: MAX_STREAMS,
        // A stream that nobody reads must not stop the others.
        connectionWindowSize: MAX_STREAMS * STREAM_WINDOW_BYTES,
        pingInterval: PING_INTERVAL_MS,
      },
    };
    this.#client = new HttpClient(origin, options);
    const gone = () => this.#gone();
    this.#client.on("disconnect", gone);
    opened.socket.on("close", gone);
  }

  /** Whether it takes another request now. */
  get hasRoom(): boolean {
    return !this.#isGone && this.#running < this.#limit &&
      this.#waiting === undefined && this.#opened.socket.writable;
  }

  /** Whether it will have room when the server has announced its limit. */
  get isSettling(): boolean {
    return !this.#isGone && this.#waiting !== undefined;
  }

  /** Sends a request. */
  send(exchange: Sendable): void {
    this.#running++;
    exchange.assign(this);
    if (this.isMultiplexed) this.#unanswered.add(exchange);
    this.#client.dispatch(exchange.options, exchange);
    if (!this.isMultiplexed || exchange.isStarted) return;
    if (this.#isSettled) this.#full(exchange);
    else this.#waiting = exchange;
  }

  /** Notes that a request is about to be written. */
  started(exchange: Sendable): void {
    if (exchange !== this.#waiting) return;
    this.#waiting = undefined;
    // One stream starts before the server has announced its limit, the second after.
    if (this.#running > 1) this.#isSettled = true;
    queueMicrotask(this.#offer);
  }

  /** Notes that the server has answered a request. */
  answered(exchange: Sendable): void {
    this.#unanswered.delete(exchange);
    if (!this.isMultiplexed || this.#isSettled) return;
    // The limit comes before the first answer, but may be noticed after it.
    this.#settling ??= setTimeout(this.#settle, SETTLE_MS);
  }

  /** Takes the request back that waits for the server's limit: it is reached. */
  readonly #settle = (): void => {
    this.#isSettled = true;
    if (this.#waiting !== undefined) this.#full(this.#waiting);
  };

  /**
   * Notes that a request has ended.
   *
   * @param isUsable Whether the connection can serve another one.
   */
  ended(exchange: Sendable, isUsable: boolean): void {
    this.#running--;
    this.#unanswered.delete(exchange);
    if (exchange === this.#waiting) this.#waiting = undefined;
    const isOwn = this.#opened.socket instanceof LendingSocket;
    if ((!isUsable || isOwn) && !this.isMultiplexed) this.close();
    else queueMicrotask(this.#offer);
  }

  /**
   * Chunk of a body for its reader: a part of memory that is used again is lent
   * to one who borrows, and copied for others.
   */
  chunkFor(chunk: Uint8Array, borrows: boolean): Uint8Array {
    const { socket } = this.#opened;
    if (!(socket instanceof LendingSocket)) return chunk;
    if (!borrows) return Uint8Array.from(chunk);
    socket.lend(chunk);
    return chunk;
  }

  /** Takes back a chunk that was lent. */
  release(chunk: Uint8Array): void {
    const { socket } = this.#opened;
    if (socket instanceof LendingSocket) socket.release(chunk);
  }

  /** Whether a part of a request has not been written yet. */
  get isWriting(): boolean {
    return this.#opened.socket.writableLength > 0;
  }

  /** Stops or continues reading where a paused socket reads on. */
  pause(isPaused: boolean): void {
    if (this.isMultiplexed) return;
    const { lower } = this.#opened;
    if (lower !== undefined) setReading(lower, !isPaused);
  }

  /** Closes the connection; requests in progress fail. */
  close(): void {
    this.#gone();
    // With an error: undici would take another end for that of a response.
    this.#opened.socket.destroy(CLOSED);
    this.#opened.lower?.destroy();
  }

  /** Offers its room once undici knows whether the socket stays open. */
  readonly #offer = (): void => {
    if (this.hasRoom) this.#events.onRoom(this);
    else if (!this.isMultiplexed && this.#running === 0) this.close();
  };

  /** Takes a request back: the server accepts fewer at a time. */
  #full(exchange: Sendable): void {
    this.#limit = Math.max(1, this.#running - 1);
    this.#waiting = undefined;
    exchange.moved();
  }

  #gone(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#events.onGone(this);
    if (this.isMultiplexed) queueMicrotask(this.#moveUnanswered);
  }

  /**
   * Moves requests without a response if the server has not accepted all of them:
   * after a GOAWAY, undici would hold those back until the last stream of this
   * connection ends. It may notice one later, so this looks again.
   */
  readonly #moveUnanswered = (): void => {
    if (this.#unanswered.size === 0) return;
    if (this.#client.stats.pending > 0) {
      for (const exchange of [...this.#unanswered]) exchange.moved(RETIRED);
    } else setTimeout(this.#moveUnanswered, MOVE_INTERVAL_MS);
  };
}
