import {
  applyJsonPatch,
  type JsonPatchOperation,
} from "../../patch/json_patch.ts";
import { isJsonObject, jsonEquals } from "../../patch/json_value.ts";

/**
 * Whether a JSON merge patch would change an object. Where the object is a
 * cached one that lacks the fields in question, it counts as a change: nobody
 * can tell.
 *
 * @param object The object as a cache has it.
 * @param patch The patch.
 */
export function mergePatchChanges(object: object, patch: unknown): boolean {
  if (!isJsonObject(patch)) return true;
  return Object.entries(patch).some(([name, value]) =>
    // A cache may hold the metadata alone.
    value !== undefined && !(name in object) ||
    fieldChanges(object, name, value)
  );
}

function fieldChanges(owner: object, name: string, value: unknown): boolean {
  if (value === undefined) return false;
  const field = Object.getOwnPropertyDescriptor(owner, name);
  if (value === null) return field !== undefined;
  if (field === undefined || field.get !== undefined) return true;
  if (!isJsonObject(value)) return !jsonEquals(field.value, value);
  const inner: unknown = field.value;
  return !isJsonObject(inner) ||
    Object.entries(value).some(([key, part]) => fieldChanges(inner, key, part));
}

/**
 * Whether a JSON Patch would change an object. What does not fit it, or touches
 * fields that a cache lacks, is for the server to answer and counts as a change.
 *
 * @param object The object as a cache has it.
 * @param patch The patch.
 */
export function jsonPatchChanges(
  object: object,
  patch: readonly JsonPatchOperation[],
): boolean {
  if (patch.some(({ path }) => leadsToPruned(object, path))) return true;
  try {
    return !jsonEquals(applyJsonPatch(object, patch), object);
  } catch {
    return true;
  }
}

/**
 * Whether an object, or its status, differs from the stored one in anything but
 * what the server writes itself.
 *
 * @param stored The object as a cache has it.
 * @param object What would be put in its place.
 * @param subresource Whether its status alone counts, or anything else.
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

/** An object without what a write cannot say. */
function asWritten(object: Record<string, unknown>): unknown {
  const { metadata, apiVersion: _apiVersion, kind: _kind, ...fields } = object;
  const { managedFields: _managedFields, ...others } = withoutGuards(metadata);
  return { ...fields, metadata: others };
}

function withoutGuards(value: unknown): Record<string, unknown> {
  return isJsonObject(value) ? Object.fromEntries(Object.entries(value)) : {};
}

/**
 * The first field that a cached object lacks since the cache was told to leave
 * it out, other than its managed fields; undefined for an object that is whole.
 */
export function prunedField(value: unknown, path = ""): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  for (const name of Object.getOwnPropertyNames(value)) {
    const field = Object.getOwnPropertyDescriptor(value, name);
    const place = path === "" ? name : `${path}.${name}`;
    if (field?.get !== undefined) {
      if (place !== "metadata.managedFields") return place;
    } else if (typeof field?.value === "object") {
      const inner = prunedField(field.value, place);
      if (inner !== undefined) return inner;
    }
  }
  return undefined;
}

function leadsToPruned(object: object, pointer: string): boolean {
  let value: unknown = object;
  for (const step of pointer.split("/").slice(1)) {
    if (typeof value !== "object" || value === null) return false;
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    const field = Object.getOwnPropertyDescriptor(value, name);
    if (field?.get !== undefined) return true;
    value = field?.value;
  }
  return false;
}
