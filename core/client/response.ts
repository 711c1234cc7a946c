import { isJsonObject } from "../patch/json_value.ts";
import { ApiError, type Status, type StatusDetails } from "../api/api_error.ts";
import type { KubernetesObject } from "../api/object.ts";
import { typeText } from "../api/options.ts";
import { type ByteRange, rangeText, wholeRange } from "../json/byte_range.ts";
import { EventScanner } from "../json/event_scanner.ts";
import type { ObjectHeader } from "../json/object_header.ts";
import type { ApiRequest } from "./request.ts";
import type { HttpResponse } from "./transport/transport.ts";

/** Maximum size of an error response that is read, in bytes. */
const MAX_ERROR_BODY_BYTES = 1 << 20;
/** Text that a server returns, without a Status, for a path not served. */
const NO_SUCH_PATH = "404 page not found";
/** Longest pause that a server may request, in milliseconds. */
const MAX_PAUSE_MS = 5 * 60_000;
/** Maximum number of characters quoted from a response. */
const MAX_QUOTE_LENGTH = 200;

/** Reasons of Kubernetes by status code, for responses without a Status. */
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
 * @param what Beginning of the error, such as `Cannot get Pod default/a`.
 * @throws {RangeError} If the body exceeds the limit; the rest is not read.
 */
export async function readBody(
  response: HttpResponse,
  limit: number,
  what = "Cannot read a response",
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body) {
    length += chunk.byteLength;
    if (length > limit) {
      throw new RangeError(
        `${what}: the response must have at most ${limit} bytes: received ${length} and more`,
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
 * Reads a complete response.
 *
 * @param limit Maximum size, in bytes.
 * @throws {Error} If the connection fails; the message names the request.
 * @throws {RangeError} If the body exceeds the limit.
 */
export async function readResponse(
  request: ApiRequest,
  response: HttpResponse,
  limit: number,
): Promise<Uint8Array> {
  const what = `Cannot ${request.action}`;
  try {
    return await readBody(response, limit, what);
  } catch (error) {
    const isForeign = error instanceof Error && error.name !== "AbortError" &&
      !(error instanceof RangeError) && !request.signal?.aborted &&
      !error.message.startsWith(what);
    if (!isForeign) throw error;
    throw new Error(
      `${what}: the response cannot be read: received ${error.message}`,
      { cause: error },
    );
  }
}

/**
 * Decodes a JSON response.
 *
 * @throws {SyntaxError} If the body is not JSON.
 * @throws {TypeError} If it is not an object of the kind of the request.
 */
export function decodeJson(request: ApiRequest, bytes: Uint8Array): unknown {
  const what = `Cannot ${request.action}`;
  const text = rangeText(wholeRange(bytes));
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const received = quote(text, request.path);
    throw new SyntaxError(
      `${what}: the response must be JSON: received ${received}`,
    );
  }
  const fault = kindFault(request, value);
  if (fault === undefined) return value;
  const { responseKind } = request;
  const wanted = responseKind === "List"
    ? "a list of objects"
    : responseKind ?? "an object";
  throw new TypeError(
    `${what}: the response must be ${wanted}: received ${fault}`,
  );
}

/** Scanner that all responses to writes share. */
const SCANNER = new EventScanner();

/**
 * Header of an object's JSON. That of the last answer is not scanned again; it is
 * valid until there is another answer.
 */
export function headerOf(json: Uint8Array | string): ObjectHeader {
  return json === SCANNER.header.bytes
    ? SCANNER.header
    : new EventScanner().scanObject(wholeRange(json));
}

/**
 * Answer to a write: the JSON of the stored object, which is decoded on first
 * access.
 *
 * @typeParam T The type of the object.
 */
export class Answer<T extends KubernetesObject> {
  /** JSON of the object. */
  readonly json: Uint8Array;
  /** Key of the object: `namespace/name`, or `name`. */
  readonly keyText: string;
  /** UID of the object. */
  readonly uid: string;
  /** Version of the stored state. */
  readonly resourceVersion: string;
  readonly #request: ApiRequest;
  readonly #status: ByteRange | undefined;
  #object: T | undefined;

  /**
   * Creates an answer.
   *
   * @param request Request of the write.
   * @param json Body of the response.
   * @throws {SyntaxError | TypeError} If it is not JSON of an object of the kind of
   * the request.
   */
  constructor(request: ApiRequest, json: Uint8Array) {
    this.#request = request;
    this.json = json;
    let header: ObjectHeader | undefined;
    try {
      header = SCANNER.scanObject(wholeRange(json));
    } catch {
      // Decoding gives the better error.
    }
    if (header === undefined || header.kind !== request.responseKind) {
      this.#object = decodeJson(request, json) as T;
    }
    header ??= SCANNER.scanObject(wholeRange(json));
    this.keyText = header.keyText;
    this.uid = header.uid;
    this.resourceVersion = header.resourceVersion;
    this.#status = header.range("status");
  }

  /** Stored object; the caller may change it. */
  get object(): T {
    return this.#object ??= decodeJson(this.#request, this.json) as T;
  }

  /** JSON of the status of the stored object; undefined if it has none. */
  get statusJson(): string | undefined {
    return this.#status && rangeText(this.#status);
  }

  /** Body of the request, as JSON. */
  get sent(): string {
    return String(this.#request.body ?? "");
  }
}

/** Description of a response of a wrong kind; undefined if the kind fits. */
function kindFault(
  { responseKind, verb }: ApiRequest,
  value: unknown,
): string | undefined {
  if (!isJsonObject(value)) return typeText(value);
  const { kind, items } = value;
  if (responseKind === "List") {
    if (!Array.isArray(items ?? [])) return `items of type ${typeText(items)}`;
    if (kind === undefined || String(kind).endsWith("List")) return undefined;
  }
  const isFit = responseKind === undefined || kind === undefined ||
    kind === responseKind || (verb === "delete" && kind === "Status");
  return isFit ? undefined : `kind ${JSON.stringify(kind)?.slice(0, 100)}`;
}

/** Paths of requests whose bodies hold secret data or tokens. */
const SECRET_PATH =
  /^\/api\/v1\/(namespaces\/[^/]+\/)?secrets([/?]|$)|\/serviceaccounts\/[^/]+\/token([?]|$)|^\/apis\/authentication\.k8s\.io\//;

/** Messages of API servers that contain names but no part of a body. */
const HARMLESS =
  /^(secrets|namespaces)( "[^"\s]*")? (not found|already exists)$|^secrets( "[^"\s]*")? is forbidden: User "[^"]*" cannot \w+ resource |^Operation cannot be fulfilled on secrets "[^"\s]*": (the object has been modified; please apply|Precondition failed: UID in precondition: [-\w]+, UID in object meta: [-\w]*$)/;

/** Start of the message of a policy that refuses a Secret. */
const POLICY =
  /^secrets(?: "[^"\s]*")? is forbidden: (ValidatingAdmissionPolicy '[\w.-]+') /;

/** Credentials in the form of an Authorization header. */
const AUTHORIZATION =
  /\b(Bearer|bearer|BEARER|Basic|basic|BASIC)(\s+)(?![a-z]+\b)[\w.~+/-]{4,}=*/g;

/** Replaces the credentials that a server repeats in a text. */
export function withoutCredentials(text: string): string {
  return text.replace(AUTHORIZATION, "$1$2…");
}

/** Creates the error for a response with a status from 300. */
export async function responseError(
  request: ApiRequest,
  response: HttpResponse,
): Promise<ApiError> {
  const { headers, status } = response;
  if (status < 400) {
    await response.cancel();
    const { location = "" } = headers;
    // Its path and query may contain secrets.
    const host = URL.canParse(location)
      ? new URL(location).origin
      : "another path";
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
  return bodyError(request, { status, body, retryAfter: retryAfter(response) });
}

/** Creates the error for a response whose body has been read. */
export function bodyError(
  { action, path }: Pick<ApiRequest, "action" | "path">,
  response: {
    readonly status: number;
    readonly body: string;
    readonly retryAfter?: number | undefined;
  },
): ApiError {
  const { body, status, retryAfter } = response;
  return statusError(action, parseStatus(body, status, path), {
    retryAfter,
    path,
  });
}

/**
 * Creates the error for a Status, from a response or from an ERROR event.
 *
 * @param action Description that follows "Cannot".
 * @param options `path` of the request: messages about Secrets may contain
 * their data and are left out.
 */
export function statusError(
  action: string,
  status: unknown,
  options: {
    readonly retryAfter?: number | undefined;
    readonly path?: string | undefined;
  } = {},
): ApiError {
  const checked = checkedStatus(status);
  const { code = 500, reason = "" } = checked;
  const { message, details } = SECRET_PATH.test(options.path ?? "")
    ? harmlessPart(checked)
    : checked;
  const seconds = details?.retryAfterSeconds;
  return new ApiError(
    `Cannot ${action}: ${
      message ? withoutCredentials(message) : "no message"
    }: received ${code}${reason && ` ${reason}`}`,
    {
      status: code,
      reason,
      details,
      retryAfter: options.retryAfter ??
        (seconds === undefined ? undefined : pause(seconds)),
    },
  );
}

/** The parts of a Status that are of the right type; it comes from outside. */
export function checkedStatus(given: unknown): Partial<Status> {
  if (!isJsonObject(given)) return {};
  const { code, details } = given;
  return {
    ...texts(given, ["reason", "message"]),
    code: isCount(code) && code >= 100 && code <= 599 ? code : undefined,
    details: isJsonObject(details) ? checkedDetails(details) : undefined,
  };
}

function checkedDetails(given: Record<string, unknown>): StatusDetails {
  const { causes, retryAfterSeconds } = given;
  return {
    ...texts(given, ["name", "group", "kind", "uid"]),
    ...(Array.isArray(causes) && {
      causes: causes.filter(isJsonObject)
        .map((cause) => texts(cause, ["reason", "message", "field"])),
    }),
    ...(isCount(retryAfterSeconds) && { retryAfterSeconds }),
  };
}

/** The fields of these names that are texts. */
function texts<N extends string>(
  given: Record<string, unknown>,
  names: readonly N[],
): { readonly [name in N]?: string } {
  const found: { [name in N]?: string } = {};
  for (const name of names) {
    const value = given[name];
    if (typeof value === "string") found[name] = value;
  }
  return found;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Pause that a server requests, within its limit. */
function pause(seconds: number): number {
  return Math.min(seconds * 1000, MAX_PAUSE_MS);
}

/** Message and details of a Status without data of a Secret. */
function harmlessPart(
  { message = "", details }: Partial<Status>,
): Pick<Status, "message" | "details"> {
  const part = (field?: string) => field?.split(/[^\w]/, 1)[0];
  const [refuser] = POLICY.exec(message)?.slice(1) ?? [];
  const causes = details?.causes?.map(({ reason, field }) => ({
    reason,
    field: part(field),
  }));
  // Policies and webhooks name neither a reason nor a field.
  const named = details?.causes?.filter(({ reason, field }) => reason && field)
    .map(({ reason, field, message }) =>
      `${reason} in ${part(field)}${
        message?.includes("field is immutable") ? ", which is immutable" : ""
      }`
    ).join(", ");
  return {
    message: HARMLESS.test(message)
      ? message
      : `${
        named || `${refuser ?? "the server"} refused it`
      } (its message is not shown, because it may contain secret data)`,
    details: details && { ...details, causes },
  };
}

function parseStatus(
  text: string,
  code: number,
  path: string,
): Partial<Status> {
  const fallback: Partial<Status> = {
    code,
    reason: REASONS[code] ?? "",
    message: text.trim() === ""
      ? "the response is empty"
      : text.trim() === NO_SUCH_PATH
      ? `"${NO_SUCH_PATH}", as for a kind whose CustomResourceDefinition is not installed`
      : quote(text, path),
  };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return fallback;
  }
  if (!isJsonObject(value) || value["kind"] !== "Status") return fallback;
  const { message, reason, details } = value;
  return {
    code,
    reason: typeof reason === "string" && reason !== ""
      ? reason
      : fallback.reason,
    message: typeof message === "string" ? message : undefined,
    details: isJsonObject(details) ? checkedDetails(details) : undefined,
  };
}

/** Quotes the beginning of a response; about Secrets, only its length. */
export function quote(text: string, path: string): string {
  const trimmed = text.trim();
  if (SECRET_PATH.test(path)) return `${trimmed.length} characters`;
  const short = withoutCredentials(trimmed).slice(0, MAX_QUOTE_LENGTH);
  return JSON.stringify(short + (trimmed.length > MAX_QUOTE_LENGTH ? "…" : ""));
}

/**
 * Delay that the `retry-after` header of a response requests, in milliseconds, at
 * most five minutes. Reads the header in seconds, the form that API servers use.
 */
export function retryAfter(response: HttpResponse): number | undefined {
  const value = response.headers["retry-after"];
  return value !== undefined && /^\d{1,6}$/.test(value)
    ? pause(Number(value))
    : undefined;
}
