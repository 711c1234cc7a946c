import { fieldElement, type PathElement } from "./path_element.ts";
import { type FieldSet, FieldSetBuilder } from "./field_set.ts";
import {
  isJsonObject,
  jsonEquals,
  type JsonObject,
} from "../../core/patch/json_value.ts";
import type { Schema } from "./schema.ts";
import {
  fieldSchema,
  type Form,
  formOf,
  itemElement,
  itemSchema,
} from "./typed_value.ts";

/** Differences between two objects; the sets are disjoint. */
export interface Comparison {
  /** Fields that only the second object has. */
  readonly added: FieldSet;
  /** Fields with different values. */
  readonly modified: FieldSet;
  /** Fields that only the first object has. */
  readonly removed: FieldSet;
}

/** Builders of the differences below one position. */
interface ComparisonBuilder {
  readonly added: FieldSetBuilder;
  readonly modified: FieldSetBuilder;
  readonly removed: FieldSetBuilder;
}

/** Function that records the difference of a field. */
type Mark = (kind: keyof ComparisonBuilder) => void;

/** Compares two objects of a kind by its schema. */
export function compareTyped(
  schema: Schema,
  before: unknown,
  after: unknown,
): Comparison {
  const builder: ComparisonBuilder = {
    added: new FieldSetBuilder(),
    modified: new FieldSetBuilder(),
    removed: new FieldSetBuilder(),
  };
  // The object as a whole is not tracked.
  compare(schema, before, after, { builders: () => builder, mark: () => {} });
  return {
    added: builder.added.build(),
    modified: builder.modified.build(),
    removed: builder.removed.build(),
  };
}

interface Position {
  /** Returns the builders for differences below; created lazily. */
  builders(): ComparisonBuilder;
  /** Records a difference of the position itself. */
  readonly mark: Mark;
}

function positionAt(position: Position, element: PathElement): Position {
  let builder: ComparisonBuilder | undefined;
  return {
    builders: () => {
      if (builder === undefined) {
        const { added, modified, removed } = position.builders();
        builder = {
          added: added.at(element),
          modified: modified.at(element),
          removed: removed.at(element),
        };
      }
      return builder;
    },
    mark: (kind) => position.builders()[kind].addElement(element),
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
  const forms = new Set<Form>();
  if (before !== undefined) forms.add(formOf(schema, before));
  if (after !== undefined) forms.add(formOf(schema, after));
  let leaf = false;
  for (const form of forms) {
    leaf = compareAs(form, schema, before, after, position);
  }
  if (leaf) return;
  if (before === undefined) position.mark("added");
  else if (after === undefined) position.mark("removed");
}

/** Compares values in one form; returns whether they were compared as a whole. */
function compareAs(
  form: Form,
  schema: Schema,
  before: unknown,
  after: unknown,
  position: Position,
): boolean {
  if (form === "map") {
    const left = isJsonObject(before) ? before : {};
    const right = isJsonObject(after) ? after : {};
    const names = new Set([...Object.keys(left), ...Object.keys(right)]);
    if (schema.mapType !== "atomic" && names.size > 0) {
      compareFields(schema, left, right, { names, position });
      return false;
    }
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

function compareFields(
  schema: Schema,
  before: JsonObject,
  after: JsonObject,
  { names, position }: { names: ReadonlySet<string>; position: Position },
): void {
  for (const name of names) {
    compare(
      fieldSchema(schema, name),
      Object.hasOwn(before, name) ? before[name] : undefined,
      Object.hasOwn(after, name) ? after[name] : undefined,
      positionAt(position, fieldElement(name)),
    );
  }
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
 * Duplicate items of a list are owned as a whole, without fields below: they
 * change as a whole, and the transition between one and several items is a removal
 * and an addition.
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
    const item = positionAt(position, element);
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
