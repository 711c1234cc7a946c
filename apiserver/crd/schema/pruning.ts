import type { OpenApiSchema } from "../../../core/patch/schema.ts";
import { isJsonObject } from "../../../core/patch/json_value.ts";
import { fieldSchema } from "./correlation.ts";

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

interface PrunedValue {
  readonly path: string;
  readonly unknown: string[];
}

function below({ path, unknown }: PrunedValue, name: string): PrunedValue {
  return { path: path === "" ? name : `${path}.${name}`, unknown };
}

/** Without a schema nothing is known, so that every field goes. */
function prune(
  value: unknown,
  schema: OpenApiSchema | undefined,
  pruned: PrunedValue,
): void {
  const keeps = schema?.["x-kubernetes-preserve-unknown-fields"] === true;
  if (Array.isArray(value)) {
    if (keeps && schema.items === undefined) return;
    for (const [index, item] of value.entries()) {
      const at = { ...pruned, path: `${pruned.path}[${index}]` };
      // Items below a place that keeps unknown fields are kept with it.
      prune(item, keeps ? keeping(schema.items) : schema?.items, at);
    }
    return;
  }
  if (!isJsonObject(value)) return;
  for (const [name, field] of Object.entries(value)) {
    if (schema?.["x-kubernetes-embedded-resource"] && META_FIELDS.has(name)) {
      continue;
    }
    const known = schema && fieldSchema(schema, name);
    if (known !== undefined) prune(field, known, below(pruned, name));
    else if (keeps) continue;
    else if (schema?.additionalProperties === true) {
      prune(field, undefined, below(pruned, name));
    } else {
      pruned.unknown.push(below(pruned, name).path);
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
  if (!isJsonObject(value)) return;
  for (const [name, field] of Object.entries(value)) {
    const known = schema && fieldSchema(schema, name);
    const hasDefault = known?.default !== undefined && known.default !== null;
    if (field === null && known && !known.nullable && !hasDefault) {
      delete value[name];
    } else pruneNulls(field, known);
  }
}
