import { isJsonObject, type OpenApiSchema } from "@coracle/operator/internal";
import { childPath, keyPath } from "../../validation/field_path.ts";
import { rawInteger } from "../../exact_json.ts";

/** Canonical JSON text; equal values have equal texts regardless of key order. */
export function canonicalText(value: unknown): string {
  return JSON.stringify(
    value,
    (_, inner: unknown) =>
      isJsonObject(inner)
        ? Object.fromEntries(
          Object.entries(inner).sort(([a], [b]) => a < b ? -1 : 1),
        )
        : rawInteger(inner),
  ) ?? "undefined";
}

/** Schema of a field, from `properties` or `additionalProperties`. */
export function fieldSchema(
  schema: OpenApiSchema,
  name: string,
): OpenApiSchema | undefined {
  const { properties, additionalProperties } = schema;
  if (properties !== undefined && Object.hasOwn(properties, name)) {
    return properties[name];
  }
  return typeof additionalProperties === "object"
    ? additionalProperties
    : undefined;
}

/**
 * Visits a value and the values in it that have a schema, outer values first.
 *
 * @param pathOf Path of a field; entries of maps are in brackets by default.
 */
export function visitSchema(
  value: unknown,
  schema: OpenApiSchema | undefined,
  path: string,
  visit: (value: unknown, schema: OpenApiSchema, path: string) => void,
  pathOf: (path: string, name: string, schema: OpenApiSchema) => string =
    pathIn,
): void {
  if (schema === undefined) return;
  visit(value, schema, path);
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      visitSchema(item, schema.items, keyPath(path, index), visit, pathOf);
    }
  } else if (isJsonObject(value)) {
    for (const [name, field] of Object.entries(value)) {
      const at = pathOf(path, name, schema);
      visitSchema(field, fieldSchema(schema, name), at, visit, pathOf);
    }
  }
}

function pathIn(
  path: string,
  name: string,
  { properties = {} }: OpenApiSchema,
): string {
  return Object.hasOwn(properties, name)
    ? childPath(path, name)
    : keyPath(path, name);
}
