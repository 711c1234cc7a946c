import { fieldElement, type PathElement } from "./path_element.ts";
import { FieldSet, FieldSetBuilder } from "./field_set.ts";
import {
  isJsonObject,
  jsonEquals,
  type JsonObject,
} from "@coracle/operator/internal";
import type { Schema } from "./schema.ts";
import {
  fieldSchema,
  type Form,
  formOf,
  itemElement,
  itemSchema,
} from "./typed_value.ts";

const NOTHING: JsonObject = {};

/** Differences between two objects; the sets are disjoint. */
export interface Comparison {
  /** Fields that only the second object has. */
  readonly added: FieldSet;
  /** Fields with different values. */
  readonly modified: FieldSet;
  /** Fields that only the first object has. */
  readonly removed: FieldSet;
}

/** Position in the compared objects; records differences. */
class Position {
  readonly #parent: Position | undefined;
  readonly #element: PathElement;
  /** Builders of the differences below this position, created on first use. */
  readonly #below: { -readonly [kind in keyof Comparison]?: FieldSetBuilder } =
    {};

  constructor(parent?: Position, element: PathElement = fieldElement("")) {
    this.#parent = parent;
    this.#element = element;
  }

  /** Builder of one kind of difference below this position. */
  builder(kind: keyof Comparison): FieldSetBuilder {
    return this.#below[kind] ??=
      this.#parent?.builder(kind).at(this.#element) ?? new FieldSetBuilder();
  }

  /** Records a difference at this position; the root is not tracked. */
  mark(kind: keyof Comparison): void {
    this.#parent?.builder(kind).addElement(this.#element);
  }

  /** Differences of one kind below this position. */
  fields(kind: keyof Comparison): FieldSet {
    return this.#below[kind]?.build() ?? FieldSet.empty;
  }
}

/** Compares two objects of a kind by a schema. */
export function compareTyped(
  schema: Schema,
  before: unknown,
  after: unknown,
): Comparison {
  const root = new Position();
  compare(schema, before, after, root);
  return {
    added: root.fields("added"),
    modified: root.fields("modified"),
    removed: root.fields("removed"),
  };
}

function compare(
  schema: Schema,
  before: unknown,
  after: unknown,
  position: Position,
): void {
  // Most leaves of an update are unchanged.
  if (before === after && typeof before !== "object") return;
  const left = before === undefined ? undefined : formOf(schema, before);
  const right = after === undefined ? undefined : formOf(schema, after);
  let leaf = false;
  if (left !== undefined) {
    leaf = compareAs(left, schema, before, after, position);
  }
  if (right !== undefined && right !== left) {
    leaf = compareAs(right, schema, before, after, position);
  }
  if (leaf) return;
  if (before === undefined) position.mark("added");
  else if (after === undefined) position.mark("removed");
}

/** Compares two values in a given form; returns whether they were compared as a whole. */
function compareAs(
  form: Form,
  schema: Schema,
  before: unknown,
  after: unknown,
  position: Position,
): boolean {
  if (form === "map") {
    if (
      schema.mapType !== "atomic" &&
      compareFields(
        schema,
        isJsonObject(before) ? before : NOTHING,
        isJsonObject(after) ? after : NOTHING,
        position,
      )
    ) return false;
  } else if (form === "list") {
    const left: unknown[] = Array.isArray(before) ? before : [];
    const right: unknown[] = Array.isArray(after) ? after : [];
    if (schema.listType !== "atomic" && left.length + right.length > 0) {
      compareItems(schema, left, right, position);
      return false;
    }
  }
  if (before === undefined) position.mark("added");
  else if (after === undefined) position.mark("removed");
  else if (!jsonEquals(before, after)) position.mark("modified");
  return true;
}

/** Compares the fields of two objects; returns whether either has any. */
function compareFields(
  schema: Schema,
  before: JsonObject,
  after: JsonObject,
  position: Position,
): boolean {
  const compareField = (name: string, left: unknown, right: unknown) =>
    compare(
      fieldSchema(schema, name),
      left,
      right,
      new Position(position, fieldElement(name)),
    );
  const names = Object.keys(before);
  for (const name of names) {
    const right = Object.hasOwn(after, name) ? after[name] : undefined;
    compareField(name, before[name], right);
  }
  const others = Object.keys(after);
  for (const name of others) {
    if (Object.hasOwn(before, name)) continue;
    compareField(name, undefined, after[name]);
  }
  return names.length + others.length > 0;
}

function groupItems(
  schema: Schema,
  list: readonly unknown[],
): Map<PathElement, unknown[]> {
  const groups = new Map<PathElement, unknown[]>();
  for (const item of list) {
    const found = itemElement(schema, item);
    if (!("element" in found)) continue;
    const group = groups.get(found.element);
    if (group) group.push(item);
    else groups.set(found.element, [item]);
  }
  return groups;
}

/**
 * Compares the items of two lists. Duplicate items are owned as a whole,
 * without fields below: they change as a whole, and the transition between one
 * and several items is a removal and an addition.
 */
function compareItems(
  schema: Schema,
  before: readonly unknown[],
  after: readonly unknown[],
  position: Position,
): void {
  const lefts = groupItems(schema, before);
  const rights = groupItems(schema, after);
  for (const element of new Set([...lefts.keys(), ...rights.keys()])) {
    const left = lefts.get(element) ?? [];
    const right = rights.get(element) ?? [];
    const item = new Position(position, element);
    const items = itemSchema(schema);
    if (left.length <= 1 && right.length <= 1) {
      compare(items, left[0], right[0], item);
    } else if (left.length > 1 && right.length > 1) {
      if (!jsonEquals(left, right)) item.mark("modified");
    } else if (left.length > 1) {
      if (right.length > 0) compare(items, undefined, right[0], item);
      item.mark("removed");
    } else {
      if (left.length > 0) compare(items, left[0], undefined, item);
      item.mark("added");
    }
  }
}
