import type { UntypedObject } from "@coracle/operator/client";
import {
  isJsonObject,
  ownValue,
  type StatusCause,
} from "@coracle/operator/internal";
import type { ScalePaths } from "../registry.ts";
import { fieldError } from "../status.ts";
import { isWrittenFloat } from "../exact_json.ts";
import { goText, goTypeName } from "../validation/go_value.ts";

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
  if (labelSelector !== "") {
    const { why } = read(object, labelSelector, "string");
    if (why) causes.push(fieldError.invalid(labelSelector, "", why));
  }
  return causes;
}

function replicaCauses(object: UntypedObject, path: string): StatusCause[] {
  const { value, why } = read(object, path, "int64");
  if (why) return [fieldError.invalid(path, 0, why)];
  if (value === undefined) return [];
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

/** Reads a field as Go's accessors do: absent, a value of a type, or an error. */
function read(
  object: UntypedObject,
  path: string,
  wanted: "string" | "int64",
): { readonly value?: unknown; readonly why?: string } {
  let value: unknown = object;
  let isFloat = false;
  let at = "";
  for (const name of path.replace(/^\./, "").split(".")) {
    at += `.${name}`;
    if (value === undefined || value === null) return {};
    if (!isJsonObject(value)) {
      return { why: accessorText(at, value, "map[string]interface{}") };
    }
    isFloat = isWrittenFloat(value, name);
    value = ownValue(value, name);
  }
  const type = isFloat ? "float64" : goTypeName(value);
  if (value === undefined || type === wanted) return { value };
  return { why: accessorText(path, value, wanted, type) };
}

function accessorText(
  path: string,
  value: unknown,
  wanted: string,
  type = goTypeName(value),
): string {
  return `${path} accessor error: ${
    goText(value)
  } is of the type ${type}, expected ${wanted}`;
}
