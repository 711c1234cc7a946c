import type { FieldPath } from "../../validation/field_path.ts";
import { check, type DefinitionRule } from "./validation_rule.ts";

/** Check of the value of a field; undefined if the field is absent. */
export type FieldCheck = (
  value: unknown,
  field: string,
  fieldPath: FieldPath,
) => void;

/** Rule that checks the fields of a struct in the given order. */
export function checkFields<T>(
  definition: string,
  checks: Partial<Record<keyof T & string, FieldCheck>>,
): DefinitionRule {
  const entries = Object.entries(checks) as [string, FieldCheck][];
  return check(
    definition,
    (struct: Readonly<Record<string, unknown>>, fieldPath) => {
      for (const [field, check] of entries) {
        check(struct[field], field, fieldPath);
      }
    },
  );
}

function isMissing(value: unknown): boolean {
  return value === undefined || value === null || value === "" ||
    Array.isArray(value) && value.length === 0;
}

/** Check that a field is set, and is not an empty text or list. */
export function required(why = ""): FieldCheck {
  return (value, field, fieldPath) => {
    if (isMissing(value)) fieldPath.required(field, why);
  };
}

/** Check that a text is set and valid; `problems` returns its violations. */
export function requiredText(
  problems: (text: string) => readonly string[],
): FieldCheck {
  return (value, field, fieldPath) => {
    if (isMissing(value)) fieldPath.required(field);
    else fieldPath.problems(field, value, problems(value as string));
  };
}

/** Check that a text, if set, is valid; an empty text is checked, too. */
export function text(
  problems: (text: string) => readonly string[],
): FieldCheck {
  return (value, field, fieldPath) => {
    if (typeof value !== "string") return;
    fieldPath.problems(field, value, problems(value));
  };
}

/** Check that a text is valid unless it is absent or empty. */
export function optionalText(
  problems: (text: string) => readonly string[],
): FieldCheck {
  return (value, field, fieldPath) => {
    if (typeof value !== "string" || value === "") return;
    fieldPath.problems(field, value, problems(value));
  };
}

/** Check that a number, if set, is in a range; both ends are included. */
export function between(low: number, high: number): FieldCheck {
  return (value, field, fieldPath) => {
    if (typeof value !== "number" || value >= low && value <= high) return;
    fieldPath.invalid(
      field,
      value,
      `must be between ${low} and ${high}, inclusive`,
    );
  };
}

/** Check that a number is greater than zero; an absent one counts as zero. */
export function positive(why: string): FieldCheck {
  return (value, field, fieldPath) => {
    const number = value ?? 0;
    if (number as number <= 0) fieldPath.invalid(field, number, why);
  };
}

/** Check that a text is one of the supported values. */
export function oneOf(choices: readonly string[]): FieldCheck {
  return (value, field, fieldPath) => {
    const given = value ?? "";
    if (choices.includes(given as string)) return;
    fieldPath.notSupported(field, given, choices);
  };
}

/** Combines several checks of a field. */
export function all(...checks: readonly FieldCheck[]): FieldCheck {
  return (value, field, fieldPath) => {
    for (const check of checks) check(value, field, fieldPath);
  };
}
