/**
 * Freezes a value that JSON can hold, with all its parts, and gives it back.
 * Accessors are left alone: they hold nothing.
 */
export function deepFreeze<V>(value: V): V {
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) freezePart(value[i]);
    Object.freeze(value);
  } else if (typeof value === "object" && value !== null) {
    // Only own, enumerable properties are there: JSON makes no others.
    for (const key in value) freezePart(value[key]);
    Object.freeze(value);
  }
  return value;
}

function freezePart(part: unknown): void {
  if (typeof part === "object" && part !== null) deepFreeze(part);
}
