import type { FieldPath } from "../../validation/field_path.ts";

/** Check of a struct; appends violations to the path of the struct. */
export type ValidationRule = (value: never, fieldPath: FieldPath) => void;

/** Rule of a definition; `after` runs it once the fields of the struct were checked. */
export type DefinitionRule = readonly [
  definition: string,
  rule: ValidationRule,
  when?: "after" | undefined,
];

/** Rules with the definitions they apply to, named without `io.k8s.`. */
export type ValidationRules = readonly DefinitionRule[];

/** Entry of {@linkcode ValidationRules}; type checks the function. */
export function check<T>(
  definition: string,
  rule: (value: T, fieldPath: FieldPath) => void,
  when?: "after",
): DefinitionRule {
  return [definition, rule as ValidationRule, when];
}
