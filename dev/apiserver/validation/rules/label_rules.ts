import type { LabelSelector } from "@coracle/operator/kinds";
import type { FieldPath } from "../field_path.ts";
import { labelValueProblems, qualifiedNameProblems } from "../names.ts";

/** Checks the names and values of labels. */
export function checkLabels(
  labels: Record<string, string> | undefined,
  fieldPath: FieldPath,
): void {
  for (const [name, value] of Object.entries(labels ?? {})) {
    fieldPath.problems(name, qualifiedNameProblems(name));
    fieldPath.problems(value, labelValueProblems(value));
  }
}

/** Checks the names of annotations. */
export function checkAnnotations(
  annotations: Record<string, string> | undefined,
  fieldPath: FieldPath,
): void {
  for (const name of Object.keys(annotations ?? {})) {
    fieldPath.problems(name, qualifiedNameProblems(name.toLowerCase()));
  }
}

const OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist"];

function isMalformed(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
) {
  const isBad = (key: string, values: readonly string[]) =>
    qualifiedNameProblems(key).length > 0 ||
    values.some((value) => labelValueProblems(value).length > 0);
  return Object.entries(matchLabels).some(([key, value]) =>
    isBad(key, [value])
  ) || matchExpressions.some(({ key, operator, values = [] }) => {
    const takesValues = operator === "In" || operator === "NotIn";
    return !OPERATORS.includes(operator) ||
      takesValues !== values.length > 0 || isBad(key, values);
  });
}

/** Whether the labels match the selector; undefined if the selector is malformed. */
export function selects(
  selector: LabelSelector,
  labels: Record<string, string>,
): boolean | undefined {
  if (isMalformed(selector)) return undefined;
  const { matchLabels = {}, matchExpressions = [] } = selector;
  return Object.entries(matchLabels).every(([name, value]) =>
    labels[name] === value
  ) && matchExpressions.every(({ key, operator, values = [] }) => {
    const value = labels[key];
    switch (operator) {
      case "In":
        return value !== undefined && values.includes(value);
      case "NotIn":
        return value === undefined || !values.includes(value);
      case "Exists":
        return value !== undefined;
      default:
        return value === undefined;
    }
  });
}
