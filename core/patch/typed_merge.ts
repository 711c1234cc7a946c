import type { FieldElement } from "./field_element.ts";
import { isJsonObject, type JsonObject } from "./json_value.ts";
import type { Schema } from "./schema.ts";
import { fieldSchema, formOf, itemElement, itemSchema } from "./typed_value.ts";

/**
 * Lays an apply configuration over a live object: fields of the configuration
 * win, fields that only the live object has stay, items of keyed lists and sets
 * are merged one by one, atomic parts are replaced whole. Both must fit the
 * schema. Nothing is removed and neither operand is changed; the outcome may
 * share parts with them.
 *
 * The items of a merged list come in the order of the configuration, each live
 * item that it does not name keeping its place among its neighbours.
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
  // Both empty: what the configuration says, be it null or {}, is the value.
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
  readonly element: FieldElement;
  readonly value: unknown;
}

/** An item without an element fits no schema, so it cannot be among them. */
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
  // A live item that is there twice is not merged with: null stands for it.
  const liveValues = new Map<FieldElement, unknown>();
  for (const { element, value } of live) {
    liveValues.set(element, liveValues.has(element) ? null : value);
  }
  const names = new Set(applied.map(({ element }) => element));
  const shared = applied.map(({ element }) => element)
    .filter((element) => liveValues.has(element));
  const merged = new Set<FieldElement>();
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
      // In both lists, but another shared item comes first: passed over here,
      // it is taken where the configuration has it.
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
