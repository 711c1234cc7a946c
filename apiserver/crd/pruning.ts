import type { OpenApiSchema } from "../../core/patch/schema.ts";
import { fieldSchema } from "./correlation.ts";
import { isObject } from "./json_tree.ts";

/** The fields that every object has; their own schemas do not prune them. */
const META_FIELDS: ReadonlySet<string> = new Set([
  "apiVersion",
  "kind",
  "metadata",
]);

/**
 * Drops, in place, the fields that a structural schema does not name, except
 * where it keeps unknown fields.
 *
 * @param object A whole custom resource.
 * @returns The paths of what was dropped, in order of the alphabet.
 */
export function pruneUnknown(
  object: Record<string, unknown>,
  schema: OpenApiSchema,
): string[] {
  const unknown: string[] = [];
  prune(object, { ...schema, "x-kubernetes-embedded-resource": true }, {
    path: "",
    unknown,
  });
  return unknown.sort();
}

/** Drops the unknown fields of a value that is no whole object, in place. */
export function pruneValue(value: unknown, schema: OpenApiSchema): void {
  prune(value, schema, { path: "", unknown: [] });
}

interface Place {
  readonly path: string;
  readonly unknown: string[];
}

function below({ path, unknown }: Place, name: string): Place {
  return { path: path === "" ? name : `${path}.${name}`, unknown };
}

/** Without a schema nothing is known, so that every field goes. */
function prune(
  value: unknown,
  schema: OpenApiSchema | undefined,
  place: Place,
): void {
  const keeps = schema?.["x-kubernetes-preserve-unknown-fields"] === true;
  if (Array.isArray(value)) {
    if (keeps && schema.items === undefined) return;
    for (const [index, item] of value.entries()) {
      const at = { ...place, path: `${place.path}[${index}]` };
      // Items below a place that keeps unknown fields are kept with it.
      prune(item, keeps ? keeping(schema.items) : schema?.items, at);
    }
    return;
  }
  if (!isObject(value)) return;
  for (const [name, field] of Object.entries(value)) {
    if (schema?.["x-kubernetes-embedded-resource"] && META_FIELDS.has(name)) {
      continue;
    }
    const known = schema && fieldSchema(schema, name);
    if (known !== undefined) prune(field, known, below(place, name));
    else if (keeps) continue;
    else if (schema?.additionalProperties === true) {
      prune(field, undefined, below(place, name));
    } else {
      place.unknown.push(below(place, name).path);
      delete value[name];
    }
  }
}

function keeping(schema: OpenApiSchema | undefined): OpenApiSchema {
  return { ...schema, "x-kubernetes-preserve-unknown-fields": true };
}

/**
 * Drops, in place, each null that may not stand where it does and that no
 * default replaces.
 */
export function pruneNulls(
  value: unknown,
  schema: OpenApiSchema | undefined,
): void {
  if (Array.isArray(value)) {
    for (const item of value) pruneNulls(item, schema?.items);
    return;
  }
  if (!isObject(value)) return;
  for (const [name, field] of Object.entries(value)) {
    const known = schema && fieldSchema(schema, name);
    const hasDefault = known?.default !== undefined && known.default !== null;
    if (field === null && known && !known.nullable && !hasDefault) {
      delete value[name];
    } else pruneNulls(field, known);
  }
}
