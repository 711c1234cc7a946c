import { isJsonObject, type JsonObject } from "../../core/patch/json_value.ts";
import {
  type Form,
  formOfField,
  isGranular,
  sameValue,
  saysNothing,
} from "./value_form.ts";
import type {
  KubernetesObject,
  ManagedFieldsEntry,
} from "../../core/api/object.ts";

/** The parts of metadata that a desired object may ask for. */
const ASKED_METADATA: ReadonlySet<string> = new Set([
  "annotations",
  "finalizers",
  "labels",
  "ownerReferences",
]);

/**
 * The first field in which applying a desired object would change a stored one,
 * or undefined if it would change nothing that we own.
 *
 * A field is different if it is asked for and stored otherwise or not owned, or
 * owned and not asked for any more. Whether a list is keyed, a set or one value
 * is taken from what we own, since that is how the server has stored it. The
 * order of keyed lists is not looked at.
 *
 * @param desired What is asked for.
 * @param actual What is stored.
 * @param known Which of its fields we own, and how its values are spelled.
 */
export function firstDifference(
  desired: JsonObject,
  actual: JsonObject,
  { owned, form }: {
    readonly owned: OwnedFields;
    readonly form?: Form | undefined;
  },
): string | undefined {
  const { apiVersion: _apiVersion, kind: _kind, status: _status, ...asked } =
    desired;
  const metadata = Object.fromEntries(
    Object.entries(isJsonObject(asked["metadata"]) ? asked["metadata"] : {})
      .filter(([name]) => ASKED_METADATA.has(name)),
  );
  return inObject({ ...asked, metadata }, actual, {
    owned,
    path: "",
    form,
  });
}

/** Where in the objects a comparison is. */
interface Place {
  readonly owned: unknown;
  /** The way here, for people. */
  readonly path: string;
  /** What is known of the values here. */
  readonly form: Form | undefined;
}

function inValue(
  desired: unknown,
  actual: unknown,
  place: Place,
): string | undefined {
  const [first] = ownedChildren(place.owned);
  switch (first?.[0][0]) {
    case "f":
      if (isJsonObject(desired)) {
        return inObject(desired, isJsonObject(actual) ? actual : {}, place);
      }
      break;
    case "k":
      if (Array.isArray(desired)) {
        return inKeyedList(desired, Array.isArray(actual) ? actual : [], place);
      }
      break;
    case "v":
      if (Array.isArray(desired)) {
        return inSet(desired, Array.isArray(actual) ? actual : [], place);
      }
      break;
    case undefined:
      // A list or map of which nothing in it is ours.
      if (
        isContainerAlone(place.owned) && saysNothing(desired, place.form)
      ) return undefined;
      // An object that was applied empty, into which others put what is there.
      if (
        isOwnedWhole(place.owned) && isGranular(place.form) &&
        isJsonObject(actual) && isJsonObject(desired) &&
        Object.keys(desired).length === 0
      ) return undefined;
  }
  return sameValue(desired, actual, place.form) ? undefined : place.path;
}

function inObject(
  desired: JsonObject,
  actual: JsonObject,
  { owned, path, form }: Place,
): string | undefined {
  const children = new Map(ownedChildren(owned));
  for (const [name, value] of Object.entries(desired)) {
    const below = children.get(`f:${name}`);
    const place = {
      owned: below,
      path: `${path}.${name}`,
      form: formOfField(form, name),
    };
    if (below === undefined) {
      // The server stores nothing for what says nothing.
      if (saysNothing(value, place.form)) continue;
      return changedLeaf(value, actual[name], place);
    }
    const found = inValue(value, actual[name], place);
    if (found !== undefined) return found;
  }
  for (const [element] of children) {
    const name = element.slice(2);
    if (!Object.hasOwn(desired, name)) return `${path}.${name}`;
  }
  return undefined;
}

/** The first field below a value that is stored otherwise, or the value itself. */
function changedLeaf(
  desired: unknown,
  actual: unknown,
  { path, form }: Pick<Place, "path" | "form">,
): string {
  if (!isJsonObject(desired) || !isJsonObject(actual)) return path;
  const name = Object.keys(desired).find((key) =>
    !sameValue(desired[key], actual[key], formOfField(form, key))
  );
  return name === undefined ? path : changedLeaf(desired[name], actual[name], {
    path: `${path}.${name}`,
    form: formOfField(form, name),
  });
}

function inKeyedList(
  desired: readonly unknown[],
  actual: readonly unknown[],
  { owned, path, form }: Place,
): string | undefined {
  const open = new Map(ownedChildren(owned));
  for (const item of desired) {
    // A key that was not asked for was filled in by the server.
    const match = [...open].find(([element]) =>
      isJsonObject(item) &&
      Object.entries(keysOf(element)).every(([name, value]) =>
        item[name] === value || item[name] === undefined
      )
    );
    if (match === undefined) return `${path}[]`;
    const [element, below] = match;
    open.delete(element);
    const place = {
      owned: withoutKeys(below, element),
      path: `${path}[${element.slice(2)}]`,
      form,
    };
    const wanted = withoutFields(item as JsonObject, element);
    const stored = (findKeyed(actual, element) ?? {}) as JsonObject;
    // An item whose fields are not owned one by one is owned as a whole.
    const found = isOwnedWhole(below)
      ? inWhole(wanted, withoutFields(stored, element), place)
      : inObject(wanted, stored, place);
    if (found !== undefined) return found;
  }
  const [left] = open.keys();
  return left === undefined ? undefined : `${path}[${left.slice(2)}]`;
}

function inWhole(
  desired: JsonObject,
  actual: JsonObject,
  place: Place,
): string | undefined {
  return sameValue(desired, actual, place.form)
    ? undefined
    : changedLeaf(desired, actual, place);
}

/** The keys of an item are equal already, or filled in. */
function withoutFields(item: JsonObject, element: string): JsonObject {
  const keys = keysOf(element);
  return Object.fromEntries(
    Object.entries(item).filter(([name]) => !Object.hasOwn(keys, name)),
  );
}

function withoutKeys(owned: unknown, element: string): OwnedFields {
  const keys = keysOf(element);
  return Object.fromEntries(
    ownedChildren(owned)
      .filter(([name]) => !Object.hasOwn(keys, name.slice(2))),
  );
}

function inSet(
  desired: readonly unknown[],
  actual: readonly unknown[],
  { owned, path }: Place,
): string | undefined {
  const asked = new Set(desired.map((item) => JSON.stringify(item)));
  const stored = new Set(actual.map((item) => JSON.stringify(item)));
  const ours = new Set(ownedChildren(owned).map(([name]) => name.slice(2)));
  for (const item of asked) {
    if (!stored.has(item) || !ours.has(item)) return `${path}[${item}]`;
  }
  for (const item of ours) {
    if (!asked.has(item)) return `${path}[${item}]`;
  }
  return undefined;
}

/** A tree of owned fields, as `managedFields` writes it. */
export type OwnedFields = JsonObject;

/**
 * The fields of an object that a manager has applied in a version of its kind,
 * or undefined if it has applied none: the names of fields are those of the
 * version, and an apply in another one takes the place of the last.
 *
 * @param object The object, with its managedFields.
 * @param fieldManager The manager.
 * @param apiVersion The version in which the manager applies.
 */
export function ownedFieldsOf(
  object: KubernetesObject,
  fieldManager: string,
  apiVersion: string | undefined,
): OwnedFields | undefined {
  const entry = object.metadata.managedFields?.find((
    entry: ManagedFieldsEntry,
  ) =>
    entry.manager === fieldManager && entry.operation === "Apply" &&
    !entry.subresource && entry.apiVersion === apiVersion
  );
  return isJsonObject(entry?.fieldsV1) ? entry.fieldsV1 : undefined;
}

/** What lies below an owned field; `.`, the field itself, is left out. */
export function ownedChildren(owned: unknown): readonly [string, unknown][] {
  return isJsonObject(owned)
    ? Object.entries(owned).filter(([name]) => name !== ".")
    : [];
}

/** Whether a value is owned with everything in it. */
export function isOwnedWhole(owned: unknown): boolean {
  return isJsonObject(owned) && Object.keys(owned).length === 0;
}

/** Whether a list or map is owned, and nothing in it. */
export function isContainerAlone(owned: unknown): boolean {
  return isJsonObject(owned) && "." in owned && Object.keys(owned).length === 1;
}

/** The item of a keyed list that has the keys of an element `k:{…}`. */
export function findKeyed(
  list: readonly unknown[],
  element: string,
): unknown {
  const keys = Object.entries(keysOf(element));
  return list.find((item) =>
    isJsonObject(item) && keys.every(([name, value]) => item[name] === value)
  );
}

/** The keys of an element `k:{…}`. */
export function keysOf(element: string): JsonObject {
  const keys: unknown = JSON.parse(element.slice(2));
  return isJsonObject(keys) ? keys : {};
}

/**
 * The part of an object that is owned, as text: two states of an object with the
 * same text differ only in what others own.
 *
 * @param value The object, or a value in it.
 * @param owned The fields below it that are owned.
 */
export function ownedText(value: unknown, owned: unknown): string {
  const children = ownedChildren(owned);
  if (children.length === 0) return JSON.stringify(value) ?? "";
  const parts = children.map(([element, below]) => {
    const content = element.slice(2);
    switch (element[0]) {
      case "f":
        return isJsonObject(value) && Object.hasOwn(value, content)
          ? ownedText(value[content], below)
          : "";
      case "k":
        return ownedText(
          Array.isArray(value) ? findKeyed(value, element) : undefined,
          below,
        );
      case "v":
        return String(
          Array.isArray(value) &&
            value.some((item) => JSON.stringify(item) === content),
        );
      default:
        return JSON.stringify(value) ?? "";
    }
  });
  // Lengths keep neighbours apart, whatever they hold.
  return parts.map((part) => `${part.length}:${part}`).join("");
}
