import type {
  Status,
  StatusCause,
  StatusDetails,
} from "../core/api/api_error.ts";
import { goShown } from "./go_value.ts";

/** An answer that says what is wrong: thrown anywhere below a request. */
export class StatusError extends Error {
  /** The body of the answer; its `code` is the HTTP status. */
  readonly status: Status & { readonly code: number };
  /** Headers that the answer carries beside the usual ones. */
  readonly headers: Readonly<Record<string, string>>;

  /**
   * @param status The Status without what is the same in all of them.
   * @param headers Headers that the answer carries beside the usual ones.
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

/** The resource that an error is about, as Status details name it. */
export interface ErrorSubject {
  readonly group: string;
  /** The plural where the path named it, the kind where an object did. */
  readonly kind: string;
  readonly name?: string | undefined;
}

/** `widgets.example.com`, or `configmaps` in the core group. */
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

/** 400: the request cannot be understood. */
export function badRequest(message: string): StatusError {
  return new StatusError({ code: 400, reason: "BadRequest", message });
}

/** 404: there is no such object. */
export function notFound(subject: ErrorSubject): StatusError {
  return new StatusError({
    code: 404,
    reason: "NotFound",
    message: `${qualified(subject)} "${subject.name ?? ""}" not found`,
    details: detailsOf(subject),
  });
}

/** 404: nothing is served at the path. */
export function noSuchPath(): StatusError {
  return new StatusError({
    code: 404,
    reason: "NotFound",
    message: "the server could not find the requested resource",
    details: {},
  });
}

/** 405: nothing is done at the path by that method. */
export function noSuchMethod(): StatusError {
  return new StatusError({
    code: 405,
    reason: "MethodNotAllowed",
    message: "the server does not allow this method on the requested resource",
    details: {},
  });
}

/** 409: a create met an object of that name. */
export function alreadyExists(subject: ErrorSubject): StatusError {
  return new StatusError({
    code: 409,
    reason: "AlreadyExists",
    message: `${qualified(subject)} "${subject.name ?? ""}" already exists`,
    details: detailsOf(subject),
  });
}

/** 409: the object is not as the request takes it to be. */
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

/** 403: the credentials, or a rule of the cluster, do not permit it. */
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

/** 500: the server cannot do it. */
export function internalError(why: string): StatusError {
  return new StatusError({
    code: 500,
    reason: "InternalError",
    message: `Internal error occurred: ${why}`,
    details: { causes: [{ message: why }] },
  });
}

/**
 * 422: the object violates its schema or a rule.
 *
 * @param subject The group, the kind (not the plural) and the name.
 * @param causes What is wrong with which field; at least one.
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

/** Makers of causes, one for each kind of violation, in kube-apiserver's words. */
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
    message: `Forbidden: ${why}`,
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
  tooLong: (field: string, limit: number): StatusCause => ({
    reason: "FieldValueTooLong",
    message: limit < 0
      ? "Too long: value is too long"
      : `Too long: may not be more than ${limit} bytes`,
    field,
  }),
  tooMany: (field: string, count: number, limit: number): StatusCause => ({
    reason: "FieldValueTooMany",
    message: `Too many: ${count}: must have at most ${limit} items`,
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
