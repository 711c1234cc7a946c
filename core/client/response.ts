import { ApiError, type Status, type StatusDetails } from "../api/api_error.ts";
import type { ApiRequest } from "./request.ts";
import type { HttpResponse } from "./transport/transport.ts";

/** How much of an error answer is read: a Status is small. */
const LONGEST_ERROR_BODY = 1 << 20;
/** How much of an answer that is no Status goes into an error message. */
const LONGEST_QUOTE = 200;

/** The reasons that Kubernetes gives to status codes without a Status. */
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
 * Reads a whole body.
 *
 * @throws {RangeError} If it is longer than the limit; the rest is not read.
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
        `Cannot read an answer: it must have at most ${limit} bytes: received ${length} and more`,
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
 * Reads and decodes a JSON answer.
 *
 * @throws {SyntaxError} If the body is not JSON.
 * @throws {RangeError} If the body is longer than the limit.
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
      `Cannot ${request.action}: the answer must be JSON: received ${
        quote(text)
      }`,
    );
  }
}

/** Turns an answer that says no into the error that callers catch. */
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
    const bytes = await readBody(response, LONGEST_ERROR_BODY);
    body = new TextDecoder().decode(bytes);
  } catch {
    // The status code alone says enough.
  }
  return bodyError(request.action, {
    status,
    body,
    retryAfter: retryAfter(response),
  });
}

/** The error of an answer whose body was read already. */
export function bodyError(
  action: string,
  answer: {
    readonly status: number;
    readonly body: string;
    readonly retryAfter?: number | undefined;
  },
): ApiError {
  const { body, status, retryAfter } = answer;
  return statusError(action, parseStatus(body, status), { retryAfter });
}

/** Where a redirect goes, without what its query may carry. */
function redirectHost(location: string | undefined): string {
  return location !== undefined && URL.canParse(location)
    ? new URL(location).origin
    : "another path";
}

/**
 * The error of a Status: of an answer, or of an ERROR event of a watch.
 *
 * @param action What was wanted, to read after "Cannot".
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
    message: text.trim() === "" ? "the answer is empty" : quote(text),
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
  const short = text.trim().slice(0, LONGEST_QUOTE);
  return JSON.stringify(
    short + (text.trim().length > LONGEST_QUOTE ? "…" : ""),
  );
}

/**
 * How long an answer asks to wait, in milliseconds, from its `retry-after`
 * header in seconds (the form that API servers use).
 */
export function retryAfter(response: HttpResponse): number | undefined {
  const value = response.headers["retry-after"];
  return value !== undefined && /^\d{1,6}$/.test(value)
    ? Number(value) * 1000
    : undefined;
}
