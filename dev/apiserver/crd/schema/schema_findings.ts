import type { OpenApiSchema, StatusCause } from "@coracle/operator/internal";
import { fieldError } from "../../status.ts";
import { childPath, fieldOf } from "../../validation/field_path.ts";
import type { Correlation } from "./correlation.ts";

/** Value to validate, with its schema and path. */
export interface Subject {
  readonly value: unknown;
  readonly schema: OpenApiSchema;
  /** Whether the value is a number that was written as a float, such as `5.0`. */
  readonly isFloat?: boolean | undefined;
  /** Dotted path such as `spec.list[0]`; empty for the root value. */
  readonly path: string;
  /** Correlation with the old value of an update, if there is one. */
  readonly correlation?: Correlation | undefined;
}

/** Violation of a schema. */
export interface Finding {
  /** Dotted path below the root value; may begin with a dot. */
  readonly name: string;
  /** Text of kube-openapi; equal ones are reported once. */
  readonly text: string;
  /** Cause of the violation, given its field. */
  readonly cause: (field: string) => StatusCause;
}

/** Violations in order, with the number of schema checks that passed. */
export interface Findings {
  readonly list: readonly Finding[];
  /** Number of passed checks: of several failed alternatives, the one with most is reported. */
  readonly matches: number;
}

/** Merges findings; equal messages are reported once. */
export function merge(all: readonly Findings[]): Findings {
  const byText = new Map<string, Finding>();
  let matches = 0;
  for (const { list, matches: more } of all) {
    for (const finding of list) {
      const { text } = finding;
      if (!byText.has(text)) byText.set(text, finding);
    }
    matches += more;
  }
  return { list: [...byText.values()], matches };
}

/** Findings with a single violation of the subject. */
export function found(
  { path }: Subject,
  text: string,
  cause: Finding["cause"],
  name: string = path,
): Findings {
  return { list: [{ name, text, cause }], matches: 0 };
}

/** Findings with an invalid value. */
export function invalidValue(
  subject: Subject,
  text: string,
  value: unknown,
): Findings {
  return found(
    subject,
    text,
    (field) => fieldError.invalid(field, value ?? "", text),
  );
}

/** Findings with a violation that is reported at the root value. */
export function invalidAtRoot(subject: Subject, text: string): Findings {
  return found(
    subject,
    text,
    (field) => fieldError.invalid(field, "", text),
    "",
  );
}

/**
 * Converts findings to causes.
 *
 * @param base Path of the root value in the object.
 */
export function findingCauses(
  findings: readonly Finding[],
  base: string,
): StatusCause[] {
  return findings.map(({ name, cause }) => {
    const below = name.replace(/^\./, "");
    return cause(fieldOf(below === "" ? base : childPath(base, below)));
  });
}
