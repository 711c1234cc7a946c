/** Details of a Kubernetes Status. */
export interface StatusDetails {
  /** Name of the object of the request. */
  readonly name?: string | undefined;
  /** API group of its kind. */
  readonly group?: string | undefined;
  /** Its kind, or the plural if the path named it. */
  readonly kind?: string | undefined;
  /** UID of the object. */
  readonly uid?: string | undefined;
  /** Causes of the failure: violations of single fields. */
  readonly causes?:
    | readonly {
      /** Reason in one word, such as `FieldValueRequired`. */
      readonly reason?: string | undefined;
      /** Description, for a person. */
      readonly message?: string | undefined;
      /** Path of the field, such as `spec.replicas`. */
      readonly field?: string | undefined;
    }[]
    | undefined;
  /** Minimum pause before the next attempt, in seconds. */
  readonly retryAfterSeconds?: number | undefined;
}

/** Cause within a Status. */
export type StatusCause = NonNullable<StatusDetails["causes"]>[number];

/** The body with which an API server says that a request failed. */
export interface Status {
  /** What it is. */
  readonly kind: "Status";
  /** Its version. */
  readonly apiVersion: "v1";
  /** Empty but for lists. */
  readonly metadata: Record<string, unknown>;
  /** Whether the request succeeded. */
  readonly status: "Success" | "Failure";
  /** Why not, for a person. */
  readonly message?: string | undefined;
  /** Why not, in one word, such as `NotFound`. */
  readonly reason?: string | undefined;
  /** Which object and which fields it is about. */
  readonly details?: StatusDetails | undefined;
  /** The HTTP status code. */
  readonly code?: number | undefined;
}

/** Marks errors of any copy of the library, npm's and JSR's side by side. */
const BRAND = Symbol.for("@coracle/operator/ApiError");

/** What an {@linkcode ApiError} is made of. */
export interface ApiErrorOptions {
  /** The HTTP status code; 410 for an ERROR event of an expired watch. */
  readonly status: number;
  /** Reason of the Status, such as `NotFound`. Empty by default. */
  readonly reason?: string | undefined;
  /** Object and fields that the error concerns; undefined if unknown. */
  readonly details?: StatusDetails | undefined;
  /**
   * Milliseconds until a retry, as the server requests; undefined if it does
   * not.
   */
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
  /** Object and fields that the error concerns; undefined if unknown. */
  readonly details: StatusDetails;
  /**
   * Milliseconds until a retry, as the server requests; undefined if it does
   * not.
   */
  readonly retryAfter: number | undefined;

  /**
   * Makes the error of an answer.
   *
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
