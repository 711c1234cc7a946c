/** A JSON object; its keys come from outside. */
export type JsonObject = Record<string, unknown>;

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Sets a field whatever its name is: `__proto__` is a field like others. */
export function setField(
  object: JsonObject,
  name: string,
  value: unknown,
): void {
  Object.defineProperty(object, name, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

/** A field that the object itself has. */
export function ownField(object: JsonObject, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Whether two JSON values are the same, key order apart. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, i) => sameValue(item, b[i]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length &&
    names.every((name) =>
      Object.hasOwn(b, name) && sameValue(a[name], b[name])
    );
}

/** A text by which equal JSON values are found, key order apart. */
export function canonicalText(value: unknown): string {
  return JSON.stringify(
    value,
    (_, inner: unknown) =>
      isObject(inner)
        ? Object.fromEntries(
          Object.entries(inner).sort(([a], [b]) => a < b ? -1 : 1),
        )
        : inner,
  ) ?? "undefined";
}
