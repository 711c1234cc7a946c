import type { KubernetesObject, ManagedFieldsEntry } from "../../api/object.ts";
import type { JsonPatchOperation } from "../../patch/json_patch.ts";
import { isJsonObject, type JsonObject } from "../../patch/json_value.ts";

/** Whose fields become a controller's, and in which part of an object. */
export interface TakeOver {
  /** Field managers that have gone. */
  readonly managers: readonly string[];
  /** Field manager of the controller. */
  readonly fieldManager: string;
  readonly apiVersion: string;
  readonly subresource: "status" | undefined;
}

/**
 * Managers whose fields in an object are to become the controller's; undefined if a
 * cache keeps no managed fields.
 */
export function managersLeft(
  { metadata }: KubernetesObject,
  wanted: Omit<TakeOver, "apiVersion">,
): readonly string[] | undefined {
  let entries: readonly ManagedFieldsEntry[];
  try {
    entries = metadata.managedFields ?? [];
  } catch {
    return undefined; // The cache leaves out all of them.
  }
  const left = entries.filter((entry) => isLeft(entry, wanted));
  return [...new Set(left.map(({ manager }) => manager as string))];
}

/**
 * JSON Patch that makes the fields of other managers those of the controller, as
 * if it had applied them: its next apply removes those that it leaves out.
 *
 * @param object Object with all its managed fields.
 */
export function takeOverPatch(
  { metadata }: KubernetesObject,
  wanted: TakeOver,
): readonly JsonPatchOperation[] | undefined {
  const { managedFields = [], resourceVersion } = metadata;
  const left = managedFields.filter((entry) => isLeft(entry, wanted));
  if (left.length === 0) return undefined;
  const { fieldManager: manager, apiVersion, subresource } = wanted;
  const isOwn = (entry: ManagedFieldsEntry) =>
    entry.manager === manager && entry.operation === "Apply" &&
    entry.subresource === subresource;
  const own = managedFields.find(isOwn);
  const fieldsV1 = [own, ...left].reduce<JsonObject>(
    (all, { fieldsV1 } = {}) =>
      isJsonObject(fieldsV1) ? unionOf(all, fieldsV1) : all,
    {},
  );
  const { time } = own ?? left[0] as ManagedFieldsEntry;
  const entry = {
    manager,
    operation: "Apply",
    apiVersion: own?.apiVersion ?? apiVersion,
    ...time !== undefined && { time },
    fieldsType: "FieldsV1",
    fieldsV1,
    ...subresource !== undefined && { subresource },
  };
  const others = managedFields.filter((one) =>
    !left.includes(one) && one !== own
  );
  return [
    // Of an object that was changed since, the server refuses it by 409.
    {
      op: "replace",
      path: "/metadata/resourceVersion",
      value: resourceVersion,
    },
    {
      op: "replace",
      path: "/metadata/managedFields",
      value: [...others, entry],
    },
  ];
}

function isLeft(
  { manager, operation, subresource }: ManagedFieldsEntry,
  wanted: Omit<TakeOver, "apiVersion">,
): boolean {
  return manager !== undefined && wanted.managers.includes(manager) &&
    (manager !== wanted.fieldManager || operation !== "Apply") &&
    (subresource || undefined) === wanted.subresource;
}

/** Fields of two trees of managed fields. */
function unionOf(one: JsonObject, other: JsonObject): JsonObject {
  const union: JsonObject = { ...one };
  for (const [name, below] of Object.entries(other)) {
    const known = union[name];
    union[name] = isJsonObject(known) && isJsonObject(below)
      ? unionOf(known, below)
      : below;
  }
  // A field without parts is owned itself, which "." says of one with parts.
  const isWhole = (part: JsonObject) => Object.keys(part).length === 0;
  return isWhole(one) !== isWhole(other) ? { ...union, ".": {} } : union;
}
