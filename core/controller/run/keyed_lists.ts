import type { OpenApiSchema } from "../../patch/schema.ts";
import {
  isJsonObject,
  jsonEquals,
  type JsonObject,
} from "../../patch/json_value.ts";
import { applyMergePatch } from "../../patch/merge_patch.ts";

type Schema = OpenApiSchema | undefined;

function listOf(...keys: string[]): OpenApiSchema {
  return {
    items: {},
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": keys,
  };
}

/** Keyed lists of kinds without a schema. */
const WELL_KNOWN: Readonly<Record<string, OpenApiSchema>> = {
  conditions: listOf("type"),
};
const METADATA: OpenApiSchema = {
  properties: { ownerReferences: listOf("uid") },
};

/** Schema of a field of an object. */
function fieldOf(schema: Schema, name: string): Schema {
  if (name === "metadata" && schema?.type !== "array") return METADATA;
  if (schema === undefined) return WELL_KNOWN[name];
  const { properties, additionalProperties } = schema;
  if (properties !== undefined && Object.hasOwn(properties, name)) {
    return properties[name];
  }
  return typeof additionalProperties === "object" ? additionalProperties : {};
}

/** Keys of an entry as text; undefined if one is missing. */
function entryKey(entry: unknown, schema: Schema): string | undefined {
  if (!isJsonObject(entry)) return undefined;
  const keys = (schema?.["x-kubernetes-list-map-keys"] ?? []).map((name) =>
    entry[name] ?? schema?.items?.properties?.[name]?.default
  );
  return keys.includes(undefined) ? undefined : JSON.stringify(keys);
}

/** Whether a value is a list whose entries are all identified by their keys. */
function isKeyed(value: unknown, schema: Schema): value is JsonObject[] {
  return schema?.["x-kubernetes-list-type"] === "map" &&
    Array.isArray(value) &&
    value.every((entry) => entryKey(entry, schema) !== undefined);
}

/** Whether a merge patch contains a keyed list. */
export function mentionsKeyedList(patch: unknown, schema: Schema): boolean {
  if (!isJsonObject(patch)) return isKeyed(patch, schema);
  return Object.keys(patch).some((name) =>
    typeof patch[name] === "object" && patch[name] !== null &&
    mentionsKeyedList(patch[name], fieldOf(schema, name))
  );
}

/**
 * Merge patch in which keyed lists are complete: their entries are merged into
 * those of the current object, and entries that are not mentioned stay.
 *
 * @param patch Merge patch.
 * @param schema Schema of the value; undefined if the kind has none.
 * @param states `current` is the value on the server, and `given` the value
 * that the patch was made from: an entry equal to the given one is not
 * mentioned.
 */
export function mergeKeyedLists(
  patch: unknown,
  schema: Schema,
  { given, current }: { readonly given: unknown; readonly current: unknown },
): unknown {
  if (isKeyed(patch, schema)) {
    const known = entriesOf(given, schema);
    const entries = entriesOf(current, schema);
    for (const entry of patch) {
      const key = entryKey(entry, schema) as string;
      if (known.has(key) && jsonEquals(known.get(key), entry)) continue;
      const states = { given: known.get(key), current: entries.get(key) };
      const merged = mergeKeyedLists(entry, schema?.items, states);
      entries.set(key, applyMergePatch(states.current, merged));
    }
    return [...entries.values()];
  }
  if (!isJsonObject(patch)) return patch;
  return Object.fromEntries(
    Object.entries(patch).map(([name, value]) => [
      name,
      mergeKeyedLists(value, fieldOf(schema, name), {
        given: partOf(given, name),
        current: partOf(current, name),
      }),
    ]),
  );
}

/** Entries of a list by key: the first of those that have the same. */
function entriesOf(list: unknown, schema: Schema): Map<string, unknown> {
  const entries = new Map<string, unknown>();
  for (const [index, entry] of (Array.isArray(list) ? list : []).entries()) {
    const key = entryKey(entry, schema) ?? `${index}`;
    if (!entries.has(key)) entries.set(key, entry);
  }
  return entries;
}

/** Field of an object; undefined if a cache does not keep it. */
export function partOf(object: unknown, name: string): unknown {
  return isJsonObject(object)
    ? Object.getOwnPropertyDescriptor(object, name)?.value
    : undefined;
}
