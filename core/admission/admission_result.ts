import type { StatusCause } from "../api/api_error.ts";
import { checkOption, checkOptions, type OptionRules } from "../api/options.ts";

/** HTTP status by the reason of a denial. */
const CODES = { Forbidden: 403, Invalid: 422, BadRequest: 400, Conflict: 409 };

/** Options of {@linkcode deny}. */
export interface DenyOptions {
  /** Path of the field that is wrong, such as `spec.schedule`. */
  readonly field?: string | undefined;
  /**
   * Reason in the Status that the user gets. Defaults to `"Invalid"` if a field or
   * causes are given, and to `"Forbidden"` otherwise.
   */
  readonly reason?: "Forbidden" | "Invalid" | "BadRequest" | "Conflict";
  /**
   * Fields that are wrong, each with its own message, when there are several. The
   * message of the denial ends with them: not every client shows causes.
   */
  readonly causes?:
    | readonly { readonly field: string; readonly message: string }[]
    | undefined;
  /** Warnings for the user in addition. */
  readonly warnings?: readonly string[] | undefined;
}

const CAUSE_RULES = { field: "name", message: "name" } as const;
const DENY_RULES: OptionRules<DenyOptions> = {
  field: "name?",
  reason: ["Forbidden", "Invalid", "BadRequest", "Conflict", undefined],
  causes: { type: "array?", options: CAUSE_RULES },
  warnings: "strings?",
};

/** Options of {@linkcode allow}. */
export interface AllowOptions {
  /**
   * Warnings, which kubectl prints. The API server shortens those of more than 256
   * characters.
   */
  readonly warnings?: readonly string[] | undefined;
}

const ALLOW_RULES: OptionRules<AllowOptions> = { warnings: "strings?" };

/** Decision of a `validate` handler, made by {@linkcode allow} or {@linkcode deny}. */
export class AdmissionDecision {
  /** Refusal; undefined if the request is allowed. */
  readonly denied:
    | {
      /** HTTP status code. */
      readonly code: number;
      /** Reason of the Status. */
      readonly reason: string;
      /** Message of the Status. */
      readonly message: string;
      /** Causes by field. */
      readonly causes: readonly StatusCause[];
    }
    | undefined;
  /** Warnings for the user. */
  readonly warnings: readonly string[];

  /** Creates a decision; programs call {@linkcode allow} and {@linkcode deny}. */
  constructor(
    denied: AdmissionDecision["denied"],
    warnings: readonly string[] = [],
  ) {
    this.denied = denied;
    this.warnings = warnings;
  }
}

/**
 * Allows a request, with warnings. A `validate` handler that returns nothing allows
 * it as well.
 *
 * @throws {TypeError} If an option is unknown or of another type.
 *
 * @example Warn of a field
 * ```ts
 * import { allow } from "@coracle/operator";
 *
 * const decision = allow({ warnings: ["spec.size is deprecated"] });
 * if (decision.denied !== undefined) throw new Error("Unexpected");
 * ```
 */
export function allow(options: AllowOptions = {}): AdmissionDecision {
  checkOptions(options, ALLOW_RULES, "allow()");
  return new AdmissionDecision(undefined, options.warnings);
}

/**
 * Denies a request: its user gets the message, and the fields that are wrong.
 *
 * @param message What is wrong, as the user reads it.
 * @throws {TypeError | RangeError} If the message is empty, or an option is unknown
 * or not valid.
 *
 * @example Deny a value of a field
 * ```ts
 * import { deny } from "@coracle/operator";
 *
 * const decision = deny("must be a cron expression", { field: "spec.schedule" });
 * if (decision.denied?.code !== 422) throw new Error("Unexpected");
 * ```
 */
export function deny(
  message: string,
  options: DenyOptions = {},
): AdmissionDecision {
  const subject = "deny()";
  checkOption(message, "name", { name: "message", subject });
  checkOptions(options, DENY_RULES, subject);
  const { field, causes = [], warnings } = options;
  const all = field === undefined ? causes : [{ field, message }, ...causes];
  const { reason = all.length > 0 ? "Invalid" : "Forbidden" } = options;
  const own = field === undefined ? message : `${field}: ${message}`;
  const others = causes.map((cause) => `${cause.field}: ${cause.message}`);
  return new AdmissionDecision({
    code: CODES[reason],
    reason,
    message: [own, ...others].join("; "),
    causes: all.map((cause) => ({ reason: "FieldValueInvalid", ...cause })),
  }, warnings);
}
