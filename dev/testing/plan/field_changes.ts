/**
 * Fields that differ between two states of an object, and whose they are.
 *
 * @module
 */
import type { UntypedObject } from "@coracle/operator/client";
import { isJsonObject, jsonEquals } from "@coracle/operator/internal";

/** Step of a path: a field, a position in a list, or the item with a key. */
export type FieldStep = string | number | {
  /** Field that tells the items apart, such as `name`. */
  readonly field: string;
  readonly value: string;
};

/** Field that differs. */
export interface FieldDifference {
  readonly path: readonly FieldStep[];
  /** Value before; undefined if there was none. */
  readonly before?: unknown;
  /** Value after; undefined if none exists. */
  readonly after?: unknown;
}

/** Metadata that every write changes, or no writer chooses. */
const BOOKKEEPING: ReadonlySet<string> = new Set([
  "creationTimestamp",
  "generation",
  "managedFields",
  "resourceVersion",
  "selfLink",
  "uid",
]);

/** Fields that tell the items of lists apart, in the API of Kubernetes. */
const ITEM_KEYS = ["name", "type", "containerPort", "port", "ip", "uid"];

/**
 * Finds the deepest fields that differ between two states of an object, without
 * the metadata that every write changes. Items of a list are compared by their
 * names, where all have one.
 */
export function fieldDifferences(
  before: UntypedObject,
  after: UntypedObject,
): readonly FieldDifference[] {
  const found: FieldDifference[] = [];
  compare(withoutBookkeeping(before), withoutBookkeeping(after), [], found);
  return found;
}

function withoutBookkeeping({ metadata, ...rest }: UntypedObject): object {
  const kept = Object.entries(metadata).filter(([name]) =>
    !BOOKKEEPING.has(name)
  );
  return { metadata: Object.fromEntries(kept), ...rest };
}

function compare(
  before: unknown,
  after: unknown,
  path: readonly FieldStep[],
  found: FieldDifference[],
): void {
  if (jsonEquals(before, after)) return;
  if (isJsonObject(before) && isJsonObject(after)) {
    for (const name of Object.keys({ ...before, ...after })) {
      compare(before[name], after[name], [...path, name], found);
    }
    return;
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const field = ITEM_KEYS.find((name) =>
      hasKeys(before, name) && hasKeys(after, name)
    );
    if (field !== undefined) {
      const [old, now] = [before, after].map((list) =>
        new Map(list.map((item) => [String(item[field]), item]))
      );
      for (const value of new Set([...old!.keys(), ...now!.keys()])) {
        const step = { field, value };
        compare(old!.get(value), now!.get(value), [...path, step], found);
      }
      return;
    }
    if (before.length === after.length) {
      for (const [index, item] of before.entries()) {
        compare(item, after[index], [...path, index], found);
      }
      return;
    }
  }
  found.push({
    path,
    ...before !== undefined && { before },
    ...after !== undefined && { after },
  });
}

/** Whether all items of a list have a field, each with another value. */
function hasKeys(list: readonly unknown[], field: string): boolean {
  const values = list.map((item) =>
    isJsonObject(item) ? item[field] : undefined
  );
  return new Set(values).size === list.length &&
    values.every((value) =>
      typeof value === "string" || typeof value === "number"
    );
}

/** Path as text, such as `.spec.containers[web].image`. */
export function pathText(path: readonly FieldStep[]): string {
  return path.map((step) =>
    typeof step === "number"
      ? `[${step}]`
      : typeof step === "object"
      ? `[${step.value}]`
      : /^[\w-]+$/.test(step)
      ? `.${step}`
      : `["${step}"]`
  ).join("");
}

/** Value of a field of an object; undefined if none exists. */
export function fieldAt(object: unknown, path: readonly FieldStep[]): unknown {
  return path.reduce(valueAt, object);
}

/** Sets or removes a field of an object, if what it is in is there. */
export function setField(
  object: UntypedObject,
  path: readonly FieldStep[],
  value: unknown,
): void {
  const last = path.at(-1);
  const parent = fieldAt(object, path.slice(0, -1));
  if (Array.isArray(parent) && last !== undefined) {
    const index = typeof last === "number"
      ? last
      : parent.indexOf(valueAt(parent, last));
    if (index < 0) parent.push(value);
    else parent.splice(index, 1, ...value === undefined ? [] : [value]);
  } else if (isJsonObject(parent) && typeof last === "string") {
    if (value === undefined) delete parent[last];
    else parent[last] = value;
  }
}

/**
 * Managers that own a field which differs, and lose it: what the operator gives up
 * itself is taken from nobody.
 */
export function losersOf(
  { path, before }: FieldDifference,
  { old, now, managers }: {
    readonly old: UntypedObject;
    readonly now: UntypedObject;
    /** Field managers of the operator. */
    readonly managers: ReadonlySet<string>;
  },
): readonly string[] {
  if (before === undefined) return [];
  const left = new Set([...managers, ...managersOf(now, path)]);
  return managersOf(old, path).filter((name) => !left.has(name));
}

/** Managers, by their names, that own a field of an object or fields below it. */
export function managersOf(
  object: UntypedObject,
  path: readonly FieldStep[],
): readonly string[] {
  const names = (object.metadata.managedFields ?? []).filter(({ fieldsV1 }) =>
    isJsonObject(fieldsV1) && owns(fieldsV1, object, path)
  ).map(({ manager }) => manager ?? "unknown");
  return [...new Set(names)];
}

function owns(
  fields: Readonly<Record<string, unknown>>,
  object: unknown,
  path: readonly FieldStep[],
): boolean {
  let node: unknown = fields;
  let value: unknown = object;
  for (const step of path) {
    if (!isJsonObject(node)) return false;
    // A leaf owns the whole value.
    if (Object.keys(node).length === 0) return true;
    value = valueAt(value, step);
    node = typeof step === "string"
      ? node[`f:${step}`]
      : itemOf(node, value, step);
    if (node === undefined) return false;
  }
  return true;
}

function valueAt(value: unknown, step: FieldStep): unknown {
  if (typeof step === "string") {
    return isJsonObject(value) ? value[step] : undefined;
  }
  if (!Array.isArray(value)) return undefined;
  if (typeof step === "number") return value[step];
  return value.find((item) =>
    isJsonObject(item) && String(item[step.field]) === step.value
  );
}

/** Fields of an item of a list: by its keys, its value or its position. */
function itemOf(
  node: Readonly<Record<string, unknown>>,
  item: unknown,
  step: FieldStep,
): unknown {
  for (const [element, below] of Object.entries(node)) {
    const prefix = element.slice(0, 2);
    if (prefix === "i:" && element === `i:${step}`) return below;
    if (prefix === "v:" && jsonEquals(JSON.parse(element.slice(2)), item)) {
      return below;
    }
    if (prefix !== "k:" || !isJsonObject(item)) continue;
    const keys: object = JSON.parse(element.slice(2));
    const isOf = Object.entries(keys).every(([name, value]) =>
      jsonEquals(item[name], value)
    );
    if (isOf) return below;
  }
  return undefined;
}
