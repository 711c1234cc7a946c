import {
  applyJsonPatch,
  type JsonPatchOperation,
} from "../../patch/json_patch.ts";
import { isJsonObject, jsonEquals } from "../../patch/json_value.ts";

/**
 * Whether a JSON merge patch would change an object. Fields that the cache does
 * not keep count as changed.
 *
 * @param object Object in the cache.
 * @param patch Merge patch.
 */
export function mergePatchChanges(object: object, patch: unknown): boolean {
  if (!isJsonObject(patch)) return true;
  return Object.keys(patch).some((name) => {
    const value = patch[name];
    // A cache may keep only the metadata.
    return value !== undefined && !(name in object) ||
      fieldChanges(object, name, value);
  });
}

function fieldChanges(owner: object, name: string, value: unknown): boolean {
  if (value === undefined) return false;
  const field = Object.getOwnPropertyDescriptor(owner, name);
  if (value === null) return field !== undefined;
  if (field === undefined || field.get !== undefined) return true;
  if (!isJsonObject(value)) return !jsonEquals(field.value, value);
  const inner: unknown = field.value;
  return !isJsonObject(inner) ||
    Object.keys(value).some((key) => fieldChanges(inner, key, value[key]));
}

/**
 * Whether a JSON Patch would change an object. A patch that cannot be applied, or
 * uses fields that the cache does not keep, which throw when they are read, counts
 * as a change, so that the server answers it.
 *
 * @param object Object in the cache.
 * @param patch Operations of the patch.
 */
export function jsonPatchChanges(
  object: object,
  patch: readonly JsonPatchOperation[],
): boolean {
  try {
    return !jsonEquals(applyJsonPatch(object, patch), object);
  } catch {
    return true;
  }
}

/**
 * Whether an update would change an object, apart from fields that the server sets.
 *
 * @param stored Object in the cache.
 * @param object Object of the update.
 * @param subresource Subresource of the update.
 */
export function replacementChanges(
  stored: object,
  object: object,
  subresource: "status" | undefined,
): boolean {
  const before = stored as Record<string, unknown>;
  const after = object as Record<string, unknown>;
  if (subresource === "status") {
    return !jsonEquals(before["status"], after["status"]);
  }
  return !jsonEquals(asWritten(before), asWritten(after));
}

/** Object without the fields that a write cannot set. */
function asWritten(object: Record<string, unknown>): unknown {
  const { metadata, apiVersion: _apiVersion, kind: _kind, ...fields } = object;
  const { managedFields: _managedFields, ...others } = withoutGuards(metadata);
  return { ...fields, metadata: others };
}

function withoutGuards(value: unknown): Record<string, unknown> {
  return isJsonObject(value) ? Object.fromEntries(Object.entries(value)) : {};
}
