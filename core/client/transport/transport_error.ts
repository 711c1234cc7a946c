/** What a runtime's network errors may carry. */
interface NetworkError {
  readonly message?: unknown;
  readonly code?: unknown;
  readonly cause?: unknown;
}

/**
 * The error of a request that got no answer, or only a part of one: the same
 * words on every runtime, and the runtime's own error as its cause.
 *
 * @param origin The server, without credentials.
 * @param error What the runtime threw.
 */
export function connectionError(origin: string, error: unknown): Error {
  return new Error(
    `Cannot reach ${origin}: the connection failed: received ${
      innermostText(error)
    }`,
    { cause: error },
  );
}

/** The error of a request on a transport that was closed. */
export function closedError(origin: string): Error {
  return new Error(
    `Cannot reach ${origin}: the connections were closed: received a request`,
  );
}

/** Runtimes wrap the reason in errors that say nothing; the last one says it. */
function innermostText(error: unknown): string {
  let reason: NetworkError | undefined;
  let next: unknown = error;
  for (let depth = 0; depth < 8 && typeof next === "object" && next; depth++) {
    reason = next;
    next = reason.cause;
  }
  if (reason === undefined) return String(error);
  const message = String(reason.message || "").split("\n", 1)[0] ?? "";
  const code = typeof reason.code === "string" ? reason.code : "";
  return message.includes(code) ? message : `${code} ${message}`.trim();
}

/** The server answered a request for a WebSocket with something else. */
export class StreamRefusedError extends Error {
  /** The HTTP status code. */
  readonly status: number;
  /** What the server said, usually a Status as JSON. */
  readonly body: string;

  /**
   * Keeps what was answered.
   *
   * @param origin The server, without credentials.
   * @param answer The HTTP status code and what the server said.
   */
  constructor(
    origin: string,
    { status, body }: { readonly status: number; readonly body: string },
  ) {
    super(`Cannot open a stream to ${origin}: it refused: received ${status}`);
    this.name = "StreamRefusedError";
    this.status = status;
    this.body = body;
  }
}
