import type { StatusCause } from "../../../core/api/api_error.ts";
import type { OpenApiSchema } from "../../../core/patch/schema.ts";
import { goShown } from "../../go_value.ts";
import { fieldError } from "../../status.ts";
import { childPath, fieldOf } from "../../field_path.ts";
import type { Correlation } from "./correlation.ts";

/** A value that is being checked, and where it stands. */
export interface Subject {
  readonly value: unknown;
  readonly schema: OpenApiSchema;
  /** Dotted, as `spec.list[0]`; empty for the validated value itself. */
  readonly path: string;
  /** The old value, where an update is checked and there was one. */
  readonly correlation?: Correlation | undefined;
}

/** What one check of a schema found wrong. */
export interface Finding {
  /** Which check; those not named here are told by their text. */
  readonly kind:
    | "enum"
    | "items"
    | "length"
    | "properties"
    | "required"
    | "type"
    | "value"
    | "schema";
  /** The place below the validated value, dotted; may begin with a dot. */
  readonly name: string;
  readonly text: string;
  readonly value?: unknown;
  /** The limit that was passed. */
  readonly limit?: number;
  /** The values of an enum. */
  readonly values?: readonly unknown[];
}

/** Findings in order, and how much of the schema the value went through. */
export interface Findings {
  readonly list: readonly Finding[];
  /** Of several alternatives, the one with the most matches explains best. */
  readonly matches: number;
}

/** Joins findings; the same text is told once. */
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

export function found(
  subject: Subject,
  finding: Omit<Finding, "name"> & { readonly name?: string },
): Findings {
  return {
    list: [{ name: subject.path, ...finding }],
    matches: 0,
  };
}

/**
 * Findings as causes.
 *
 * @param base Where the validated value stands in the object.
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
        values.map((one) =>
          typeof one === "string" ? one : JSON.stringify(one)
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
