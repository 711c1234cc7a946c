import type { FieldPath } from "../../field_path.ts";
import { check, type DefinitionRule } from "./validation_rule.ts";

/** What is checked of the value of one field; absent ones are undefined. */
export type FieldCheck = (
  value: unknown,
  field: string,
  fieldPath: FieldPath,
) => void;

/** A rule that checks the fields of a struct one by one, in the order given. */
export function checkFields<T>(
  definition: string,
  checks: Partial<Record<keyof T & string, FieldCheck>>,
): DefinitionRule {
  const entries = Object.entries(checks) as [string, FieldCheck][];
  return check(
    definition,
    (struct: Readonly<Record<string, unknown>>, fieldPath) => {
      for (const [field, one] of entries) one(struct[field], field, fieldPath);
    },
  );
}

function isMissing(value: unknown): boolean {
  return value === undefined || value === null || value === "" ||
    Array.isArray(value) && value.length === 0;
}

/** Something has to be there: no empty text, no empty list. */
export function required(why = ""): FieldCheck {
  return (value, field, fieldPath) => {
    if (isMissing(value)) fieldPath.required(field, why);
  };
}

/** A text has to be there, without any of some problems. */
export function requiredText(
  problems: (text: string) => readonly string[],
): FieldCheck {
  return (value, field, fieldPath) => {
    if (isMissing(value)) fieldPath.required(field);
    else fieldPath.problems(field, value, problems(value as string));
  };
}

/** A text has none of some problems; the empty one counts where it is given. */
export function text(
  problems: (text: string) => readonly string[],
): FieldCheck {
  return (value, field, fieldPath) => {
    if (typeof value !== "string") return;
    fieldPath.problems(field, value, problems(value));
  };
}

/** A text has none of some problems; it may be absent or empty. */
export function optionalText(
  problems: (text: string) => readonly string[],
): FieldCheck {
  return (value, field, fieldPath) => {
    if (typeof value !== "string" || value === "") return;
    fieldPath.problems(field, value, problems(value));
  };
}

/** A number is one of a range. */
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

/** A number, zero if it is absent, is more than zero. */
export function positive(why: string): FieldCheck {
  return (value, field, fieldPath) => {
    const number = value ?? 0;
    if (number as number <= 0) fieldPath.invalid(field, number, why);
  };
}

/** A text is one to choose from. */
export function oneOf(choices: readonly string[]): FieldCheck {
  return (value, field, fieldPath) => {
    const given = value ?? "";
    if (choices.includes(given as string)) return;
    fieldPath.notSupported(field, given, choices);
  };
}

/** Several checks of one field. */
export function all(...checks: readonly FieldCheck[]): FieldCheck {
  return (value, field, fieldPath) => {
    for (const one of checks) one(value, field, fieldPath);
  };
}
