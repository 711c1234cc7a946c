/**
 * HTTP of the API server: the listener over sockets, the in-process transport
 * and WebSocket upgrades, which pass a `ServerRequest` to one handler and send
 * its `ServerResponse`. A request has the same answer over each transport. The
 * folder is independent of Kubernetes and must not import other folders of
 * `apiserver`.
 *
 * @module
 */
import type { MessageStream } from "./message_stream.ts";
import { writeJson } from "../exact_json.ts";

/** Maximum size of a request body, as in kube-apiserver: 3 MiB. */
export const MAX_BODY_BYTES: number = 3 * 1024 * 1024;

/** Request, from a socket or an in-process transport. */
export interface ServerRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Headers with lower-case names; repeated headers are joined by `, `. */
  readonly headers: Readonly<Record<string, string>>;
  /** Body, truncated one byte after {@linkcode MAX_BODY_BYTES}. */
  readonly body: Uint8Array;
  /** Client certificate, if the client sent one. */
  readonly certificate?: PeerCertificate | undefined;
}

/** Client certificate of a connection. */
export interface PeerCertificate {
  /** Whether the certificate is signed by the server's authority and has not expired. */
  readonly isTrusted: boolean;
  readonly commonName: string;
  readonly organizations: readonly string[];
  /** SHA-256 digest of the certificate, in hexadecimal digits. */
  readonly fingerprint?: string | undefined;
}

/**
 * Response headers with lower-case names; several values are sent as several
 * headers.
 */
export type ResponseHeaders = Readonly<
  Record<string, string | readonly string[]>
>;

/** Response: status, headers, and a body as bytes or as a stream. */
export interface ServerResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  /**
   * Body as bytes, as blocks that are generated during sending, or as a stream.
   */
  readonly body: Uint8Array | Iterable<Uint8Array> | ResponseStream;
  /** Protocol upgrade, with status 101. */
  readonly upgrade?: Upgrade | undefined;
}

/** How the connection of a request goes on as a WebSocket, after status 101. */
export interface Upgrade {
  /** Subprotocol chosen from those that the client offered. */
  readonly protocol: string;
  /** Serves the stream until it ends; never rejects. */
  serve(stream: MessageStream): Promise<void>;
}

/** Whether a body is a {@linkcode ResponseStream}. */
export function isStream(body: ServerResponse["body"]): body is ResponseStream {
  return "start" in body;
}

/** Body that is written over time, such as a watch. */
export interface ResponseStream {
  /**
   * Starts writing. Called once, after the headers were sent.
   *
   * @returns Function that is called at the end of the connection, possibly
   * late and more than once.
   */
  start(writer: StreamWriter): () => void;
}

/** Writer of a {@linkcode ResponseStream}; every call is safe after the end of the stream. */
export interface StreamWriter {
  /** Sends bytes, or buffers them until the client reads. */
  write(chunk: Uint8Array): void;
  /** Number of buffered bytes. */
  readonly pending: number;
  /** Ends the body. */
  end(): void;
  /** Breaks the connection. */
  destroy(): void;
}

const encoder = new TextEncoder();

/** Response with a JSON body. */
export function jsonResponse(
  status: number,
  value: unknown,
  headers: ResponseHeaders = {},
): ServerResponse {
  return {
    status,
    headers: { "content-type": "application/json", ...headers },
    body: encoder.encode(`${writeJson(value)}\n`),
  };
}

/** Response with plain text, as Go's HTTP handlers send it. */
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

/** Response for unknown paths, as from Go's router. */
export function pageNotFound(): ServerResponse {
  return textResponse(404, "404 page not found\n");
}

/** Response with an entity tag; without a body if the client has it already. */
export function taggedResponse(
  request: ServerRequest,
  headers: ResponseHeaders & { readonly etag: string },
  body: Uint8Array,
): ServerResponse {
  return request.headers["if-none-match"] === headers.etag
    ? { status: 304, headers, body: new Uint8Array() }
    : { status: 200, headers, body };
}
