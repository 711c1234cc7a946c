/** What a Kubernetes Status is about: the object, the causes, and when to try again. */
export interface StatusDetails {
  /** Name of the object of the request. */
  readonly name?: string | undefined;
  /** API group of the object's kind. */
  readonly group?: string | undefined;
  /** Kind of the object, or its plural if the path contained that. */
  readonly kind?: string | undefined;
  /** UID of the object. */
  readonly uid?: string | undefined;
  /** Causes of the failure: violations of single fields. */
  readonly causes?:
    | readonly {
      /** Machine-readable reason, such as `FieldValueRequired`. */
      readonly reason?: string | undefined;
      /** Human-readable description. */
      readonly message?: string | undefined;
      /** Path of the field, such as `spec.replicas`. */
      readonly field?: string | undefined;
    }[]
    | undefined;
  /** Minimum pause before the next attempt, in seconds. */
  readonly retryAfterSeconds?: number | undefined;
}

/** Reason of a refusal, mostly one field. */
export type StatusCause = NonNullable<StatusDetails["causes"]>[number];

/** Status of a request (`metav1.Status`), the body of an error response. */
export interface Status {
  readonly kind: "Status";
  readonly apiVersion: "v1";
  /** List metadata; empty for errors. */
  readonly metadata: Record<string, unknown>;
  /** Whether the request succeeded. */
  readonly status: "Success" | "Failure";
  readonly message?: string | undefined;
  /** Machine-readable reason, such as `NotFound`. */
  readonly reason?: string | undefined;
  /** Object and fields that the status concerns. */
  readonly details?: StatusDetails | undefined;
  readonly code?: number | undefined;
}

/** Brand of errors, which all loaded copies of the library share. */
const BRAND = Symbol.for("@coracle/operator/ApiError");

export interface ApiErrorOptions {
  /** HTTP status code; 410 for an ERROR event of an expired watch. */
  readonly status: number;
  /** Reason of the Status, such as `NotFound`. Empty by default. */
  readonly reason?: string | undefined;
  /** Object and fields that the error concerns; undefined if unknown. */
  readonly details?: StatusDetails | undefined;
  /** Delay in milliseconds that the server requests before a retry, if any. */
  readonly retryAfter?: number | undefined;
}

/**
 * Error response of the API server. Use {@linkcode ApiError.is} instead of
 * `instanceof`, which fails when two copies of the library are loaded.
 *
 * @example Distinguish errors
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
  /** HTTP status code. */
  readonly status: number;
  /** Reason of the Status, such as `NotFound`; empty without a reason. */
  readonly reason: string;
  /** Object and fields that the error concerns; undefined if unknown. */
  readonly details: StatusDetails;
  /** Delay in milliseconds that the server requests before a retry, if any. */
  readonly retryAfter: number | undefined;

  /**
   * Creates the error for a response.
   *
   * @param message The failed action and the reason, without credentials.
   * @param options The content of the response.
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

  /** Whether a value is an ApiError of any copy of the library. */
  static is(value: unknown): value is ApiError {
    return typeof value === "object" && value !== null && BRAND in value;
  }

  /** Whether the object, or the kind, does not exist. */
  get isNotFound(): boolean {
    return this.status === 404;
  }

  /** Whether an object of the name already exists. */
  get isAlreadyExists(): boolean {
    return this.reason === "AlreadyExists";
  }

  /** Whether the object has changed, or another manager owns a field. */
  get isConflict(): boolean {
    return this.status === 409 && this.reason !== "AlreadyExists";
  }

  /** Whether the resource version or continue token has expired. */
  get isGone(): boolean {
    return this.status === 410;
  }

  /** Whether the object violates its schema or a rule. */
  get isInvalid(): boolean {
    return this.status === 422;
  }

  /** Whether the credentials are missing, wrong or expired. */
  get isUnauthorized(): boolean {
    return this.status === 401;
  }

  /** Whether the account is not allowed to make the request. */
  get isForbidden(): boolean {
    return this.status === 403;
  }

  /** Whether the server is overloaded and requests a later retry. */
  get isTooManyRequests(): boolean {
    return this.status === 429;
  }
}

/** Result of a request; undefined if what it is about does not exist. */
export async function ifFound<T>(result: Promise<T>): Promise<T | undefined> {
  try {
    return await result;
  } catch (error) {
    if (ApiError.is(error) && error.isNotFound) return undefined;
    throw error;
  }
}
