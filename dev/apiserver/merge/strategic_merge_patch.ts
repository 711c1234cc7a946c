import {
  isJsonObject,
  jsonEquals,
  type JsonObject,
} from "@coracle/operator/internal";
import { goText, goTypeName } from "../validation/go_value.ts";
import type { Schema } from "./schema.ts";
import {
  badRequest,
  serverError,
  type StatusError,
  unprocessable,
} from "../status.ts";

const DIRECTIVE = "$patch";
const RETAIN_KEYS = "$retainKeys";
const DELETE_FROM_LIST = "$deleteFromPrimitiveList";
const SET_ELEMENT_ORDER = "$setElementOrder";

/**
 * Applies a strategic merge patch: a merge patch in which lists are merged by
 * key or value where the schema declares it, with the directives `$patch`,
 * `$retainKeys`, `$deleteFromPrimitiveList` and `$setElementOrder`. Neither
 * argument is modified.
 *
 * @param schema The schema of the document.
 * @throws {StatusError} If the patch is malformed or does not fit the
 * document.
 */
export function applyStrategicMergePatch(
  schema: Schema,
  document: unknown,
  patch: unknown,
): JsonObject {
  if (!isJsonObject(patch)) {
    throw badRequest("strategic merge patch format is not supported");
  }
  return mergeFields(schema, isJsonObject(document) ? document : {}, patch);
}

function mergeFields(
  schema: Schema | undefined,
  original: JsonObject,
  patch: JsonObject,
): JsonObject {
  if (Object.hasOwn(patch, DIRECTIVE)) {
    const { [DIRECTIVE]: directive, ...rest } = patch;
    if (directive === "replace") return rest;
    if (directive === "delete") return {};
    throw unknownDirective(directive, patch);
  }
  const result = new Map(Object.entries(retainKeys(original, patch)));
  const ordered = new Set<string>();
  for (const [key, order] of Object.entries(patch)) {
    if (!key.startsWith(SET_ELEMENT_ORDER)) continue;
    const name = fieldOfDirective(key, SET_ELEMENT_ORDER);
    const list = orderedList(schema?.field(name), {
      original: result.get(name),
      patch: Object.hasOwn(patch, name) ? patch[name] : undefined,
      order,
    });
    if (list === undefined) continue;
    result.set(name, list);
    ordered.add(name);
  }
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith(DELETE_FROM_LIST)) {
      const name = fieldOfDirective(key, DELETE_FROM_LIST);
      const list = result.get(name);
      if (value === null) result.delete(name);
      else if (Array.isArray(list) && Array.isArray(value)) {
        result.set(name, list.filter((item) => !value.includes(item)));
      }
      continue;
    }
    if (
      key === RETAIN_KEYS || key.startsWith(SET_ELEMENT_ORDER) ||
      ordered.has(key)
    ) continue;
    const merged = value === null
      ? undefined
      : mergeValue(schema?.field(key), result.get(key), value);
    if (merged === undefined) result.delete(key);
    else result.set(key, merged);
  }
  return Object.fromEntries(result);
}

/** Merges the value of a field; `undefined` removes the field. */
function mergeValue(
  schema: Schema | undefined,
  original: unknown,
  value: unknown,
): unknown {
  if (isJsonObject(original) && isJsonObject(value)) {
    if (schema?.patchStrategies.includes("replace")) return value;
    return mergeFields(schema, original, value);
  }
  if (Array.isArray(original) && Array.isArray(value)) {
    return mergeList(schema, original, value);
  }
  return newValue(value, true);
}

/**
 * Copies a patch value without counterpart, without directives and optionally
 * without nulls; `undefined` if the value is a directive itself.
 */
function newValue(value: unknown, dropNulls: boolean): unknown {
  if (Array.isArray(value)) {
    return value.map((item) => newValue(item, dropNulls))
      .filter((item) => item !== undefined);
  }
  if (!isJsonObject(value)) return value;
  if (Object.hasOwn(value, DIRECTIVE)) return undefined;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, field]) => !(dropNulls && field === null))
      .map(([name, field]) => [name, newValue(field, dropNulls)] as const)
      .filter(([, field]) => field !== undefined),
  );
}

/** Removes the fields that `$retainKeys` does not list. */
function retainKeys(original: JsonObject, patch: JsonObject): JsonObject {
  if (!Object.hasOwn(patch, RETAIN_KEYS)) return original;
  const names = patch[RETAIN_KEYS];
  const fits = Array.isArray(names) &&
    Object.entries(patch).every(([key, value]) =>
      key === RETAIN_KEYS || value === null || names.includes(key) ||
      key.startsWith(DELETE_FROM_LIST) || key.startsWith(SET_ELEMENT_ORDER)
    );
  if (!fits) {
    throw badRequest("invalid patch format of retainKeys");
  }
  return Object.fromEntries(
    Object.entries(original).filter(([name]) => names.includes(name)),
  );
}

function fieldOfDirective(key: string, directive: string): string {
  const slash = key.indexOf("/");
  if (slash >= 0 && key.slice(0, slash) === directive) {
    return key.slice(slash + 1);
  }
  const what = directive === DELETE_FROM_LIST
    ? "primitive list"
    : "setElementOrder list";
  throw badRequest(`invalid patch format of ${what}`);
}

function unknownDirective(
  directive: unknown,
  patch: JsonObject,
): StatusError {
  return serverError(
    `unknown patch type: ${goText(directive)} in map: ${goText(patch)}`,
  );
}

/** Key field of list items; `undefined` compares items by value. */
type MergeKey = string | undefined;

function keyOf(item: unknown, mergeKey: MergeKey): unknown {
  if (mergeKey === undefined) return item;
  if (!isJsonObject(item)) {
    throw serverError(
      `expected a map[string]interface {}, but received a ${goTypeName(item)}`,
    );
  }
  if (!Object.hasOwn(item, mergeKey)) {
    throw serverError(
      `map: ${goText(item)} does not contain declared merge key: ${mergeKey}`,
    );
  }
  return item[mergeKey];
}

function mergeList(
  schema: Schema | undefined,
  original: readonly unknown[],
  patch: readonly unknown[],
): unknown[] {
  if (!schema?.patchStrategies.includes("merge")) return [...patch];
  if (original.length + patch.length === 0) return [];
  checkItemTypes(original, patch);
  if (!isJsonObject(original[0] ?? patch[0])) {
    const merged = [...new Set([...original, ...patch])];
    return inOrder(merged, {
      order: patch,
      before: original,
      mergeKey: undefined,
    });
  }
  const mergeKey = schema.patchMergeKey;
  if (mergeKey === undefined) {
    throw serverError(
      "cannot merge lists without merge key for struct",
    );
  }
  const directed = applyListDirectives(original, patch, mergeKey);
  const merged = mergeKeyedItems(schema.items, directed, mergeKey);
  return inOrder(merged, {
    order: directed.patch,
    before: directed.original,
    mergeKey,
  });
}

function checkItemTypes(...lists: (readonly unknown[])[]): void {
  const types = new Set(lists.flat().map(goTypeName));
  if (types.has("[]interface {}")) {
    throw unprocessable();
  }
  if (types.size > 1) {
    throw serverError(
      `list element types are not identical: ${goText(lists)}`,
    );
  }
}

interface ListMerge {
  readonly original: readonly unknown[];
  readonly patch: readonly unknown[];
}

/** Executes and removes the items with `$patch`. */
function applyListDirectives(
  original: readonly unknown[],
  patch: readonly unknown[],
  mergeKey: string,
): ListMerge {
  let left = original;
  let replace = false;
  const plain: unknown[] = [];
  for (const item of patch) {
    if (!isJsonObject(item) || !Object.hasOwn(item, DIRECTIVE)) {
      plain.push(item);
    } else if (item[DIRECTIVE] === "delete") {
      const key = keyOf(item, mergeKey);
      left = left.filter((other) =>
        !(isJsonObject(other) && other[mergeKey] === key)
      );
    } else if (item[DIRECTIVE] === "replace") replace = true;
    else if (item[DIRECTIVE] === "merge") {
      throw serverError(
        "merging lists cannot yet be specified in the patch",
      );
    } else throw unknownDirective(item[DIRECTIVE], item);
  }
  return replace
    ? { original: plain, patch: [] }
    : { original: left, patch: plain };
}

function mergeKeyedItems(
  schema: Schema | undefined,
  { original, patch }: ListMerge,
  mergeKey: string,
): unknown[] {
  const merged = [...original];
  for (const item of patch) {
    const key = keyOf(item, mergeKey);
    const index = merged.findIndex((other) =>
      isJsonObject(other) && other[mergeKey] === key
    );
    const found = merged[index];
    if (isJsonObject(found) && isJsonObject(item)) {
      merged[index] = mergeFields(schema, found, item);
    } else merged.push(item);
  }
  return merged;
}

/**
 * Sorts a merged list: items of the patch in the order of the patch; other items
 * in their original order, each before the first item of the patch that it
 * preceded.
 */
function inOrder(
  merged: readonly unknown[],
  { order, before, mergeKey }: {
    readonly order: readonly unknown[];
    readonly before: readonly unknown[];
    readonly mergeKey: MergeKey;
  },
): unknown[] {
  const ordered = order.map((item) => keyOf(item, mergeKey));
  const former = before.map((item) => keyOf(item, mergeKey));
  const named: unknown[] = [];
  const others: unknown[] = [];
  for (const item of merged) {
    (ordered.includes(keyOf(item, mergeKey)) ? named : others).push(item);
  }
  const rank = (keys: readonly unknown[]) => (a: unknown, b: unknown) =>
    keys.indexOf(keyOf(a, mergeKey)) - keys.indexOf(keyOf(b, mergeKey));
  named.sort(rank(ordered));
  others.sort(rank(former));
  const result: unknown[] = [];
  for (const item of named) {
    const position = former.indexOf(keyOf(item, mergeKey));
    while (others.length > 0) {
      const other = former.indexOf(keyOf(others[0], mergeKey));
      if (other < 0 || other >= position) break;
      result.push(others.shift());
    }
    result.push(item);
  }
  return [...result, ...others];
}

/** Merges a list with `$setElementOrder`; `undefined` if there is no list. */
function orderedList(
  schema: Schema | undefined,
  lists: {
    readonly original: unknown;
    readonly patch: unknown;
    readonly order: unknown;
  },
): unknown[] | undefined {
  const { original, patch } = lists;
  const order = listOrNone(lists.order) ?? [];
  const before = listOrNone(original);
  const wanted = listOrNone(patch);
  const mergeKey = schema?.patchMergeKey;
  checkOrder(wanted ?? [], order, mergeKey);
  if (before === undefined && wanted === undefined) return undefined;
  const merged = wanted === undefined
    ? before ?? []
    : before === undefined
    ? newValue(wanted, false) as unknown[]
    : mergeList(schema, before, wanted);
  if ((before?.length ?? 0) + (wanted?.length ?? 0) === 0) {
    throw serverError("no elements in any of the given slices");
  }
  return inOrder(merged, { order, before: before ?? [], mergeKey });
}

function listOrNone(value: unknown): readonly unknown[] | undefined {
  if (value === undefined || Array.isArray(value)) return value;
  throw serverError(
    `expected a []interface {}, but received a ${goTypeName(value)}`,
  );
}

/** Checks that the items of a patch have the order of `$setElementOrder`. */
function checkOrder(
  patch: readonly unknown[],
  order: readonly unknown[],
  mergeKey: MergeKey,
): void {
  if (patch.length === 0 || order.length === 0) return;
  const items = patch.filter((item) =>
    !(isJsonObject(item) && Object.hasOwn(item, DIRECTIVE))
  );
  let next = 0;
  for (const item of order) {
    if (next === items.length) break;
    const wanted = keyOf(items[next], mergeKey);
    if (jsonEquals(keyOf(item, mergeKey), wanted)) next++;
  }
  if (next === items.length) return;
  const [given, asked] = [goText(patch), goText(order)];
  throw serverError(
    `The order in patch list:\n${given}\n doesn't match ${SET_ELEMENT_ORDER} list:\n${asked}\n`,
  );
}
