import type { OpenApiSchema } from "../../../core/patch/schema.ts";
import { celName } from "./cel_names.ts";
import { celEqual, isList } from "./equality.ts";

type List = Iterable<unknown>;

/** The fields that tell the items of a keyed list apart, as rules name them. */
const KEYS: WeakMap<ReadonlySet<unknown>, readonly string[]> = new WeakMap();

/**
 * The value of a list in rules. Where its items are a set, or told apart by
 * keys, it is a `Set`: the library compares that in any order.
 */
export function listValue(
  items: readonly unknown[],
  schema: OpenApiSchema,
): List {
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
 * The sum of two values, if that is a union: the left one is a set. Of two
 * items with the same keys the right one stays, at the place of the left one.
 */
export function unionOf(a: unknown, b: unknown): List | undefined {
  if (!(a instanceof Set) || !isList(b)) return undefined;
  const keys = KEYS.get(a);
  if (keys !== undefined) return keyedUnion(a, b, keys);
  const sum = new Set<unknown>(a);
  for (const item of b) {
    const known = sum.has(item) ||
      (typeof item === "object" && [...sum].some((one) => celEqual(one, item)));
    if (!known) sum.add(item);
  }
  return sum;
}

function keyedUnion(a: List, b: List, keys: readonly string[]): List {
  const sum = new Map<string, unknown>();
  for (const item of [...a, ...b]) sum.set(keyText(item, keys), item);
  return keyed(sum.values(), keys);
}

function keyed(items: List, keys: readonly string[]): List {
  const list = new Set(items);
  KEYS.set(list, keys);
  return list;
}

function keyText(item: unknown, keys: readonly string[]): string {
  const fields = item as Readonly<Record<string, unknown>>;
  return JSON.stringify(
    keys.map((key) => [typeof fields[key], String(fields[key])]),
  );
}
