import {
  isJsonObject,
  type JsonObject,
  type OpenApiSchema,
  setOwn,
  type StatusCause,
} from "@coracle/operator/internal";
import { fieldError } from "../../status.ts";
import { keyPath } from "../../validation/field_path.ts";
import { isWrittenFloat } from "../../exact_json.ts";
import { canonicalText, visitSchema } from "./json_tree.ts";

/**
 * Checks that the lists of type `set` and `map` in a value have no duplicate
 * items or keys; returns the violations.
 */
export function listTypeCauses(
  value: unknown,
  schema: OpenApiSchema | undefined,
  path = "",
): StatusCause[] {
  const causes: StatusCause[] = [];
  visitSchema(value, schema, path, (value, schema, path) => {
    if (Array.isArray(value)) causes.push(...duplicates(value, schema, path));
  });
  return causes;
}

function duplicates(
  list: readonly unknown[],
  schema: OpenApiSchema,
  path: string,
): StatusCause[] {
  const type = schema["x-kubernetes-list-type"];
  if (type === "set") return repeated(list, path);
  if (type !== "map") return [];
  const stranger = list.findIndex((item) =>
    item !== null && !isJsonObject(item)
  );
  if (stranger >= 0) {
    return [fieldError.invalid(
      keyPath(path, stranger),
      list[stranger],
      "must be an object for an array of list-type map",
    )];
  }
  const names = schema["x-kubernetes-list-map-keys"] ?? [];
  const keys = list.map((item) => keysOf(item as JsonObject | null, names));
  return repeated(keys, path);
}

function keysOf(item: JsonObject | null, names: readonly string[]): JsonObject {
  const keys: JsonObject = {};
  for (const name of names) {
    if (item && Object.hasOwn(item, name)) setOwn(keys, name, item[name]);
  }
  return keys;
}

/** Duplicates among values; each is reported once, at its second occurrence. */
function repeated(values: readonly unknown[], path: string): StatusCause[] {
  const seen = new Map<string, number>();
  const causes: StatusCause[] = [];
  for (const [index, value] of values.entries()) {
    // In Go, a number written as a float never equals an integer.
    const text = `${isWrittenFloat(values, index)}${canonicalText(value)}`;
    const times = seen.get(text) ?? 0;
    seen.set(text, times + 1);
    if (times === 1) {
      causes.push(fieldError.duplicate(keyPath(path, index), value));
    }
  }
  return causes;
}
