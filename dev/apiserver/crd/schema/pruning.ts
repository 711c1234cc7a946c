import { isJsonObject, type OpenApiSchema } from "@coracle/operator/internal";
import { fieldSchema } from "./json_tree.ts";

/** Fields of every object, which pruning keeps. */
const META_FIELDS: ReadonlySet<string> = new Set([
  "apiVersion",
  "kind",
  "metadata",
]);

/**
 * Prunes a custom resource, in place: drops fields that the structural schema
 * does not specify, except where it preserves unknown fields.
 *
 * @param object Whole custom resource.
 * @returns Paths of the dropped fields in alphabetical order.
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

/** Prunes a value that is not a whole object, in place. */
export function pruneValue(value: unknown, schema: OpenApiSchema): void {
  prune(value, schema, { path: "", unknown: [] });
}

/** Path of the value being pruned, with the list of dropped fields. */
interface PrunedValue {
  readonly path: string;
  readonly unknown: string[];
}

function below({ path, unknown }: PrunedValue, name: string): PrunedValue {
  return { path: path === "" ? name : `${path}.${name}`, unknown };
}

/** Prunes a value; without a schema all fields are dropped. */
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
      // A list that preserves unknown fields preserves them in its items, too.
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
 * Drops nulls, in place, in fields that are not nullable and have no default to
 * replace them.
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
