import {
  fieldElement,
  fieldNameOf,
  type FieldPath,
  type PathElement,
} from "./path_element.ts";
import { FieldSet, FieldSetBuilder } from "./field_set.ts";
import { isJsonObject, type JsonObject } from "@coracle/operator/internal";
import type { Schema } from "./schema.ts";
import { fieldSchema, formOf, itemElement, itemSchema } from "./typed_value.ts";

/**
 * Lists the fields of an apply configuration: every leaf, every item of a keyed
 * list or set, and every entry of a map; an atomic value is one field.
 */
export function fieldsOf(schema: Schema, value: unknown): FieldSet {
  const builder = new FieldSetBuilder();
  collect(schema, value, builder, () => {});
  return builder.build();
}

/** Collects the fields at and below a position, and the position itself if `self` is set. */
function collect(
  schema: Schema,
  value: unknown,
  children: FieldSetBuilder,
  self: () => void,
): void {
  switch (formOf(schema, value)) {
    case "map":
      if (schema.mapType === "atomic") self();
      else if (isJsonObject(value)) collectFields(schema, value, children);
      break;
    case "list":
      if (schema.listType === "atomic") self();
      else if (Array.isArray(value)) collectItems(schema, value, children);
      break;
    case "scalar":
      self();
  }
}

function collectFields(
  schema: Schema,
  value: JsonObject,
  children: FieldSetBuilder,
): void {
  for (const [name, field] of Object.entries(value)) {
    const element = fieldElement(name);
    const self = () => children.addElement(element);
    collect(fieldSchema(schema, name), field, children.at(element), self);
    const empty = field === null ||
      isJsonObject(field) && Object.keys(field).length === 0;
    // Entries of a map are fields themselves; fields of a struct are not.
    if (empty || !schema.properties.has(name)) self();
  }
}

function collectItems(
  schema: Schema,
  value: readonly unknown[],
  children: FieldSetBuilder,
): void {
  const items = new Map<PathElement, unknown[]>();
  for (const item of value) {
    const found = itemElement(schema, item);
    if (!("element" in found)) continue;
    items.set(found.element, [...items.get(found.element) ?? [], item]);
  }
  for (const [element, [item, ...duplicates]] of items) {
    const self = () => children.addElement(element);
    if (duplicates.length === 0) {
      collect(itemSchema(schema), item, children.at(element), self);
    }
    self();
  }
}

/**
 * Removes the fields of a set from a value, with everything below them. A value
 * that becomes empty is replaced by null, as in kube-apiserver; atomic values
 * are only removed as a whole.
 */
export function withoutFields(
  schema: Schema,
  value: unknown,
  fields: FieldSet,
): unknown {
  switch (formOf(schema, value)) {
    case "map":
      return isJsonObject(value) && schema.mapType !== "atomic" &&
          Object.keys(value).length > 0
        ? withoutMembers(schema, value, fields)
        : null;
    case "list":
      return Array.isArray(value) && schema.listType !== "atomic" &&
          value.length > 0
        ? withoutItems(schema, value, fields)
        : null;
    case "scalar":
      return value;
  }
}

function withoutMembers(
  schema: Schema,
  value: JsonObject,
  fields: FieldSet,
): JsonObject | null {
  const kept: [string, unknown][] = [];
  for (const [name, field] of Object.entries(value)) {
    const node = fields.nodes.get(fieldElement(name));
    if (node?.member) continue;
    kept.push([
      name,
      node
        ? withoutFields(fieldSchema(schema, name), field, node.children)
        : field,
    ]);
  }
  return kept.length > 0 ? Object.fromEntries(kept) : null;
}

function withoutItems(
  schema: Schema,
  value: readonly unknown[],
  fields: FieldSet,
): unknown[] | null {
  const kept: unknown[] = [];
  for (const item of value) {
    const found = itemElement(schema, item);
    const node = "element" in found
      ? fields.nodes.get(found.element)
      : undefined;
    if (node?.member) continue;
    kept.push(
      node ? withoutFields(itemSchema(schema), item, node.children) : item,
    );
  }
  return kept.length > 0 ? kept : null;
}

/**
 * Adapts a field set from an older schema: where a value has become atomic,
 * ownership of a part becomes ownership of the whole.
 */
export function fieldsUnderSchema(schema: Schema, fields: FieldSet): FieldSet {
  const whole: FieldPath[] = [];
  findWhole(schema, fields, [], { whole, leaf: false });
  if (whole.length === 0) return fields;
  const parts = FieldSet.of(whole);
  return fields.minusWhole(parts).union(parts);
}

function findWhole(
  schema: Schema,
  fields: FieldSet,
  path: FieldPath,
  state: { readonly whole: FieldPath[]; readonly leaf: boolean },
): void {
  const atomic = schema.type === "array"
    ? schema.listType === "atomic"
    : schema.mapType === "atomic";
  if (schema.type !== "array" && schema.type !== "object") return;
  if (atomic) {
    if (!state.leaf && !fields.isEmpty) state.whole.push(path);
    return;
  }
  for (const [element, { member, children }] of fields.nodes) {
    const child = childSchema(schema, element);
    if (child === undefined) continue;
    findWhole(child, children, [...path, element], {
      whole: state.whole,
      leaf: member && children.isEmpty,
    });
  }
}

function childSchema(schema: Schema, element: PathElement): Schema | undefined {
  if (schema.type === "array") return schema.items;
  const name = fieldNameOf(element);
  return name === undefined
    ? undefined
    : schema.properties.get(name) ?? schema.additionalProperties;
}
