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
