import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { ChunkQueue, type ChunkSource, WholeResponse } from "./chunk_queue.ts";
import { socketQueueOptions } from "./runtime.ts";
import type { ResponseHead } from "./response_parser.ts";
import type { HttpResponse, OpenRequest, OpenRequests } from "./transport.ts";
import { connectionError } from "./transport_error.ts";
import { SHORT_BODY_BYTES } from "./transport_options.ts";

/** Control over the connection that delivers a {@linkcode ResponseStream}. */
export interface ResponseController {
  /** Pauses reading. */
  pause(): void;
  /** Resumes reading. */
  resume(): void;
  /** Ends the request; its response is no longer needed. */
  abort(): void;
  /** Returns the memory of a borrowed chunk. */
  release?(chunk: Uint8Array): void;
}

export interface ResponseStreamDeps {
  /** Origin of the server, for errors. */
  readonly origin: string;
  /** Signal of the request. */
  readonly signal: AbortSignal | undefined;
  /** Check right before the request is written to a connection. */
  readonly beforeSend?: (() => void) | undefined;
  /** Requests in progress; the stream registers itself until it ends. */
  readonly requests: OpenRequests;
  /** Callback for the response, once its head has arrived. */
  readonly resolve: (response: HttpResponse) => void;
  /** Callback for the error if there is no response. */
  readonly reject: (error: unknown) => void;
}

/**
 * Response of a request in progress: a connection delivers it, the caller reads it
 * as an {@linkcode HttpResponse}.
 */
export class ResponseStream implements ChunkSource, OpenRequest {
  readonly #deps: ResponseStreamDeps;
  readonly #number: number;
  /** Queue of the body; undefined if the body arrived with the head. */
  #queue: ChunkQueue | undefined;
  #controller: ResponseController | undefined;
  #cancelConnecting: (() => void) | undefined;
  #aborted = false;

  constructor(deps: ResponseStreamDeps) {
    this.#deps = deps;
    this.#number = deps.requests.add(this);
    deps.signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  get #body(): ChunkQueue {
    return this.#queue ??= new ChunkQueue(this, socketQueueOptions());
  }

  readonly #onAbort = (): void => this.abort(this.#deps.signal?.reason);

  /** Ends the request; the caller receives the reason. */
  abort(reason: unknown): void {
    this.#end();
    this.#deps.reject(reason);
    this.#queue?.fail(reason);
    this.#abortController();
  }

  /** Sets the function that ends the attempt to connect. */
  onConnecting(cancel: () => void): void {
    this.#cancelConnecting = cancel;
  }

  /**
   * Sets the connection that delivers the response. The connection is open, and
   * the request is written to it after this call, unless it was aborted.
   */
  onRequestStart(controller: ResponseController): void {
    this.#controller = controller;
    this.#cancelConnecting = undefined;
    if (this.#aborted) return controller.abort();
    try {
      this.#deps.beforeSend?.();
    } catch (error) {
      this.abort(error);
    }
  }

  /**
   * Reports the head of the response.
   *
   * @param whole The body, if it is complete.
   */
  onResponseStart(head: ResponseHead, whole?: Uint8Array): void {
    const isPacked = !head.isPlain &&
      head.headers["content-encoding"] === "gzip";
    if (whole !== undefined && !isPacked) {
      return this.#deps.resolve(new WholeResponse(head, whole));
    }
    const { headers, status } = head;
    if (whole !== undefined) this.#body.push(whole);
    const { "content-encoding": _coding, ...others } = isPacked ? headers : {};
    const length = Number(headers["content-length"] ?? Infinity);
    this.#deps.resolve({
      status,
      headers: isPacked ? others : headers,
      body: isPacked ? this.#decompressed() : this.#body,
      cancel: () => this.#cancel(length),
    });
  }

  /** Reports the next chunk of the body. */
  onResponseData(chunk: Uint8Array): void {
    this.#body.push(chunk);
  }

  /** Reports that the body is complete. */
  onResponseEnd(): void {
    this.#end();
    this.#queue?.end();
  }

  /** Reports that the request or the rest of the response failed. */
  onResponseError(error: unknown): void {
    this.#end();
    const failure = connectionError(this.#deps.origin, error);
    this.#deps.reject(failure);
    this.#queue?.fail(failure);
  }

  pause(): void {
    this.#controller?.pause();
  }

  resume(): void {
    this.#controller?.resume();
  }

  release(chunk: Uint8Array): void {
    this.#controller?.release?.(chunk);
  }

  leave(): void {
    this.#end();
    this.#abortController();
  }

  async #cancel(length: number): Promise<void> {
    if (length > SHORT_BODY_BYTES) await this.#body.return();
    try {
      for await (const _chunk of this.#body);
    } catch {
      // The connection failed: there is nothing to cancel.
    }
  }

  async *#decompressed(): AsyncGenerator<Uint8Array, void, undefined> {
    const gunzip = createGunzip();
    // Node streams request the next chunk before they have processed the last.
    const chunks = this.#controller?.release ? copies(this.#body) : this.#body;
    const source = Readable.from(chunks, { objectMode: false });
    source.on("error", (error) => gunzip.destroy(error));
    try {
      yield* source.pipe(gunzip);
    } finally {
      source.destroy();
      await this.#body.return();
    }
  }

  #abortController(): void {
    this.#aborted = true;
    this.#cancelConnecting?.();
    this.#controller?.abort();
  }

  #end(): void {
    this.#deps.requests.delete(this.#number);
    this.#deps.signal?.removeEventListener("abort", this.#onAbort);
  }
}

async function* copies(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of chunks) yield Uint8Array.from(chunk);
}
