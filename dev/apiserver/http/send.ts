import { Buffer } from "node:buffer";
import type { ServerResponse as Http1Response } from "node:http";
import type { Http2ServerResponse, ServerHttp2Stream } from "node:http2";
import process from "node:process";
import type { Writable } from "node:stream";
import { setImmediate } from "node:timers";
import {
  isStream,
  type ServerResponse,
  type StreamWriter,
} from "./exchange.ts";

/** Response over HTTP/1.1 or HTTP/2. */
export type Response = Http1Response | Http2ServerResponse;

/** Code of HTTP/2 with which Go's server resets a stream that it breaks off. */
const INTERNAL_ERROR = 2;

/** Stream of a message over HTTP/2; undefined over HTTP/1.1. */
export function streamOf(message: object): ServerHttp2Stream | undefined {
  return Reflect.get(message, "stream");
}

/** Socket or stream that a response is written to. */
function targetOf(response: Response): Writable {
  return streamOf(response) ?? plain(response);
}

/** Whether the client has gone, or the response was broken off. */
export function isOver(response: Response): boolean {
  return targetOf(response).destroyed;
}

/**
 * Breaks off a request: over HTTP/1.1 its connection, over HTTP/2 its stream
 * alone. What was written before is sent.
 */
export function breakOff(message: { destroy(): unknown }): void {
  const stream = streamOf(message);
  // Node holds back until the next tick what is written in this one.
  if (stream === undefined) process.nextTick(() => message.destroy());
  else if (!stream.destroyed) stream.close(INTERNAL_ERROR);
}

/** Sets status and headers of a response. */
export function writeHead(
  response: Response,
  status: number,
  headers: ServerResponse["headers"],
): void {
  plain(response).writeHead(
    status,
    headers as Record<string, string | string[]>,
  );
}

/** The response, with the methods that both kinds have. */
function plain(response: Response): Http1Response {
  return response as Http1Response;
}

/** Sends a response to a request. */
export function send(
  response: Response,
  { status, headers, body }: ServerResponse,
): void {
  if (body instanceof Uint8Array) {
    const length = String(body.length);
    writeHead(response, status, { ...headers, "content-length": length });
    response.end(body);
    return;
  }
  writeHead(response, status, headers);
  const target = targetOf(response);
  if (isStream(body)) {
    plain(response).flushHeaders();
    const stop = body.start(new SocketWriter(response));
    response.once("close", stop);
    return;
  }
  // A stream has no head of its own.
  if (target !== response) plain(response).flushHeaders();
  sendBlocks(target, body[Symbol.iterator]());
}

/** Sends blocks of a body with back-pressure. */
function sendBlocks(target: Writable, blocks: Iterator<Uint8Array>): void {
  while (!target.destroyed) {
    const { done, value } = blocks.next();
    if (done) {
      target.end();
      return;
    }
    if (!target.write(value)) {
      target.once("drain", () => sendBlocks(target, blocks));
      return;
    }
  }
}

/**
 * Writer of a stream to a socket. Combines the writes of one event-loop
 * iteration: under load many requests are answered in one iteration, and each
 * watch receives all their events by one system call.
 */
class SocketWriter implements StreamWriter {
  readonly #response: Response;
  readonly #target: Writable;
  #waiting: Uint8Array[] = [];
  #size = 0;
  #flushing = false;
  #ended = false;

  constructor(response: Response) {
    this.#response = response;
    this.#target = targetOf(response);
  }

  get pending(): number {
    return this.#size + this.#target.writableLength;
  }

  write(chunk: Uint8Array): void {
    if (this.#ended) return;
    this.#waiting.push(chunk);
    this.#size += chunk.length;
    if (this.#flushing) return;
    this.#flushing = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#flushing = false;
    if (this.#waiting.length === 0 || this.#target.destroyed) return;
    const [only] = this.#waiting;
    const chunk = this.#waiting.length === 1 && only
      ? only
      : Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#size = 0;
    this.#target.write(chunk);
  }

  end(): void {
    if (this.#ended) return;
    this.#flush();
    this.#ended = true;
    this.#target.end();
  }

  destroy(): void {
    if (this.#ended) return;
    this.#flush();
    this.#ended = true;
    breakOff(this.#response);
  }
}
