import { copyGuards } from "../json/prune_guards.ts";

/**
 * A deep copy of a decoded object that may be changed. Fields that the cache
 * does not keep still throw when they are read, and may be set.
 *
 * @param value What JSON can say.
 */
export function mutableCopy<T>(value: T): T {
  return copy(value) as T;
}

function copy(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copy);
  const source = value as Record<string, unknown>;
  // The engine copies an object of a known shape at once; so does a name like
  // "__proto__" become a field, which an assignment to it then finds.
  const result = { ...source };
  for (const name of Object.keys(result)) {
    const part = result[name];
    if (typeof part === "object" && part !== null) result[name] = copy(part);
  }
  copyGuards(source, result);
  return result;
}
