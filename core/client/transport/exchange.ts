import type { Dispatcher } from "undici";
import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { ChunkQueue, type ChunkSource, WholeResponse } from "./chunk_queue.ts";
import {
  type HttpConnection,
  isRetired,
  isSessionOver,
  type Sendable,
} from "./http_connection.ts";
import type {
  HttpRequest,
  HttpResponse,
  OpenRequest,
  OpenRequests,
} from "./transport.ts";
import { connectionError } from "./transport_error.ts";
import { SHORT_BODY_BYTES } from "./transport_options.ts";
import { errorMessage } from "../../error_text.ts";

/** Maximum number of interim responses (1xx) before a response. */
const MAX_INTERIM = 32;
/** Number of connections that may refuse a request before that is an error. */
const MAX_MOVES = 8;

/**
 * Reason that undici gets for a request that ends; its code says that the connection
 * is no worse for it.
 */
const ENDED = Object.assign(new Error("Cannot read: the reader left"), {
  code: "UND_ERR_INFO",
});

type Controller = Dispatcher.DispatchController;
type Headers = Parameters<
  NonNullable<Dispatcher.DispatchHandler["onResponseStart"]>
>[2];

export interface ExchangeDeps {
  /** Origin of the server, for errors. */
  readonly origin: string;
  readonly request: HttpRequest;
  /** The request in the form that undici takes. */
  readonly options: Dispatcher.DispatchOptions;
  /** Requests in progress; the exchange registers itself until it ends. */
  readonly requests: OpenRequests;
  /** Callback for the response, once its head has arrived. */
  readonly resolve: (response: HttpResponse) => void;
  /** Callback for the error if there is no response. */
  readonly reject: (error: unknown) => void;
  /** Callback for a request that another connection has to send. */
  readonly onMoved: (exchange: Exchange) => void;
}

/**
 * Request in progress and its response: an undici client delivers it, the caller
 * reads it as an {@linkcode HttpResponse}.
 */
export class Exchange implements ChunkSource, OpenRequest, Sendable {
  readonly #deps: ExchangeDeps;
  readonly #number: number;
  #connection: HttpConnection | undefined;
  #controller: Controller | undefined;
  /** Function that ends what the request waits for, before it has a connection. */
  #giveUp: (() => void) | undefined;
  #isOver = false;
  #moves: number;
  #interim = 0;
  #status = 0;
  #headers: Record<string, string> = {};
  /** Whether the reader gives the chunks of the body back. */
  #lends = false;
  /** Whether the caller has the response. */
  #isBegun = false;
  /** Body that arrived before the caller had the response. */
  #first: Uint8Array | undefined;
  /** Queue of the body; undefined if the body arrived with the head. */
  #queue: ChunkQueue | undefined;

  constructor(deps: ExchangeDeps, moves = 0) {
    this.#deps = deps;
    this.#moves = moves;
    this.#number = deps.requests.add(this);
    deps.request.signal?.addEventListener("abort", this.#onAbort, {
      once: true,
    });
  }

  /** Request in the form that undici takes. */
  get options(): Dispatcher.DispatchOptions {
    return this.#deps.options;
  }

  /** Whether the response may be long. */
  get isStream(): boolean {
    return this.#deps.request.mayPause === true;
  }

  /** Whether the reader gives chunks back, so that their memory is used again. */
  get borrows(): boolean {
    return this.#deps.request.borrowsChunks === true;
  }

  /**
   * Whether HTTP/2 may carry the request: only reads, whose repetition by undici is
   * harmless, and none with headers of several lines, which undici would join, or
   * whose cut body must not read like a whole one.
   */
  get canMultiplex(): boolean {
    const { method, mustBeWhole, repeatedHeaders } = this.#deps.request;
    return this.isStream && method === "GET" && mustBeWhole !== true &&
      repeatedHeaders === undefined;
  }

  /** Whether a connection is about to write the request, or has written it. */
  get isStarted(): boolean {
    return this.#controller !== undefined;
  }

  /** Sets the function that ends what the request waits for. */
  waitFor(giveUp: () => void): void {
    this.#giveUp = giveUp;
  }

  /** Sets the connection that sends the request next. */
  assign(connection: HttpConnection): void {
    this.#connection = connection;
    this.#giveUp = undefined;
  }

  readonly #onAbort = (): void => this.abort(this.#deps.request.signal?.reason);

  /** Ends the request; the caller receives the reason. */
  abort(reason: unknown): void {
    if (this.#isOver) return;
    this.#deps.reject(reason);
    this.#queue?.fail(reason);
    this.leave();
  }

  /**
   * Hands the request, which has no response yet, to another connection.
   *
   * @param reason Error of the request if that happens too often.
   */
  moved(reason: unknown = undefined): void {
    if (this.#isOver) return;
    this.leave();
    const { onMoved, origin, reject } = this.#deps;
    if (this.#moves >= MAX_MOVES) reject(connectionError(origin, reason));
    else onMoved(new Exchange(this.#deps, this.#moves + 1));
  }

  /** Fails the request: there is no connection. */
  fail(error: unknown): void {
    if (this.#isOver) return;
    // The head may have arrived together with the failure of its body.
    if (this.#status !== 0) this.#begin();
    const failure = connectionError(this.#deps.origin, error);
    this.#deps.reject(failure);
    this.#queue?.fail(failure);
    this.#finish(false);
  }

  onRequestStart(controller: Controller): void {
    // Thrown errors leave the connection open; an abort would close it.
    if (this.#isOver) throw new Error("Cannot send: the request was aborted");
    try {
      this.#deps.request.beforeSend?.();
    } catch (error) {
      this.#deps.reject(error);
      this.#finish(true);
      throw error;
    }
    this.#controller = controller;
    this.#connection?.started(this);
  }

  onResponseStart(_: Controller, status: number, headers: Headers): void {
    if (this.#isOver) return;
    if (status < 200) {
      if (++this.#interim <= MAX_INTERIM) return;
      throw new Error(
        `Cannot read a response: at most ${MAX_INTERIM} interim ones may precede it`,
      );
    }
    const coding = headers["transfer-encoding"] ?? "chunked";
    if (String(coding).toLowerCase() !== "chunked") {
      throw new Error(
        "Cannot read a response: its transfer coding must be chunked",
      );
    }
    this.#connection?.answered(this);
    this.#status = status;
    this.#headers = joined(headers);
    this.#lends = this.borrows && status < 300 &&
      this.#headers["content-encoding"] === undefined;
    // What arrives together with the head is delivered with it.
    queueMicrotask(this.#begin);
  }

  onResponseData(_: Controller, chunk: Uint8Array): void {
    if (this.#isOver) return;
    const kept = this.#connection?.chunkFor(chunk, this.#lends) ?? chunk;
    if (!this.#isBegun && this.#first === undefined) {
      this.#first = kept;
      return;
    }
    this.#begin();
    this.#body.push(kept);
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    if (!this.#isBegun && this.#headers["content-encoding"] !== "gzip") {
      this.#isBegun = true;
      const body = this.#first ?? new Uint8Array();
      this.#deps.resolve(new WholeResponse(this.#status, this.#headers, body));
    } else {
      this.#begin();
      this.#body.end();
    }
    // Only a refusal may come before the whole request was sent: Node reports a
    // write in a later turn, often after the response.
    const isUnsent = this.#status >= 300 &&
      this.#connection?.isWriting === true;
    this.#finish(!isUnsent);
  }

  onResponseError(_: Controller | null, error: unknown): void {
    if (this.#isOver) return;
    if (isSessionOver(error)) this.#connection?.close();
    // What may have been written is never sent again, but for reads over HTTP/2.
    const isSafe = !this.isStarted || this.canMultiplex;
    if (isRetired(error) && this.#status === 0 && isSafe) this.moved(error);
    else this.fail(error);
  }

  pause(): void {
    if (this.#isOver) return;
    this.#controller?.pause();
    this.#connection?.pause(true);
  }

  resume(): void {
    if (this.#isOver) return;
    this.#connection?.pause(false);
    this.#controller?.resume();
  }

  release(chunk: Uint8Array): void {
    if (this.#lends) this.#connection?.release(chunk);
  }

  leave(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    // First: undici must know why before the connection closes.
    this.#controller?.abort(ENDED);
    this.#finish(false);
  }

  get #body(): ChunkQueue {
    return this.#queue ??= new ChunkQueue(this);
  }

  /** Gives the response to the caller, who reads the body as it arrives. */
  readonly #begin = (): void => {
    if (this.#isBegun || this.#isOver) return;
    this.#isBegun = true;
    const body = this.#body;
    if (this.#first !== undefined) body.push(this.#first);
    // A watch would keep it, with the block that it is a part of, until its end.
    this.#first = undefined;
    const headers = this.#headers;
    const length = Number(headers["content-length"] ?? Infinity);
    const isPacked = headers["content-encoding"] === "gzip";
    if (isPacked) delete headers["content-encoding"];
    this.#deps.resolve({
      status: this.#status,
      headers,
      body: isPacked ? decompressed(body, this.#deps.request.signal) : body,
      cancel: () => cancel(body, length),
    });
  };

  /** Ends the exchange, once. */
  #finish(isUsable: boolean): void {
    this.#isOver = true;
    this.#deps.requests.delete(this.#number);
    this.#deps.request.signal?.removeEventListener("abort", this.#onAbort);
    this.#giveUp?.();
    this.#connection?.ended(this, isUsable);
  }
}

/** Joins repeated values, and removes the space that may follow a value. */
function joined(headers: Headers): Record<string, string> {
  for (const name in headers) {
    const given = headers[name];
    const value = Array.isArray(given) ? given.join(", ") : given ?? "";
    if (value !== given || value.endsWith(" ") || value.endsWith("\t")) {
      headers[name] = value.trimEnd();
    }
  }
  return headers as Record<string, string>;
}

async function cancel(body: ChunkQueue, length: number): Promise<void> {
  if (length > SHORT_BODY_BYTES) await body.return();
  try {
    for await (const _chunk of body);
  } catch {
    // The connection failed: there is nothing to cancel.
  }
}

/** Decompresses a body, until its end or until the signal aborts. */
async function* decompressed(
  body: ChunkQueue,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array, void, undefined> {
  const gunzip = createGunzip();
  const source = Readable.from(body, { objectMode: false });
  let failure: unknown;
  source.on("error", (error) => gunzip.destroy(failure = error));
  try {
    for await (const chunk of source.pipe(gunzip)) {
      // What has arrived may be a thousand times as long.
      signal?.throwIfAborted();
      yield chunk;
    }
  } catch (error) {
    if (error === failure || signal?.aborted) throw error;
    const reason = errorMessage(error);
    throw new Error(
      `Cannot read a response: its body is no valid gzip: received ${reason}`,
      { cause: error },
    );
  } finally {
    source.destroy();
    await body.return();
  }
}
