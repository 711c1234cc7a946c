import type { OpenApiSchema } from "@coracle/operator/internal";
import { celName } from "./cel_names.ts";
import { celEqual, type CelList, isList } from "./equality.ts";

/** Escaped names of the key fields of lists of type `map`. */
const LIST_MAP_KEYS: WeakMap<ReadonlySet<unknown>, readonly string[]> =
  new WeakMap();

/**
 * Value of a list in rules. Lists of type `set` and `map` become a JavaScript
 * `Set`, which the CEL library compares in any order.
 */
export function listValue(
  items: readonly unknown[],
  schema: OpenApiSchema,
): CelList {
  switch (schema["x-kubernetes-list-type"]) {
    case "set":
      return new Set(items);
    case "map": {
      const keys = schema["x-kubernetes-list-map-keys"] ?? [];
      return keyed(items, keys.map((key) => celName(key) ?? key));
    }
    default:
      return items;
  }
}

/**
 * Union of two lists if the left one has type `set` or `map`; undefined
 * otherwise. Of two items with the same keys, the right one replaces the left one
 * at its position.
 */
export function unionOf(a: unknown, b: unknown): CelList | undefined {
  if (!(a instanceof Set) || !isList(b)) return undefined;
  const keys = LIST_MAP_KEYS.get(a);
  if (keys !== undefined) return keyedUnion(a, b, keys);
  const sum = new Set<unknown>(a);
  for (const item of b) {
    const known = sum.has(item) ||
      (typeof item === "object" &&
        [...sum].some((other) => celEqual(other, item)));
    if (!known) sum.add(item);
  }
  return sum;
}

function keyedUnion(a: CelList, b: CelList, keys: readonly string[]): CelList {
  const sum = new Map<string, unknown>();
  for (const item of [...a, ...b]) sum.set(keyText(item, keys), item);
  return keyed(sum.values(), keys);
}

function keyed(items: CelList, keys: readonly string[]): CelList {
  const list = new Set(items);
  LIST_MAP_KEYS.set(list, keys);
  return list;
}

function keyText(item: unknown, keys: readonly string[]): string {
  const fields = item as Readonly<Record<string, unknown>>;
  return JSON.stringify(
    keys.map((key) => [typeof fields[key], String(fields[key])]),
  );
}
