import { checkOptions, type OptionRules } from "../../core/api/options.ts";
import { isOutcome, withoutUrlQueries } from "../conditions/outcome.ts";

/** One error among the causes of another. */
export interface ErrorCause {
  /** The name of its class, such as `TypeError`. */
  readonly type: string;
  /** What it says. */
  readonly message: string;
}

/** An error as a status tells it. */
export interface ErrorReport {
  /** Why, as one word for programs. */
  readonly reason: string;
  /** Why, with the causes, for people. */
  readonly message: string;
  /** What led to it, the nearest first. */
  readonly causes?: readonly ErrorCause[] | undefined;
  /** The labels whose patterns the error or one of its causes matches. */
  readonly labels?: readonly string[] | undefined;
  /** Where it was thrown. */
  readonly stack?: string | undefined;
}

/** How much of an error a status tells. */
export interface ErrorReportOptions {
  /**
   * The longest text of a field, in characters.
   *
   * @default {2048}
   */
  readonly maxLength?: number | undefined;
  /**
   * How many causes are told.
   *
   * @default {2}
   */
  readonly maxCauses?: number | undefined;
  /**
   * Whether the stack is told, as far as `maxLength` allows.
   *
   * @default {false}
   */
  readonly stack?: boolean | undefined;
  /**
   * Patterns by their label: the label is given to errors whose message, or that
   * of a cause, matches.
   *
   * @default {none}
   */
  readonly labels?: Readonly<Record<string, RegExp>> | undefined;
}

/** What the options of a report must be. */
export const REPORT_RULES: OptionRules<ErrorReportOptions> = {
  maxLength: "size?",
  maxCauses: "size?",
  stack: "boolean?",
  labels: "object?",
};

/** How far a chain of causes is followed at all: it may be a circle. */
const LONGEST_CHAIN = 16;

/**
 * An error as a status can hold it: bounded, with its causes, and without the
 * queries of URLs, which may hold secrets. The defaults are those of the Flink
 * operator.
 *
 * @param error What was thrown.
 * @param options How much is told.
 * @throws {TypeError | RangeError} If an option is unknown, missing or makes no
 * sense.
 *
 * @example Errors with a label
 * ```ts
 * import { errorReport } from "@coracle/operator/workflows";
 *
 * const error = new Error("cannot start", { cause: new Error("quota exceeded") });
 * const report = errorReport(error, { labels: { "no room": /quota/ } });
 * if (report.message !== "cannot start -> quota exceeded") throw new Error();
 * if (report.labels?.[0] !== "no room") throw new Error("Unexpected labels");
 * ```
 */
export function errorReport(
  error: unknown,
  options: ErrorReportOptions = {},
): ErrorReport {
  checkOptions(options, REPORT_RULES, "errorReport()");
  const { maxLength = 2_048, maxCauses = 2, stack = false } = options;
  const cut = (text: string) => limited(withoutUrlQueries(text), maxLength);
  const chain = chainOf(error);
  const told = chain.slice(0, maxCauses + 1);
  const causes = told.slice(1).map((cause) => ({
    type: cut(typeOf(cause)),
    message: cut(messageOf(cause)),
  }));
  const labels = Object.entries(options.labels ?? {})
    .filter(([, pattern]) =>
      chain.some((one) => messageOf(one).search(pattern) >= 0)
    )
    .map(([label]) => label);
  const trace = stack && error instanceof Error ? error.stack : undefined;
  return {
    reason: isOutcome(error) ? error.reason : "Error",
    message: cut(told.map(messageOf).join(" -> ")),
    ...(causes.length > 0 && { causes }),
    ...(labels.length > 0 && { labels }),
    ...(trace !== undefined && { stack: cut(trace) }),
  };
}

function chainOf(error: unknown): readonly unknown[] {
  const chain: unknown[] = [];
  let current = error;
  while (current !== undefined && chain.length < LONGEST_CHAIN) {
    chain.push(current);
    current = current instanceof Error ? current.cause : undefined;
  }
  return chain;
}

function typeOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function limited(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  return maxLength > 3
    ? `${text.slice(0, maxLength - 3)}...`
    : text.slice(0, maxLength);
}
