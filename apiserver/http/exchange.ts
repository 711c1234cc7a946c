import type { MessageStream } from "./message_stream.ts";

/** The greatest body that is read, as kube-apiserver's: 3 MiB. */
export const MAX_BODY_BYTES: number = 3 * 1024 * 1024;

/** A request as it came, whichever way: a socket or an in-process transport. */
export interface ServerRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Names in lower case; repeated headers joined by `, `. */
  readonly headers: Readonly<Record<string, string>>;
  /** The whole body, cut off one byte after {@linkcode MAX_BODY_BYTES}. */
  readonly body: Uint8Array;
}

/** Header names in lower case; several values are sent as several headers. */
export type ResponseHeaders = Readonly<
  Record<string, string | readonly string[]>
>;

/** An answer: its head, and its body as bytes or as a stream. */
export interface ServerResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  /** Bytes; blocks made while they are sent, as of long lists; or a stream. */
  readonly body: Uint8Array | Iterable<Uint8Array> | ResponseStream;
  /** With status 101: what the connection becomes. */
  readonly upgrade?: Upgrade | undefined;
}

/** A connection that becomes a WebSocket. */
export interface Upgrade {
  /** The protocol that was chosen of those that the client offered. */
  readonly protocol: string;
  /** Speaks the protocol until the stream ends; never rejects. */
  serve(stream: MessageStream): Promise<void>;
}

/** Whether a body is written over time. */
export function isStream(
  body: ServerResponse["body"],
): body is ResponseStream {
  return "start" in body;
}

/** A body that is written over time, such as a watch. */
export interface ResponseStream {
  /**
   * Begins to write. Called once, when the head was sent.
   *
   * @returns What to call when the client is gone; it may be called late, and
   * more than once.
   */
  start(writer: StreamWriter): () => void;
}

/** Where a {@linkcode ResponseStream} writes; every call is safe after the end. */
export interface StreamWriter {
  /** Sends bytes or keeps them until the client takes them. */
  write(chunk: Uint8Array): void;
  /** How many bytes wait for the client. */
  readonly pending: number;
  /** Ends the body in order. */
  end(): void;
  /** Breaks the connection, as a crash would. */
  destroy(): void;
}

const encoder = new TextEncoder();

/** An answer whose body is a JSON value. */
export function jsonResponse(
  status: number,
  value: unknown,
  headers: ResponseHeaders = {},
): ServerResponse {
  return {
    status,
    headers: { "content-type": "application/json", ...headers },
    body: encoder.encode(`${JSON.stringify(value)}\n`),
  };
}

/** An answer of plain text, as Go's own HTTP handlers give it. */
export function textResponse(
  status: number,
  text: string,
  headers: ResponseHeaders = {},
): ServerResponse {
  return {
    status,
    headers: {
      "content-type": "text/plain; charset=utf-8",
      "x-content-type-options": "nosniff",
      ...headers,
    },
    body: encoder.encode(text),
  };
}

/** What Go's router says where nothing is served. */
export function pageNotFound(): ServerResponse {
  return textResponse(404, "404 page not found\n");
}

/** The answer to a write that has made no object of its own. */
export function createdResponse(): ServerResponse {
  return jsonResponse(201, {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    code: 201,
  });
}
