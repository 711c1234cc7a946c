/** One cause within a Status: which field is wrong, and how. */
export interface StatusCause {
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly field?: string | undefined;
}

/** What a Status tells beside its reason. */
export interface StatusDetails {
  readonly name?: string | undefined;
  readonly group?: string | undefined;
  readonly kind?: string | undefined;
  readonly uid?: string | undefined;
  readonly causes?: readonly StatusCause[] | undefined;
  readonly retryAfterSeconds?: number | undefined;
}

/** The body with which an API server says that a request failed. */
export interface Status {
  readonly kind: "Status";
  readonly apiVersion: "v1";
  readonly metadata: Record<string, unknown>;
  readonly status: "Success" | "Failure";
  readonly message?: string | undefined;
  readonly reason?: string | undefined;
  readonly details?: StatusDetails | undefined;
  readonly code?: number | undefined;
}

/** Marks errors of any copy of the library, npm's and JSR's side by side. */
const BRAND = Symbol.for("@coracle/operator/ApiError");

/** What an {@linkcode ApiError} is made of. */
export interface ApiErrorOptions {
  /** The HTTP status code; 410 for an ERROR event of an expired watch. */
  readonly status: number;
  /** The reason of the Status, such as `NotFound`; empty when there was none. */
  readonly reason?: string | undefined;
  readonly details?: StatusDetails | undefined;
  /** How long the server asks to wait, in milliseconds. */
  readonly retryAfter?: number | undefined;
}

/**
 * The API server answered with an error. Use the predicates instead of
 * `instanceof`, which fails when two copies of the library are loaded.
 *
 * @example Tell errors apart
 * ```ts
 * import { ApiError } from "@coracle/operator/core";
 *
 * const error: unknown = new ApiError("Cannot get Pod default/web: not found", {
 *   status: 404,
 *   reason: "NotFound",
 * });
 * if (!ApiError.is(error) || !error.isNotFound) throw new Error("Unexpected");
 * ```
 */
export class ApiError extends Error {
  /** The HTTP status code. */
  readonly status: number;
  /** The reason of the Status, such as `NotFound`; empty when there was none. */
  readonly reason: string;
  /** Which object and which fields the error is about. */
  readonly details: StatusDetails;
  /** How long the server asks to wait, in milliseconds. */
  readonly retryAfter: number | undefined;

  /**
   * @param message What failed and why, without credentials.
   * @param options What the server answered.
   */
  constructor(message: string, options: ApiErrorOptions) {
    super(message);
    this.name = "ApiError";
    this.status = options.status;
    this.reason = options.reason ?? "";
    this.details = options.details ?? {};
    this.retryAfter = options.retryAfter;
    Object.defineProperty(this, BRAND, { value: true });
  }

  /** Whether a value is such an error, from any copy of the library. */
  static is(value: unknown): value is ApiError {
    return typeof value === "object" && value !== null && BRAND in value;
  }

  /** The object, or the whole kind, does not exist. */
  get isNotFound(): boolean {
    return this.status === 404;
  }

  /** A create met an object of that name. */
  get isAlreadyExists(): boolean {
    return this.reason === "AlreadyExists";
  }

  /** The object changed meanwhile, or another manager owns a field. */
  get isConflict(): boolean {
    return this.status === 409 && this.reason !== "AlreadyExists";
  }

  /** The resource version or continue token is too old. */
  get isGone(): boolean {
    return this.status === 410;
  }

  /** The object violates its schema or a rule. */
  get isInvalid(): boolean {
    return this.status === 422;
  }

  /** The credentials are missing, wrong or expired. */
  get isUnauthorized(): boolean {
    return this.status === 401;
  }

  /** The credentials do not permit the request. */
  get isForbidden(): boolean {
    return this.status === 403;
  }

  /** The server asks to come back later. */
  get isTooManyRequests(): boolean {
    return this.status === 429;
  }
}
