/**
 * HTTP transports: the interface, and the parts that its implementations share.
 * `undici_transport.ts` implements it over sockets, `fetch_transport.ts` over the
 * `fetch` of a user; `cluster_transport.ts` opens a new one when certificates
 * change.
 *
 * @module
 */
import { SlotMap } from "../../slot_map.ts";

/** HTTP request as a value. */
export interface HttpRequest {
  /** HTTP method. */
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query, such as `/api/v1/pods?limit=500`. */
  readonly path: string;
  /** Headers by name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Headers with one line per value, which must not be joined. */
  readonly repeatedHeaders?:
    | Readonly<Record<string, readonly string[]>>
    | undefined;
  /** Body, which is sent as it is. */
  readonly body?: Uint8Array | string | undefined;
  /** Signal that ends the request and the reading of its response. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Whether the response may pause without limit, as that of a watch does. It has an
   * HTTP/2 stream or a connection of its own, and does not count among the
   * connections of short requests.
   *
   * @default {false}
   */
  readonly mayPause?: boolean | undefined;
  /**
   * Whether the reader has done with a chunk of the body when it asks for the next
   * one, so that a transport may use its memory again.
   *
   * @default {false}
   */
  readonly borrowsChunks?: boolean | undefined;
  /**
   * Whether a body that was cut must not read like a whole one. It is then sent over
   * HTTP/1.1: undici takes a stream of HTTP/2 that is reset with NO_ERROR or CANCEL
   * for one that has ended.
   *
   * @default {false}
   */
  readonly mustBeWhole?: boolean | undefined;
  /**
   * Check before the request is sent: if it throws, the request fails with that
   * error and nothing is sent. The client calls it before each attempt, after
   * delays by the rate limit and by retries. A transport calls it again right
   * before it writes the request to an open connection, because connecting may
   * have taken long, or the process may have been suspended.
   */
  readonly beforeSend?: (() => void) | undefined;
}

/** Response to an {@linkcode HttpRequest}; its body must be read or cancelled. */
export interface HttpResponse {
  /** HTTP status code. */
  readonly status: number;
  /** Headers by name in lower case; repeated headers joined by `, `. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Body in chunks as they arrive, decompressed, with back-pressure. Leaving the
   * loop closes the connection or returns it to the pool.
   */
  readonly body: AsyncIterable<Uint8Array>;
  /** Discards the rest of the body; closes the connection if the body is long. */
  cancel(): Promise<void>;
}

/** Request for a WebSocket. */
export interface StreamRequest {
  /** Path and query. */
  readonly path: string;
  /** Headers by name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Headers with one line per value, which must not be joined. */
  readonly repeatedHeaders?:
    | Readonly<Record<string, readonly string[]>>
    | undefined;
  /** Subprotocols in order of preference, such as `v5.channel.k8s.io`. */
  readonly protocols: readonly string[];
  /** Signal that ends the attempt and, once open, the WebSocket. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Check before the request is sent, like that of an {@linkcode HttpRequest}. On
   * Bun it is only called before connecting.
   */
  readonly beforeSend?: (() => void) | undefined;
}

/** Open WebSocket to the API server. */
export interface StreamConnection {
  /** Subprotocol that the server chose. */
  readonly protocol: string;
  /** Received messages; end when the peer closes, throw on a failure. */
  readonly messages: AsyncIterable<Uint8Array>;
  /** Sends a binary message; resolves when the socket has accepted it. */
  send(message: Uint8Array): Promise<void>;
  /** Closes the WebSocket with a close handshake; never throws. */
  close(code?: number, reason?: string): Promise<void>;
}

/**
 * HTTP transport: sends requests over a network. There is one per runtime; the
 * embedded API server implements it as well, so that tests need no sockets.
 *
 * A transport owns a connection pool and the TLS configuration. Credentials in
 * headers, retries and anything specific to Kubernetes belong to the client.
 */
export interface Transport {
  /**
   * Sends a request and resolves when the head of the response has arrived,
   * whatever its status.
   *
   * @throws {Error} If there is no response: the connection failed or was aborted.
   */
  send(request: HttpRequest): Promise<HttpResponse>;
  /** Opens a WebSocket; absent if the transport does not support them. */
  connect?(request: StreamRequest): Promise<StreamConnection>;
  /**
   * Signal that aborts when no request can succeed any more: clients then retry
   * none. A transport that only its client closes needs no signal.
   */
  readonly ended?: AbortSignal | undefined;
  /** Closes all connections, including those in use. Safe to call twice. */
  close(): Promise<void>;
}

/** Part of a {@linkcode Transport} that differs between runtimes. */
export interface HttpTransport extends Omit<Transport, "connect"> {
  /**
   * Waits until all requests in progress have ended, then closes. No further
   * request may be sent.
   */
  retire(): Promise<void>;
}

/** Valid names and values of headers (RFC 9110). */
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Lists the header lines of a request.
 *
 * @throws {TypeError} If a header is invalid. The message contains its name only,
 * because the value may be secret.
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
      `Cannot send a request: the name or value of a header is invalid: received ${
        JSON.stringify(name)
      }`,
    );
  }
  return lines;
}

/** Request in progress: its response has not been read completely. */
export interface OpenRequest {
  /** Ends the request; its reader receives the reason. */
  abort(reason: unknown): void;
}

/** Requests in progress of a transport. */
export class OpenRequests {
  readonly #requests: SlotMap<number, OpenRequest> = new SlotMap();
  #begun = 0;
  #onIdle: (() => void) | undefined;

  /** Registers a request; returns its number. */
  add(request: OpenRequest): number {
    this.#requests.set(++this.#begun, request);
    return this.#begun;
  }

  /** Removes a request that has ended, by its number; safe to call twice. */
  delete(number: number): void {
    this.#requests.delete(number);
    if (this.#requests.size === 0) this.#onIdle?.();
  }

  /** Resolves as soon as no request is in progress. */
  idle(): Promise<void> {
    return this.#requests.size === 0
      ? Promise.resolve()
      : new Promise((resolve) => this.#onIdle = resolve);
  }

  /** Aborts all requests in progress. */
  abortAll(reason: unknown): void {
    for (const request of this.#requests.values()) request.abort(reason);
  }
}
