import {
  isJsonObject,
  type JsonObject,
} from "../../../core/patch/json_value.ts";

/** Sets a field of any name; `__proto__` becomes an ordinary field. */
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

/** Own field of an object; undefined if it is absent or only inherited. */
export function ownField(object: JsonObject, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Canonical JSON text; equal values have equal texts whatever their key order. */
export function canonicalText(value: unknown): string {
  return JSON.stringify(
    value,
    (_, inner: unknown) =>
      isJsonObject(inner)
        ? Object.fromEntries(
          Object.entries(inner).sort(([a], [b]) => a < b ? -1 : 1),
        )
        : inner,
  ) ?? "undefined";
}
