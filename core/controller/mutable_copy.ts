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
  // The names of an object of a known shape are at hand: to list them costs as
  // much memory again as the copy.
  for (const name in source) {
    const part = source[name];
    if (
      typeof part === "object" && part !== null && Object.hasOwn(source, name)
    ) {
      result[name] = copy(part);
    }
  }
  copyGuards(source, result);
  return result;
}
