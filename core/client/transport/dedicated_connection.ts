import { buildConnector } from "undici/index.js";
import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { setImmediate } from "node:timers";
import { headerLines, type HttpRequest } from "./transport.ts";
import { AnswerReader } from "./response_parser.ts";
import type { Carrier, HttpExchange } from "./response_stream.ts";
import type { TlsOptions } from "./transport_settings.ts";

/** What may be sent as a path. */
const PATH = /^[\x21-\x7e]+$/;

/** A buffer with less space is full: a record of TLS is as long. */
const LEAST_SPACE = 16 << 10;

/** How a server is connected to, with TLS or without. */
export interface ConnectOptions extends TlsOptions {
  /** How long connecting may take, in milliseconds. */
  readonly timeout: number;
}

/** What a {@linkcode SocketCarrier} needs. */
export interface SocketCarrierOptions {
  /** The server; its path is not used. */
  readonly server: URL;
  readonly connect: ConnectOptions;
  /** Where it reads into. */
  readonly buffers: ReadBuffers;
}

/**
 * Carries one GET over a connection of its own, which ends with it. It reads a
 * long stream with less than half of undici's work: the socket reads into the
 * same memory again and again, and what it read is handed on where it lies, while
 * undici copies all of it into the memory of WebAssembly.
 *
 * What comes in one turn of the event loop is handed on in one piece, as far as
 * it lies in one buffer: a record of TLS, or a chunk that the server sent, may be
 * much smaller. The connection itself is made by undici.
 */
export class SocketCarrier implements Carrier {
  readonly #exchange: HttpExchange;
  readonly #buffers: ReadBuffers;
  readonly #answer: AnswerReader = new AnswerReader();
  readonly #stopped: AbortController = new AbortController();
  #socket: Socket | undefined;
  #isBegun = false;
  /** Whether its reader borrows what it is given: errors are for others to read. */
  #lends = false;
  /** Where it reads: handed on up to `#start`, read up to `#end`. */
  #buffer: Buffer;
  #start = 0;
  #end = 0;
  /** Whether what was read is handed on at the end of this turn. */
  #isDue = false;

  /**
   * Connects and sends a request.
   *
   * @param exchange Is told of the answer.
   * @param head The request, as {@linkcode requestHead} makes it.
   */
  constructor(
    exchange: HttpExchange,
    head: string,
    options: SocketCarrierOptions,
  ) {
    const { buffers, server } = options;
    this.#exchange = exchange;
    this.#buffers = buffers;
    this.#buffer = buffers.take();
    exchange.carriedBy(this);
    const connect = buildConnector({
      ...options.connect,
      allowH2: false,
      signal: this.#stopped.signal,
      onread: {
        // Asked for anew after each read.
        buffer: () => this.#buffer.subarray(this.#end),
        callback: (length) => this.#onRead(length),
      },
    });
    const { host, port, protocol } = server;
    const hostname = server.hostname.replace(/^\[|\]$/g, "");
    connect({ host, hostname, port, protocol }, (error, socket) => {
      if (error !== null) return exchange.fail(error);
      this.#socket = socket;
      socket.on("error", (error) => this.#fail(error));
      socket.on("end", () => this.#onEnd());
      socket.write(head, "latin1");
    });
  }

  pause(): void {
    this.#socket?.pause();
  }

  resume(): void {
    this.#socket?.resume();
  }

  stop(): void {
    this.#stopped.abort();
  }

  release({ buffer, byteLength, byteOffset }: Uint8Array): void {
    if (!this.#lends) return;
    const left = buffer.byteLength - byteOffset - byteLength;
    // The last part of a buffer is the one behind which nothing more was read.
    if (left < LEAST_SPACE) this.#buffers.give(buffer);
  }

  /** Takes what was read; says that reading may go on. */
  #onRead(length: number): boolean {
    const answer = this.#answer;
    try {
      this.#end = answer.read(this.#buffer, this.#end, this.#end + length);
      this.#begin();
      if (answer.isComplete) this.#finish();
      else if (this.#buffer.length - this.#end < LEAST_SPACE) this.#turnOver();
      else if (!this.#isDue && this.#end > this.#start) {
        this.#isDue = true;
        setImmediate(this.#atEndOfTurn);
      }
    } catch (error) {
      this.#begin();
      this.#fail(error);
    }
    return true;
  }

  /** Tells of the head, once. */
  #begin(): void {
    const { head } = this.#answer;
    if (this.#isBegun || head === undefined) return;
    this.#isBegun = true;
    this.#lends = head.status < 300;
    this.#exchange.answer(head);
  }

  readonly #atEndOfTurn = (): void => {
    this.#isDue = false;
    this.#handOn();
  };

  #turnOver(): void {
    this.#handOn();
    this.#buffer = this.#buffers.take();
    this.#start = this.#end = 0;
  }

  #handOn(): void {
    if (this.#start === this.#end) return;
    const part = this.#buffer.subarray(this.#start, this.#end);
    this.#start = this.#end;
    this.#exchange.push(this.#lends ? part : Uint8Array.from(part));
  }

  #onEnd(): void {
    try {
      this.#answer.finish();
      this.#finish();
    } catch (error) {
      this.#fail(error);
    }
  }

  #finish(): void {
    this.#handOn();
    this.#exchange.end();
    this.stop();
  }

  #fail(error: unknown): void {
    this.#handOn();
    this.#exchange.fail(error);
    this.stop();
  }
}

/**
 * Writes a GET down as it is sent.
 *
 * @param path Path and query, the server's own before them.
 * @throws {TypeError} If it has what cannot be sent.
 */
export function requestHead(
  request: HttpRequest,
  address: { readonly host: string; readonly path: string },
): string {
  const { host, path } = address;
  if (!PATH.test(path)) {
    throw new TypeError(
      `Cannot send a request: its path must be printable ASCII without spaces: received ${
        JSON.stringify(path)
      }`,
    );
  }
  const lines = headerLines({
    ...request,
    headers: {
      host,
      "accept-encoding": "gzip",
      ...request.headers,
      connection: "close",
    },
  });
  const headers = lines.map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${path} HTTP/1.1\r\n${headers.join("")}\r\n`;
}

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
