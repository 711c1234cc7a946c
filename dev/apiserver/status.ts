import type { StatusDetails } from "@coracle/operator/client";
import type { Status, StatusCause } from "@coracle/operator/internal";
import { goShown } from "./validation/go_value.ts";

/**
 * Error that becomes the response to a request, as a Kubernetes Status; thrown
 * anywhere in a request.
 */
export class StatusError extends Error {
  /** Body of the response; its `code` is the HTTP status. */
  readonly status: Status & { readonly code: number };
  /** Additional headers of the response. */
  readonly headers: Readonly<Record<string, string>>;

  /**
   * Creates the error of a response.
   *
   * @param status Status without its constant fields.
   * @param headers Additional headers of the response.
   */
  constructor(
    status: {
      readonly code: number;
      readonly reason?: string | undefined;
      readonly message?: string | undefined;
      readonly details?: StatusDetails | undefined;
      readonly metadata?: Record<string, unknown> | undefined;
    },
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(status.message ?? status.reason ?? `HTTP ${status.code}`);
    this.name = "StatusError";
    this.status = {
      kind: "Status",
      apiVersion: "v1",
      status: "Failure",
      ...status,
      metadata: status.metadata ?? {},
    };
    this.headers = headers;
  }
}

/** Subject of an error, as in Status details. */
export interface ErrorSubject {
  readonly group: string;
  /**
   * Type of the subject: the plural if taken from the request path, the kind if
   * taken from an object.
   */
  readonly kind: string;
  readonly name?: string | undefined;
}

/**
 * Qualified resource: `widgets.example.com`, or `configmaps` in the core group.
 */
export function qualified(subject: ErrorSubject): string {
  return subject.group === ""
    ? subject.kind
    : `${subject.kind}.${subject.group}`;
}

function detailsOf(subject: ErrorSubject): StatusDetails {
  return {
    ...(subject.name ? { name: subject.name } : {}),
    ...(subject.group ? { group: subject.group } : {}),
    ...(subject.kind ? { kind: subject.kind } : {}),
  };
}

/** Error 400: the request is invalid. */
export function badRequest(message: string): StatusError {
  return new StatusError({ code: 400, reason: "BadRequest", message });
}

/** Error 404: the object does not exist. */
export function notFound(subject: ErrorSubject): StatusError {
  return new StatusError({
    code: 404,
    reason: "NotFound",
    message: `${qualified(subject)} "${subject.name ?? ""}" not found`,
    details: detailsOf(subject),
  });
}

/** Error 404: the path is not served. */
export function noSuchPath(): StatusError {
  return new StatusError({
    code: 404,
    reason: "NotFound",
    message: "the server could not find the requested resource",
    details: {},
  });
}

/** Error 405: the path does not support the method. */
export function noSuchMethod(): StatusError {
  return new StatusError({
    code: 405,
    reason: "MethodNotAllowed",
    message: "the server does not allow this method on the requested resource",
    details: {},
  });
}

/** Error 409: an object with the same name exists. */
export function alreadyExists(subject: ErrorSubject): StatusError {
  return new StatusError({
    code: 409,
    reason: "AlreadyExists",
    message: `${qualified(subject)} "${subject.name ?? ""}" already exists`,
    details: detailsOf(subject),
  });
}

/** Error 409: the object does not match a precondition of the request. */
export function conflict(subject: ErrorSubject, why: string): StatusError {
  return new StatusError({
    code: 409,
    reason: "Conflict",
    message: `Operation cannot be fulfilled on ${qualified(subject)} "${
      subject.name ?? ""
    }": ${why}`,
    details: detailsOf(subject),
  });
}

/** Error 403: the user or a rule of the cluster does not permit the request. */
export function forbidden(subject: ErrorSubject, why: string): StatusError {
  const named = subject.kind === ""
    ? `forbidden: ${why}`
    : subject.name
    ? `${qualified(subject)} "${subject.name}" is forbidden: ${why}`
    : `${qualified(subject)} is forbidden: ${why}`;
  return new StatusError({
    code: 403,
    reason: "Forbidden",
    message: named,
    details: detailsOf(subject),
  });
}

/** Error 500: internal error. */
export function internalError(why: string): StatusError {
  return new StatusError({
    code: 500,
    reason: "InternalError",
    message: `Internal error occurred: ${why}`,
    details: { causes: [{ message: why }] },
  });
}

/** Error 500 without reason and details, as of errors that Go does not wrap. */
export function serverError(message: string): StatusError {
  return new StatusError({ code: 500, message });
}

/** Error 422 without details: the patch cannot be applied. */
export function unprocessable(): StatusError {
  return new StatusError({
    code: 422,
    reason: "Invalid",
    message: "the server rejected our request due to an error in our request",
    details: {},
  });
}

/**
 * Error 422: the object violates its schema or a rule.
 *
 * @param subject Group, kind (not plural) and name.
 * @param causes Violations; at least one.
 */
export function invalid(
  subject: ErrorSubject,
  causes: readonly StatusCause[],
): StatusError {
  const texts = [
    ...new Set(causes.map((cause) => `${cause.field}: ${cause.message}`)),
  ];
  return new StatusError({
    code: 422,
    reason: "Invalid",
    message: `${qualified(subject)} "${subject.name ?? ""}" is invalid: ${
      texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`
    }`,
    details: { ...detailsOf(subject), causes },
  });
}

/**
 * Functions that create causes, one per type of violation, with
 * kube-apiserver's messages.
 */
export const fieldError = {
  invalid: (field: string, value: unknown, why: string): StatusCause => ({
    reason: "FieldValueInvalid",
    message: `Invalid value: ${goShown(value)}: ${why}`,
    field,
  }),
  required: (field: string, why = ""): StatusCause => ({
    reason: "FieldValueRequired",
    message: why === "" ? "Required value" : `Required value: ${why}`,
    field,
  }),
  duplicate: (field: string, value: unknown): StatusCause => ({
    reason: "FieldValueDuplicate",
    message: `Duplicate value: ${goShown(value)}`,
    field,
  }),
  forbidden: (field: string, why: string): StatusCause => ({
    reason: "FieldValueForbidden",
    message: why === "" ? "Forbidden" : `Forbidden: ${why}`,
    field,
  }),
  notSupported: (
    field: string,
    value: unknown,
    supported: readonly string[],
  ): StatusCause => ({
    reason: "FieldValueNotSupported",
    message: `Unsupported value: ${goShown(value)}${
      supported.length === 0
        ? ""
        : `: supported values: ${
          supported.map((one) => JSON.stringify(one)).join(", ")
        }`
    }`,
    field,
  }),
  tooLong: (field: string, limit: number, unit = "byte"): StatusCause => ({
    reason: "FieldValueTooLong",
    message: limit < 0
      ? "Too long: value is too long"
      : `Too long: may not be more than ${limit} ${unit}${
        limit === 1 ? "" : "s"
      }`,
    field,
  }),
  tooMany: (field: string, count: number, limit: number): StatusCause => ({
    reason: "FieldValueTooMany",
    message: `Too many: ${count}: must have at most ${limit} item${
      limit === 1 ? "" : "s"
    }`,
    field,
  }),
  notFound: (field: string, value: unknown): StatusCause => ({
    reason: "FieldValueNotFound",
    message: `Not found: ${goShown(value)}`,
    field,
  }),
  typeInvalid: (field: string, value: unknown, why: string): StatusCause => ({
    reason: "FieldValueTypeInvalid",
    message: `Invalid value: ${goShown(value)}: ${why}`,
    field,
  }),
};
