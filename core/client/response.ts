import { ApiError, type Status, type StatusDetails } from "../api/api_error.ts";
import type { ApiRequest } from "./request.ts";
import type { HttpResponse } from "./transport/transport.ts";

/** Maximum size of an error response that is read. */
const MAX_ERROR_BODY_BYTES = 1 << 20;
/** Maximum number of characters quoted from a response. */
const MAX_QUOTE_LENGTH = 200;

/** Reasons of Kubernetes for status codes without a Status. */
const REASONS: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  406: "NotAcceptable",
  409: "Conflict",
  410: "Expired",
  413: "RequestEntityTooLarge",
  415: "UnsupportedMediaType",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

/**
 * Reads a complete body.
 *
 * @param limit Maximum size, in bytes.
 * @throws {RangeError} If the body exceeds the limit; the rest is not read.
 */
export async function readBody(
  response: HttpResponse,
  limit: number,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body) {
    length += chunk.byteLength;
    if (length > limit) {
      throw new RangeError(
        `Cannot read a response: it must have at most ${limit} bytes: received ${length} and more`,
      );
    }
    chunks.push(chunk);
  }
  const [only] = chunks;
  if (only !== undefined && chunks.length === 1) return only;
  const body = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    body.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return body;
}

/**
 * Reads and decodes a JSON response.
 *
 * @param limit Maximum size, in bytes.
 * @throws {SyntaxError} If the body is not JSON.
 * @throws {RangeError} If the body exceeds the limit.
 */
export async function readJson(
  request: ApiRequest,
  response: HttpResponse,
  limit: number,
): Promise<unknown> {
  const text = new TextDecoder().decode(await readBody(response, limit));
  try {
    return JSON.parse(text);
  } catch {
    throw new SyntaxError(
      `Cannot ${request.action}: the response must be JSON: received ${
        quote(text)
      }`,
    );
  }
}

/** Creates the error for a response with a status from 300. */
export async function responseError(
  request: ApiRequest,
  response: HttpResponse,
): Promise<ApiError> {
  const { headers, status } = response;
  if (status < 400) {
    await response.cancel();
    const host = redirectHost(headers["location"]);
    return new ApiError(
      `Cannot ${request.action}: redirects are not followed: received ${status} to ${host}`,
      { status },
    );
  }
  let body = "";
  try {
    const bytes = await readBody(response, MAX_ERROR_BODY_BYTES);
    body = new TextDecoder().decode(bytes);
  } catch {
    // The status code alone is enough for the error.
  }
  return bodyError(request.action, {
    status,
    body,
    retryAfter: retryAfter(response),
  });
}

/** Creates the error for a response whose body has been read. */
export function bodyError(
  action: string,
  response: {
    readonly status: number;
    readonly body: string;
    readonly retryAfter?: number | undefined;
  },
): ApiError {
  const { body, status, retryAfter } = response;
  return statusError(action, parseStatus(body, status), { retryAfter });
}

/** Origin of a redirect; its path and query may contain secrets. */
function redirectHost(location: string | undefined): string {
  return location !== undefined && URL.canParse(location)
    ? new URL(location).origin
    : "another path";
}

/**
 * Creates the error for a Status, from a response or from an ERROR event.
 *
 * @param action Description that follows "Cannot".
 */
export function statusError(
  action: string,
  status: Partial<Status>,
  options: { readonly retryAfter?: number | undefined } = {},
): ApiError {
  const { code = 500, reason = "", details } = status;
  const seconds = details?.retryAfterSeconds;
  return new ApiError(
    `Cannot ${action}: ${status.message || "no message"}: received ${code}${
      reason && ` ${reason}`
    }`,
    {
      status: code,
      reason,
      details,
      retryAfter: options.retryAfter ??
        (seconds === undefined ? undefined : seconds * 1000),
    },
  );
}

function parseStatus(text: string, code: number): Partial<Status> {
  const fallback: Partial<Status> = {
    code,
    reason: REASONS[code] ?? "",
    message: text.trim() === "" ? "the response is empty" : quote(text),
  };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return fallback;
  }
  if (!isRecord(value) || value["kind"] !== "Status") return fallback;
  const { message, reason, details } = value;
  return {
    code,
    reason: typeof reason === "string" && reason !== ""
      ? reason
      : fallback.reason,
    message: typeof message === "string" ? message : undefined,
    details: isRecord(details) ? details as StatusDetails : undefined,
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function quote(text: string): string {
  const short = text.trim().slice(0, MAX_QUOTE_LENGTH);
  return JSON.stringify(
    short + (text.trim().length > MAX_QUOTE_LENGTH ? "…" : ""),
  );
}

/**
 * Delay that a response requests by its `retry-after` header, in milliseconds.
 * The header is in seconds, the form that API servers use.
 */
export function retryAfter(response: HttpResponse): number | undefined {
  const value = response.headers["retry-after"];
  return value !== undefined && /^\d{1,6}$/.test(value)
    ? Number(value) * 1000
    : undefined;
}
