import {
  isJsonObject,
  jsonEquals,
  type JsonObject,
  ownValue,
  setOwn,
} from "./json_value.ts";

/**
 * Applies a JSON merge patch (RFC 7396): objects are merged, null removes a field,
 * any other value replaces it. Neither argument is modified.
 */
export function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isJsonObject(patch)) return patch;
  const merged: JsonObject = isJsonObject(target) ? { ...target } : {};
  for (const name of Object.keys(patch)) {
    const value = patch[name];
    if (value === null) delete merged[name];
    else setOwn(merged, name, applyMergePatch(ownValue(merged, name), value));
  }
  return merged;
}

/**
 * Creates the JSON merge patch that turns one document into another; `{}` if they
 * are equal. A null in the second document counts as an absent field, because a
 * merge patch cannot distinguish them.
 */
export function diffMergePatch(before: unknown, after: unknown): unknown {
  if (!isJsonObject(before) || !isJsonObject(after)) return after;
  const patch: [string, unknown][] = [];
  for (const name of Object.keys(before)) {
    const removed = !Object.hasOwn(after, name) || after[name] === null;
    if (removed && before[name] !== null) patch.push([name, null]);
  }
  for (const [name, value] of Object.entries(after)) {
    if (value === null) continue;
    const old = ownValue(before, name);
    if (jsonEquals(old, value)) continue;
    patch.push([name, diffMergePatch(old, value)]);
  }
  return Object.fromEntries(patch);
}

/**
 * Fields of a JSON merge patch as they are sent: without those that are undefined,
 * and with dates as texts.
 */
export function definedFields(patch: unknown): unknown {
  if (!isJsonObject(patch)) return patch;
  if (typeof patch["toJSON"] === "function") {
    return JSON.parse(JSON.stringify(patch));
  }
  const fields: JsonObject = {};
  for (const name of Object.keys(patch)) {
    const value = patch[name];
    if (value !== undefined) setOwn(fields, name, definedFields(value));
  }
  return fields;
}
