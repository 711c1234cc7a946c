import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { setImmediate } from "node:timers";
import { buildConnector } from "undici/index.js";
import { headerLines, type HttpRequest } from "./transport.ts";
import { ResponseParser } from "./response_parser.ts";
import type { ResponseController, ResponseStream } from "./response_stream.ts";
import type { TlsOptions } from "./transport_options.ts";

/** Valid paths: printable ASCII without spaces. */
const PATH = /^[\x21-\x7e]+$/;

/** Size of a TLS record; a buffer with less free space counts as full. */
const MIN_FREE_BYTES = 16 << 10;

/** Options of a TCP or TLS connection to a server. */
export interface ConnectOptions extends TlsOptions {
  /** Time limit for connecting, in milliseconds. */
  readonly timeout: number;
}

/** Dependencies of {@linkcode DedicatedConnection}. */
export interface DedicatedConnectionDeps {
  /** URL of the server; its path is not used. */
  readonly server: URL;
  /** Options of the connection. */
  readonly connect: ConnectOptions;
  /** Pool of read buffers. */
  readonly buffers: ReadBuffers;
}

/**
 * Connection for a single GET request with a long response, such as a watch. It
 * needs less than half of the CPU time of undici: the socket reads into reused
 * buffers, whose bytes are delivered without copying, while undici copies all
 * bytes into the memory of WebAssembly.
 *
 * Bytes that arrive within one turn of the event loop are delivered as one chunk
 * per buffer; TLS records and HTTP chunks may be much smaller. The connection
 * itself is opened by undici's connector.
 */
export class DedicatedConnection implements ResponseController {
  readonly #stream: ResponseStream;
  readonly #buffers: ReadBuffers;
  readonly #parser: ResponseParser = new ResponseParser();
  readonly #aborted: AbortController = new AbortController();
  #socket: Socket | undefined;
  #isBegun = false;
  /** Whether chunks are borrowed; those of error responses are copied. */
  #lends = false;
  /** Current buffer: delivered up to `#start`, filled up to `#end`. */
  #buffer: Buffer;
  #start = 0;
  #end = 0;
  /** Whether a delivery at the end of this turn is scheduled. */
  #isDue = false;

  /**
   * Connects and sends a request.
   *
   * @param stream Receives the response.
   * @param head The encoded request, from {@linkcode requestHead}.
   * @param deps Server, connection options and buffers.
   */
  constructor(
    stream: ResponseStream,
    head: string,
    deps: DedicatedConnectionDeps,
  ) {
    const { buffers, server } = deps;
    this.#stream = stream;
    this.#buffers = buffers;
    this.#buffer = buffers.take();
    stream.onRequestStart(this);
    const connect = buildConnector({
      ...deps.connect,
      allowH2: false,
      signal: this.#aborted.signal,
      onread: {
        // Called again after each read.
        buffer: () => this.#buffer.subarray(this.#end),
        callback: (length) => this.#onRead(length),
      },
    });
    const { host, port, protocol } = server;
    const hostname = server.hostname.replace(/^\[|\]$/g, "");
    connect({ host, hostname, port, protocol }, (error, socket) => {
      if (error !== null) return stream.onResponseError(this, error);
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

  abort(): void {
    this.#aborted.abort();
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
        setImmediate(this.#atEndOfTurn);
      }
    } catch (error) {
      this.#begin();
      this.#fail(error);
    }
    return true;
  }

  /** Reports the head, once. */
  #begin(): void {
    const { head } = this.#parser;
    if (this.#isBegun || head === undefined) return;
    this.#isBegun = true;
    this.#lends = head.status < 300;
    this.#stream.onResponseStart(this, head.status, head.headers);
  }

  readonly #atEndOfTurn = (): void => {
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
    this.#stream.onResponseData(
      this,
      this.#lends ? part : Uint8Array.from(part),
    );
  }

  #onEnd(): void {
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
    this.#deliver();
    this.#stream.onResponseError(this, error);
    this.abort();
  }
}

/**
 * Encodes the head of a GET request.
 *
 * @param address Host and complete path, including the server's prefix.
 * @throws {TypeError} If the path or a header is invalid.
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
