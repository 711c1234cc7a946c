import type { LabelSelector } from "../../../core/kinds/meta_v1.ts";
import type { FieldPath } from "../../validation/field_path.ts";
import {
  labelValueProblems,
  qualifiedNameProblems,
} from "../../validation/names.ts";
import { check, type ValidationRules } from "./validation_rule.ts";

/** Checks the names and values of labels. */
export function checkLabels(
  labels: Record<string, string> | undefined,
  fieldPath: FieldPath,
): void {
  for (const [name, value] of Object.entries(labels ?? {})) {
    fieldPath.problems("", name, qualifiedNameProblems(name));
    fieldPath.problems("", value, labelValueProblems(value));
  }
}

/** Checks the names of annotations. */
export function checkAnnotations(
  annotations: Record<string, string> | undefined,
  fieldPath: FieldPath,
): void {
  for (const name of Object.keys(annotations ?? {})) {
    fieldPath.problems("", name, qualifiedNameProblems(name.toLowerCase()));
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

function checkSelector(
  { matchLabels, matchExpressions = [] }: LabelSelector,
  fieldPath: FieldPath,
): void {
  checkLabels(matchLabels, fieldPath.child("matchLabels"));
  for (const [index, requirement] of matchExpressions.entries()) {
    const at = fieldPath.child(`matchExpressions[${index}]`);
    const { key, operator, values = [] } = requirement;
    if (!checkValueCount(operator, values, at)) {
      at.invalid("operator", operator, "not a valid selector operator");
    }
    at.problems("key", key, qualifiedNameProblems(key));
    for (const [number, value] of values.entries()) {
      at.problems(`values[${number}]`, value, labelValueProblems(value));
    }
  }
}

/**
 * Checks that a requirement has values if its operator takes values, and has
 * none otherwise.
 *
 * @returns Whether the operator takes values.
 */
export function checkValueCount(
  operator: string,
  values: readonly string[],
  fieldPath: FieldPath,
): boolean {
  if (operator === "In" || operator === "NotIn") {
    if (values.length === 0) {
      fieldPath.required(
        "values",
        "must be specified when `operator` is 'In' or 'NotIn'",
      );
    }
    return true;
  }
  if (operator !== "Exists" && operator !== "DoesNotExist") return false;
  if (values.length > 0) {
    fieldPath.forbidden(
      "values",
      "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    );
  }
  return true;
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

/** Validation rules of label selectors. */
export const LABEL_RULES: ValidationRules = [
  check("apimachinery.pkg.apis.meta.v1.LabelSelector", checkSelector),
];
