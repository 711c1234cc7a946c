import {
  isJsonObject,
  type OpenApiSchema,
  setOwn,
} from "@coracle/operator/internal";
import { fieldSchema } from "./json_tree.ts";

/**
 * Sets the defaults of a structural schema, in place, for fields that are
 * missing, or null without being nullable.
 */
export function setSchemaDefaults(
  value: unknown,
  schema: OpenApiSchema | undefined,
): void {
  if (schema === undefined) return;
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      if (isWrongNull(item, schema.items)) {
        value[index] = structuredClone(schema.items?.default ?? null);
      }
      setSchemaDefaults(value[index], schema.items);
    }
    return;
  }
  if (!isJsonObject(value)) return;
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    if (property.default === undefined || property.default === null) continue;
    if (!Object.hasOwn(value, name) || isWrongNull(value[name], property)) {
      setOwn(value, name, structuredClone(property.default));
    }
  }
  for (const name of Object.keys(value)) {
    const known = fieldSchema(schema, name);
    if (isWrongNull(value[name], known) && !isNamed(schema, name)) {
      setOwn(value, name, structuredClone(known?.default ?? null));
    }
    setSchemaDefaults(value[name], known);
  }
}

function isNamed({ properties = {} }: OpenApiSchema, name: string): boolean {
  return Object.hasOwn(properties, name);
}

function isWrongNull(
  value: unknown,
  schema: OpenApiSchema | undefined,
): boolean {
  return value === null && schema !== undefined && !schema.nullable;
}
