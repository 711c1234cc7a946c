import { isJsonObject, jsonEquals } from "./json_value.ts";

/**
 * Applies a JSON merge patch (RFC 7386): objects are merged, null removes, and
 * everything else replaces. Neither operand is changed.
 *
 * @example Change one field and remove another
 * ```ts
 * import { applyMergePatch } from "@coracle/operator/core";
 *
 * const patched = applyMergePatch({ a: 1, b: 2 }, { a: 3, b: null });
 * if (JSON.stringify(patched) !== '{"a":3}') throw new Error("Unexpected");
 * ```
 */
export function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isJsonObject(patch)) return patch;
  const fields = new Map(isJsonObject(target) ? Object.entries(target) : []);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) fields.delete(name);
    else fields.set(name, applyMergePatch(fields.get(name), value));
  }
  return Object.fromEntries(fields);
}

/**
 * The JSON merge patch that turns one document into another; `{}` if they are
 * equal. A null in the second document cannot be told from an absent field by
 * such a patch, so it counts as absent.
 */
export function diffMergePatch(before: unknown, after: unknown): unknown {
  if (!isJsonObject(before) || !isJsonObject(after)) return after;
  const patch: [string, unknown][] = [];
  for (const name of Object.keys(before)) {
    const gone = !Object.hasOwn(after, name) || after[name] === null;
    if (gone && before[name] !== null) patch.push([name, null]);
  }
  for (const [name, value] of Object.entries(after)) {
    if (value === null) continue;
    const old = Object.hasOwn(before, name) ? before[name] : undefined;
    if (jsonEquals(old, value)) continue;
    patch.push([
      name,
      isJsonObject(old) ? diffMergePatch(old, value) : value,
    ]);
  }
  return Object.fromEntries(patch);
}
