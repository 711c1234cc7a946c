import type {
  KubernetesObject,
  ManagedFieldsEntry,
} from "../../core/api/object.ts";
import { isJsonObject, type JsonObject } from "../../core/patch/json_value.ts";

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
