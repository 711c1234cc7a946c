import { isJsonObject } from "@coracle/operator/internal";

/** Whether a schema or CRD contains CEL rules. */
export function hasRules(value: unknown): boolean {
  return hasField(value, ["x-kubernetes-validations"]);
}

/** Whether an object contains CEL rules or patterns. */
export function hasPatterns(value: unknown): boolean {
  return hasField(value, ["x-kubernetes-validations", "pattern"]);
}

function hasField(value: unknown, names: readonly string[]): boolean {
  if (Array.isArray(value)) return value.some((one) => hasField(one, names));
  return isJsonObject(value) &&
    Object.entries(value).some(([name, inner]) =>
      names.includes(name) || hasField(inner, names)
    );
}
