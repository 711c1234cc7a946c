import type {
  KubernetesObject,
  ManagedFieldsEntry,
} from "../../core/api/object.ts";
import { isJsonObject, type JsonObject } from "../../core/patch/json_value.ts";

/** A tree of owned fields, as `managedFields` writes it. */
export type OwnedFields = JsonObject;

/**
 * The fields of an object that a manager has applied, or undefined if it has
 * applied none.
 *
 * @param object The object, with its managedFields.
 * @param fieldManager The manager.
 */
export function ownedFieldsOf(
  object: KubernetesObject,
  fieldManager: string,
): OwnedFields | undefined {
  const entry = object.metadata.managedFields?.find((
    { manager, operation, subresource }: ManagedFieldsEntry,
  ) => manager === fieldManager && operation === "Apply" && !subresource);
  return isJsonObject(entry?.fieldsV1) ? entry.fieldsV1 : undefined;
}

/** What lies below an owned field; `.`, the field itself, is left out. */
export function ownedChildren(owned: unknown): readonly [string, unknown][] {
  return isJsonObject(owned)
    ? Object.entries(owned).filter(([name]) => name !== ".")
    : [];
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
