/** Fields of network errors of the runtimes. */
interface NetworkError {
  readonly message?: unknown;
  readonly code?: unknown;
  readonly cause?: unknown;
}

/**
 * Creates the error of a request without a complete response: the same message
 * on every runtime, with the error of the runtime as its cause.
 *
 * @param origin Origin of the server.
 * @param error Error of the runtime.
 */
export function connectionError(origin: string, error: unknown): Error {
  // Bytes of the response, which undici's parser attaches, may be secret.
  if (error instanceof Error && "data" in error) delete error.data;
  return new Error(
    `Cannot reach ${origin}: the connection failed: received ${
      innermostText(error)
    }`,
    { cause: error },
  );
}

/** Creates the error of a request on a closed transport. */
export function closedError(origin: string): Error {
  return new Error(`Cannot reach ${origin}: the connections were closed`);
}

/** Text of an error's innermost cause; runtimes wrap it in generic errors. */
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
  return code.startsWith("UND_") || message.includes(code)
    ? message
    : `${code} ${message}`.trim();
}

/** Error of a WebSocket request that the server refused. */
export class StreamRefusedError extends Error {
  /** HTTP status code. */
  readonly status: number;
  /** Body of the response, usually a Status as JSON. */
  readonly body: string;

  readonly #origin: string;

  /**
   * Creates the error.
   *
   * @param origin Origin of the server.
   * @param response HTTP status code and body of the response.
   */
  constructor(
    origin: string,
    { status, body }: { readonly status: number; readonly body: string },
  ) {
    super(
      `Cannot open a WebSocket to ${origin}: the server refused: received ${status}`,
    );
    this.name = "StreamRefusedError";
    this.status = status;
    this.body = body;
    this.#origin = origin;
  }

  /** Copies the error with another body. */
  withBody(body: string): StreamRefusedError {
    const { status } = this;
    return new StreamRefusedError(this.#origin, { status, body });
  }
}
