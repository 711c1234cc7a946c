import type { FieldElement } from "./field_element.ts";
import { fieldElement } from "./field_element.ts";
import { type FieldSet, FieldSetBuilder } from "./field_set.ts";
import { isJsonObject, jsonEquals, type JsonObject } from "./json_value.ts";
import type { Schema } from "./schema.ts";
import {
  fieldSchema,
  type Form,
  formOf,
  itemElement,
  itemSchema,
} from "./typed_value.ts";

/** Where two objects differ; no field is in two of the sets. */
export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

/** Where the differences below one place go. */
interface Sink {
  readonly added: FieldSetBuilder;
  readonly modified: FieldSetBuilder;
  readonly removed: FieldSetBuilder;
}

/** The difference of a field that is there on one side or on both. */
type Mark = (kind: keyof Sink) => void;

/** Compares two objects of a kind, field by field as the schema says. */
export function compareTyped(
  schema: Schema,
  before: unknown,
  after: unknown,
): Comparison {
  const sink: Sink = {
    added: new FieldSetBuilder(),
    modified: new FieldSetBuilder(),
    removed: new FieldSetBuilder(),
  };
  // The object as a whole is not tracked: its own mark goes nowhere.
  compare(schema, before, after, { here: () => sink, mark: () => {} });
  return {
    added: sink.added.build(),
    modified: sink.modified.build(),
    removed: sink.removed.build(),
  };
}

interface Place {
  /** Opened only when something below differs. */
  here(): Sink;
  readonly mark: Mark;
}

function placeAt(place: Place, element: FieldElement): Place {
  let sink: Sink | undefined;
  return {
    here: () => {
      if (sink === undefined) {
        const { added, modified, removed } = place.here();
        sink = {
          added: added.at(element),
          modified: modified.at(element),
          removed: removed.at(element),
        };
      }
      return sink;
    },
    mark: (kind) => place.here()[kind].addElement(element),
  };
}

function compare(
  schema: Schema,
  before: unknown,
  after: unknown,
  place: Place,
): void {
  const forms = new Set<Form>();
  if (before !== undefined) forms.add(formOf(schema, before));
  if (after !== undefined) forms.add(formOf(schema, after));
  let leaf = false;
  for (const form of forms) {
    leaf = compareAs(form, schema, before, after, place);
  }
  if (leaf) return;
  if (before === undefined) place.mark("added");
  else if (after === undefined) place.mark("removed");
}

/** Whether the place was compared as a whole, with nothing below it. */
function compareAs(
  form: Form,
  schema: Schema,
  before: unknown,
  after: unknown,
  place: Place,
): boolean {
  if (form === "map") {
    const left = isJsonObject(before) ? before : {};
    const right = isJsonObject(after) ? after : {};
    const names = new Set([...Object.keys(left), ...Object.keys(right)]);
    if (schema.mapType !== "atomic" && names.size > 0) {
      compareFields(schema, left, right, { names, place });
      return false;
    }
  } else if (form === "list") {
    const left: unknown[] = Array.isArray(before) ? before : [];
    const right: unknown[] = Array.isArray(after) ? after : [];
    if (schema.listType !== "atomic" && left.length + right.length > 0) {
      compareItems(schema, left, right, place);
      return false;
    }
  }
  if (before === undefined) place.mark("added");
  else if (after === undefined) place.mark("removed");
  else if (!jsonEquals(before, after)) place.mark("modified");
  return true;
}

function compareFields(
  schema: Schema,
  before: JsonObject,
  after: JsonObject,
  { names, place }: { names: ReadonlySet<string>; place: Place },
): void {
  for (const name of names) {
    compare(
      fieldSchema(schema, name),
      Object.hasOwn(before, name) ? before[name] : undefined,
      Object.hasOwn(after, name) ? after[name] : undefined,
      placeAt(place, fieldElement(name)),
    );
  }
}

function groupItems(
  schema: Schema,
  list: readonly unknown[],
): Map<FieldElement, unknown[]> {
  const groups = new Map<FieldElement, unknown[]>();
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
 * An item that is in a list more than once is owned as one thing with nothing
 * below; so it changes as one, and becoming single or ceasing to be so is a
 * removal and an addition.
 */
function compareItems(
  schema: Schema,
  before: readonly unknown[],
  after: readonly unknown[],
  place: Place,
): void {
  const lefts = groupItems(schema, before);
  const rights = groupItems(schema, after);
  for (const element of new Set([...lefts.keys(), ...rights.keys()])) {
    const left = lefts.get(element) ?? [];
    const right = rights.get(element) ?? [];
    const item = placeAt(place, element);
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
