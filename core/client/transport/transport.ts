/** One HTTP request as a value: nothing is sent until a transport gets it. */
export interface HttpRequest {
  /** What to do with what the path names. */
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query, such as `/api/v1/pods?limit=500`. */
  readonly path: string;
  /** Header names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Headers with one line for each value, which must not be joined. */
  readonly repeatedHeaders?:
    | Readonly<Record<string, readonly string[]>>
    | undefined;
  /** What is sent along. */
  readonly body?: Uint8Array | string | undefined;
  /** Ends the request, and the reading of its answer, when aborted. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Whether the reader is done with each chunk of the answer when it asks for
   * the next one, so that its memory may be used again. It is for long streams:
   * a transport may give them a connection of their own and read them without
   * copies. Chunks of answers that say no (any status from 300) are never
   * borrowed, since others than the reader may look at them.
   *
   * @default {false}
   */
  readonly borrowsChunks?: boolean | undefined;
}

/** The answer to an {@linkcode HttpRequest}; its body must be read or cancelled. */
export interface HttpResponse {
  /** The HTTP status code. */
  readonly status: number;
  /** Header names in lower case; repeated headers joined by `, `. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * The body as it arrives, decompressed. Not reading holds the sender back.
   * Leaving the loop closes the connection or gives it back to the pool.
   */
  readonly body: AsyncIterable<Uint8Array>;
  /** Reads the body away, or closes the connection when it is long. */
  cancel(): Promise<void>;
}

/** What a WebSocket upgrade asks for. */
export interface StreamRequest {
  /** Path and query. */
  readonly path: string;
  /** Header names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Headers with one line for each value, which must not be joined. */
  readonly repeatedHeaders?:
    | Readonly<Record<string, readonly string[]>>
    | undefined;
  /** Subprotocols in order of preference, such as `v5.channel.k8s.io`. */
  readonly protocols: readonly string[];
  /** Ends the attempt, and later the stream, when aborted. */
  readonly signal?: AbortSignal | undefined;
}

/** An open WebSocket to the API server. */
export interface StreamConnection {
  /** The subprotocol that the server chose. */
  readonly protocol: string;
  /** Messages in order; ends when the peer closes, throws when the line breaks. */
  readonly messages: AsyncIterable<Uint8Array>;
  /** Sends one binary message; resolves when it was handed to the socket. */
  send(message: Uint8Array): Promise<void>;
  /** Closes in order; never throws. */
  close(code?: number, reason?: string): Promise<void>;
}

/**
 * The only thing that talks to a network. There is one for each runtime, and
 * the embedded API server is one too, so that tests need no socket.
 *
 * A transport owns one pool of connections and the TLS settings; it knows
 * nothing of credentials in headers, retries or Kubernetes.
 */
export interface Transport {
  /**
   * Sends a request and resolves when the head of the answer is there,
   * whatever its status.
   *
   * @throws {Error} If no answer came: the connection failed or was aborted.
   */
  send(request: HttpRequest): Promise<HttpResponse>;
  /** Opens a WebSocket; absent where a transport cannot. */
  connect?(request: StreamRequest): Promise<StreamConnection>;
  /** Closes every connection, those in use too. Safe to call twice. */
  close(): Promise<void>;
}

/** The part of a {@linkcode Transport} that differs between runtimes. */
export interface HttpTransport extends Omit<Transport, "connect"> {
  /**
   * Closes as soon as everything under way has ended, and resolves then;
   * nothing new may be sent.
   */
  retire(): Promise<void>;
}

/** What may be the name of a header, and what its value (RFC 9110). */
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * The headers of a request, a line each.
 *
 * @throws {TypeError} If one cannot be sent. It may be secret, so that the
 * message, other than those of some runtimes, has its name only.
 */
export function headerLines(
  request: Pick<HttpRequest, "headers" | "repeatedHeaders">,
): [string, string][] {
  const { headers, repeatedHeaders = {} } = request;
  const lines = [
    ...Object.entries(headers),
    ...Object.entries(repeatedHeaders).flatMap(([name, values]) =>
      values.map((value): [string, string] => [name, value])
    ),
  ];
  for (const [name, value] of lines) {
    if (NAME.test(name) && VALUE.test(value)) continue;
    throw new TypeError(
      `Cannot send a request: a header must be a token with a value of one line: received ${
        JSON.stringify(name)
      } with something else`,
    );
  }
  return lines;
}

/** A request that was sent and whose answer is not read to its end. */
export interface OpenExchange {
  /** Ends it; its reader gets the reason. */
  abort(reason: unknown): void;
}

/** What a transport has under way, so that it can wait for it or end it. */
export class OpenExchanges {
  readonly #exchanges = new Set<OpenExchange>();
  #onIdle: (() => void) | undefined;

  /** Takes note of an exchange. */
  add(exchange: OpenExchange): void {
    this.#exchanges.add(exchange);
  }

  /** Forgets an exchange that has ended; safe to call twice. */
  delete(exchange: OpenExchange): void {
    this.#exchanges.delete(exchange);
    if (this.#exchanges.size === 0) this.#onIdle?.();
  }

  /** Resolves as soon as nothing is under way. */
  idle(): Promise<void> {
    return this.#exchanges.size === 0
      ? Promise.resolve()
      : new Promise((resolve) => this.#onIdle = resolve);
  }

  /** Ends everything that is under way. */
  abortAll(reason: unknown): void {
    for (const exchange of this.#exchanges) exchange.abort(reason);
  }
}
