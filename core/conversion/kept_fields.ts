/**
 * What a conversion between two versions loses, in a form that fits into an
 * annotation, and its return into the object on the way back.
 *
 * @module
 */
import { mutableCopy } from "../json/prune.ts";
import {
  isJsonObject,
  jsonEquals,
  type JsonObject,
  ownValue,
  setOwn,
} from "../patch/json_value.ts";
import type { OpenApiSchema } from "../patch/schema.ts";

/** Step of a path: a field, or an item of a list by the values of its keys. */
export type KeptStep = string | Readonly<Record<string, unknown>>;

/** A value that the other version cannot express. */
export interface KeptField {
  /** Path of the value, or of a list with changed items. */
  readonly path: readonly KeptStep[];
  /** The value; absent if none exists. */
  readonly is?: unknown;
  /** What converting back makes of it; absent if there is nothing. */
  readonly was?: unknown;
  /** Pairs of `is` and `was` of the items of a list. */
  readonly items?: readonly (readonly [is: unknown, was: unknown])[];
}

/**
 * Finds what a round trip has lost.
 *
 * @param is Value before the round trip.
 * @param was Value after it.
 * @param schema Schema of the value, for the keys of lists.
 */
export function lostFields(
  is: unknown,
  was: unknown,
  schema?: OpenApiSchema,
): readonly KeptField[] {
  const lost: KeptField[] = [];
  collect(is, was, { schema, path: [], lost });
  return lost;
}

interface Place {
  readonly schema: OpenApiSchema | undefined;
  /** Path of the value, which grows and shrinks on the way. */
  readonly path: KeptStep[];
  readonly lost: KeptField[];
}

function collect(is: unknown, was: unknown, place: Place): void {
  if (is === was) return;
  const { path, lost } = place;
  if (isJsonObject(is) && isJsonObject(was)) {
    for (const name of Object.keys(is)) collectField(name, is, was, place);
    for (const name of Object.keys(was)) {
      if (!Object.hasOwn(is, name)) collectField(name, is, was, place);
    }
    return;
  }
  if (Array.isArray(is) && Array.isArray(was)) {
    if (jsonEquals(is, was)) return;
    const items = keyedItems(is, was, place) ?? changedItems(is, was, path);
    if (items !== undefined) {
      lost.push(...items);
      return;
    }
  }
  lost.push({
    path: [...path],
    ...is !== undefined && { is },
    ...was !== undefined && { was },
  });
}

function collectField(
  name: string,
  is: JsonObject,
  was: JsonObject,
  { schema, path, lost }: Place,
): void {
  const [one, other] = [ownValue(is, name), ownValue(was, name)];
  if (one === other) return;
  const { properties = {}, additionalProperties: values } = schema ?? {};
  const others = isJsonObject(values) ? values : undefined;
  const field = Object.hasOwn(properties, name) ? properties[name] : others;
  path.push(name);
  collect(one, other, { schema: field, path, lost });
  path.pop();
}

/** Fields of the items of a list with keys; undefined if they do not suffice. */
function keyedItems(
  is: readonly unknown[],
  was: readonly unknown[],
  { schema, path }: Place,
): readonly KeptField[] | undefined {
  const keys = schema?.["x-kubernetes-list-map-keys"];
  if (schema?.["x-kubernetes-list-type"] !== "map" || !keys) return undefined;
  const selectors = new Map<string, KeptStep>();
  for (const item of [...is, ...was]) {
    if (!isJsonObject(item)) return undefined;
    const selector = Object.fromEntries(keys.map((key) => [key, item[key]]));
    selectors.set(JSON.stringify(selector), selector);
  }
  const lost: KeptField[] = [];
  for (const selector of selectors.values()) {
    const find = (list: readonly unknown[]) => list[indexOf(list, selector)];
    const below = { schema: schema.items, path: [selector], lost };
    collect(find(is), find(was), below);
  }
  return jsonEquals(withKept(was, lost), is)
    ? lost.map((field) => ({ ...field, path: [...path, ...field.path] }))
    : undefined;
}

/** Changed items of a list; undefined if the lists have different lengths. */
function changedItems(
  is: readonly unknown[],
  was: readonly unknown[],
  path: Place["path"],
): readonly KeptField[] | undefined {
  if (is.length !== was.length) return undefined;
  const pairs = is.map((item, at) => [item, was[at]] as const);
  const items = pairs.filter(([one, other]) => !jsonEquals(one, other));
  return jsonEquals(restoredItems(was, items), is)
    ? [{ path: [...path], items }]
    : undefined;
}

/**
 * Returns a value with the fields that an earlier conversion has lost. A field
 * that somebody has changed since keeps its new value.
 */
export function withKept(
  value: unknown,
  fields: readonly KeptField[],
): unknown {
  const whole = [mutableCopy(value)];
  for (const field of fields) restore(whole, field);
  return whole[0];
}

function restore(whole: unknown[], field: KeptField): void {
  let holder: unknown = whole;
  let step: KeptStep | 0 = 0;
  for (const next of field.path) {
    holder = at(holder, step);
    step = next;
  }
  const now = at(holder, step);
  if (field.items !== undefined) restoreItems(now, field.items);
  else if (jsonEquals(now, field.was)) put(holder, step, field.is);
}

function restoreItems(
  list: unknown,
  items: NonNullable<KeptField["items"]>,
): void {
  if (!Array.isArray(list)) return;
  for (const [index, item] of restoredItems(list, items).entries()) {
    if (item !== list[index]) list[index] = mutableCopy(item);
  }
}

/** List with the kept items in the place of what converting back makes of them. */
function restoredItems(
  list: readonly unknown[],
  items: NonNullable<KeptField["items"]>,
): readonly unknown[] {
  const left = [...items];
  return list.map((item) => {
    const found = left.findIndex(([, was]) => jsonEquals(was, item));
    return found === -1 ? item : left.splice(found, 1)[0]?.[0];
  });
}

function at(holder: unknown, step: KeptStep | 0): unknown {
  if (Array.isArray(holder)) {
    return holder[step === 0 ? 0 : indexOf(holder, step)];
  }
  return isJsonObject(holder) && typeof step === "string"
    ? ownValue(holder, step)
    : undefined;
}

function put(holder: unknown, step: KeptStep | 0, value: unknown): void {
  const copy = mutableCopy(value);
  if (Array.isArray(holder)) {
    const index = step === 0 ? 0 : indexOf(holder, step);
    if (copy === undefined) holder.splice(index, 1);
    else if (index === -1) holder.push(copy);
    else holder[index] = copy;
  } else if (isJsonObject(holder) && typeof step === "string") {
    if (copy === undefined) delete holder[step];
    else setOwn(holder, step, copy);
  }
}

/** Index of the item with the keys of a step; −1 if none exists. */
function indexOf(list: readonly unknown[], step: KeptStep): number {
  return list.findIndex((item) =>
    isJsonObject(item) && isJsonObject(step) &&
    Object.entries(step).every(([key, value]) => jsonEquals(item[key], value))
  );
}
