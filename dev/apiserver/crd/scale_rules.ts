import type { UntypedObject } from "@coracle/operator/client";
import { isJsonObject, type StatusCause } from "@coracle/operator/internal";
import type { ScalePaths } from "../registry.ts";
import { fieldError } from "../status.ts";
import { ownField } from "./schema/json_tree.ts";
import { goTypeName } from "../validation/go_value.ts";
import { isInteger, writeJson } from "../exact_json.ts";

const MAX_REPLICAS = 2 ** 31 - 1;

/** Validates the fields of an object that the scale subresource uses; returns the violations. */
export function scaleCauses(
  object: UntypedObject,
  scale: ScalePaths | undefined,
  parts: readonly ("spec" | "status")[],
): StatusCause[] {
  if (scale === undefined) return [];
  const causes: StatusCause[] = [];
  if (parts.includes("spec")) {
    causes.push(...replicaCauses(object, scale.specReplicas));
  }
  causes.push(...replicaCauses(object, scale.statusReplicas));
  const { labelSelector = "" } = scale;
  const selector = labelSelector === ""
    ? undefined
    : valueAt(object, labelSelector);
  if (selector !== undefined && typeof selector !== "string") {
    const why = accessorText(labelSelector, selector, "string");
    causes.push(fieldError.invalid(labelSelector, "", why));
  }
  return causes;
}

function replicaCauses(object: UntypedObject, path: string): StatusCause[] {
  const value = valueAt(object, path);
  if (value === undefined) return [];
  if (!isInteger(value)) {
    const why = accessorText(path, value, "int64");
    return [fieldError.invalid(path, 0, why)];
  }
  if (value as number < 0) {
    return [
      fieldError.invalid(path, value, "should be a non-negative integer"),
    ];
  }
  return value as number > MAX_REPLICAS
    ? [fieldError.invalid(
      path,
      value,
      `should be less than or equal to ${MAX_REPLICAS}`,
    )]
    : [];
}

function valueAt(object: UntypedObject, path: string): unknown {
  let value: unknown = object;
  for (const name of path.replace(/^\./, "").split(".")) {
    if (!isJsonObject(value)) return undefined;
    value = ownField(value, name);
  }
  return value;
}

function accessorText(path: string, value: unknown, wanted: string): string {
  return `${path} accessor error: ${valueText(value)} is of the type ${
    goTypeName(value)
  }, expected ${wanted}`;
}

function valueText(value: unknown): string {
  if (value === null) return "<nil>";
  if (Number.isInteger(value) && !isInteger(value)) {
    return (value as number).toExponential();
  }
  return writeJson(value).replace(/^"|"$/g, "");
}
