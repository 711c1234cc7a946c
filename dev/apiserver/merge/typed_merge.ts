import type { PathElement } from "./path_element.ts";
import { isJsonObject, type JsonObject } from "@coracle/operator/internal";
import type { Schema } from "./schema.ts";
import { fieldSchema, formOf, itemElement, itemSchema } from "./typed_value.ts";

/**
 * Merges an apply configuration into a live object: fields of the configuration
 * take precedence, other live fields remain, keyed lists and sets are merged by
 * item, atomic values are replaced. Both must match the schema. Nothing is removed
 * and neither argument is modified; the result may share parts with them.
 *
 * A merged list has the order of the configuration; other live items keep their
 * position relative to their neighbors.
 */
export function mergeTyped(
  schema: Schema,
  live: unknown,
  applied: unknown,
): unknown {
  if (applied === undefined) return live;
  switch (formOf(schema, applied)) {
    case "map":
      return mergeFields(schema, live, applied);
    case "list":
      return mergeItems(schema, live, applied);
    case "scalar":
      return applied;
  }
}

function mergeFields(schema: Schema, live: unknown, applied: unknown): unknown {
  const left: JsonObject = isJsonObject(live) ? live : {};
  const right: JsonObject = isJsonObject(applied) ? applied : {};
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  // Both empty: the configuration decides between null and {}.
  if (schema.mapType === "atomic" || names.size === 0) return applied;
  const fields: [string, unknown][] = [];
  for (const name of names) {
    const merged = mergeTyped(
      fieldSchema(schema, name),
      Object.hasOwn(left, name) ? left[name] : undefined,
      Object.hasOwn(right, name) ? right[name] : undefined,
    );
    if (merged !== undefined) fields.push([name, merged]);
  }
  return Object.fromEntries(fields);
}

interface Item {
  readonly element: PathElement;
  readonly value: unknown;
}

/**
 * Items of a list with the path elements that identify them; items without one
 * are omitted, because they do not match the schema.
 */
function itemsOf(schema: Schema, list: readonly unknown[]): Item[] {
  const items: Item[] = [];
  for (const value of list) {
    const found = itemElement(schema, value);
    if ("element" in found) items.push({ element: found.element, value });
  }
  return items;
}

function mergeItems(schema: Schema, live: unknown, applied: unknown): unknown {
  const left: readonly unknown[] = Array.isArray(live) ? live : [];
  const right: readonly unknown[] = Array.isArray(applied) ? applied : [];
  if (schema.listType === "atomic" || left.length + right.length === 0) {
    return applied;
  }
  return mergeKeyedItems(
    itemSchema(schema),
    itemsOf(schema, left),
    itemsOf(schema, right),
  );
}

function mergeKeyedItems(
  schema: Schema,
  live: readonly Item[],
  applied: readonly Item[],
): unknown[] {
  // Duplicate live items are not merged with: null replaces them.
  const liveValues = new Map<PathElement, unknown>();
  for (const { element, value } of live) {
    liveValues.set(element, liveValues.has(element) ? null : value);
  }
  const names = new Set(applied.map(({ element }) => element));
  const shared = applied.map(({ element }) => element)
    .filter((element) => liveValues.has(element));
  const merged = new Set<PathElement>();
  const out: unknown[] = [];
  const take = ({ element, value }: Item): void => {
    merged.add(element);
    out.push(mergeTyped(schema, liveValues.get(element), value));
    if (shared[0] === element) shared.shift();
  };

  let l = 0;
  let r = 0;
  while (l < live.length || r < applied.length) {
    const left = live[l];
    const right = applied[r];
    if (left && right) {
      if (left.element === right.element) {
        take(right);
        l++;
        r++;
        continue;
      }
      // In both lists, but another shared item precedes it: skipped here, and
      // added at its position in the configuration.
      if (
        names.has(left.element) && shared.length > 0 &&
        shared[0] !== left.element
      ) {
        l++;
        continue;
      }
    }
    if (left) {
      if (!names.has(left.element)) {
        out.push(left.value);
        l++;
        continue;
      }
      if (merged.has(left.element)) l++;
    }
    if (right) {
      take(right);
      r++;
    }
  }
  return out;
}
