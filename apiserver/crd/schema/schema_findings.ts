import type { StatusCause } from "../../../core/api/api_error.ts";
import type { OpenApiSchema } from "../../../core/patch/schema.ts";
import { goShown } from "../../validation/go_value.ts";
import { fieldError } from "../../status.ts";
import { childPath, fieldOf } from "../../validation/field_path.ts";
import type { Correlation } from "./correlation.ts";

/** Value to validate, with its schema and path. */
export interface Subject {
  readonly value: unknown;
  readonly schema: OpenApiSchema;
  /** Dotted path such as `spec.list[0]`; empty for the root value. */
  readonly path: string;
  /** Correlation with the old value of an update, if there is one. */
  readonly correlation?: Correlation | undefined;
}

/** Violation of a schema. */
export interface Finding {
  /** Kind of the violation; `value`, `type` and `schema` have a text. */
  readonly kind:
    | "enum"
    | "items"
    | "length"
    | "properties"
    | "required"
    | "type"
    | "value"
    | "schema";
  /** Dotted path below the root value; may begin with a dot. */
  readonly name: string;
  readonly text: string;
  readonly value?: unknown;
  /** Limit that was exceeded. */
  readonly limit?: number;
  /** Supported values of an enum. */
  readonly values?: readonly unknown[];
}

/** Violations in order, with the number of schema checks that passed. */
export interface Findings {
  readonly list: readonly Finding[];
  /** Number of passed checks, by which the best of several failed alternatives is reported. */
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
  subject: Subject,
  finding: Omit<Finding, "name"> & { readonly name?: string },
): Findings {
  return { list: [{ name: subject.path, ...finding }], matches: 0 };
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
  return findings.map((finding) => findingCause(finding, base));
}

function findingCause(finding: Finding, base: string): StatusCause {
  const name = finding.name.replace(/^\./, "");
  if (finding.kind === "schema") {
    return fieldError.invalid(fieldOf(base), "", finding.text);
  }
  const field = fieldOf(name === "" ? base : childPath(base, name));
  const { value, limit = -1, values = [], text } = finding;
  switch (finding.kind) {
    case "required":
      return fieldError.required(field);
    case "enum":
      return fieldError.notSupported(
        field,
        value,
        values.map((supported) =>
          typeof supported === "string" ? supported : JSON.stringify(supported)
        ),
      );
    case "length":
      return fieldError.tooLong(field, limit);
    case "items":
    case "properties":
      return fieldError.tooMany(field, Number(value), limit);
    case "type":
      return {
        reason: "FieldValueTypeInvalid",
        message: `Invalid value: ${goShown(value ?? "")}: ${text}`,
        field,
      };
    case "value":
      return {
        reason: "FieldValueInvalid",
        message: `Invalid value: ${goShown(value ?? "")}: ${text}`,
        field,
      };
  }
}
