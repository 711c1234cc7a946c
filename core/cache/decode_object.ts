import { apiVersionOf, type Kind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { ByteRange } from "../json/byte_range.ts";

const DECODER = new TextDecoder();

/**
 * Decodes an object and freezes it with all its parts. Items of a list get the
 * `apiVersion` and `kind` that the list leaves out.
 */
export function decodeObject<T extends KubernetesObject>(
  range: ByteRange,
  kind: Kind<T>,
): T {
  const { bytes, start, end } = range;
  const object = JSON.parse(DECODER.decode(bytes.subarray(start, end))) as T;
  object.apiVersion ??= apiVersionOf(kind);
  object.kind ??= kind.kind;
  return deepFreeze(object);
}

function deepFreeze<V>(value: V): V {
  if (typeof value === "object" && value !== null) {
    for (const part of Object.values(value)) deepFreeze(part);
    Object.freeze(value);
  }
  return value;
}
