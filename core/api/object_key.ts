import type { KubernetesObject } from "./object.ts";

/** Names one object of a kind. */
export interface ObjectKey {
  /** Where the object lives; absent for cluster-scoped kinds. */
  readonly namespace?: string | undefined;
  /** The name of the object. */
  readonly name: string;
}

/** A key as text: `namespace/name`, or `name` for cluster-scoped kinds. */
export function keyText(key: ObjectKey): string {
  return key.namespace ? `${key.namespace}/${key.name}` : key.name;
}

/**
 * Reads a key from its text.
 *
 * @throws {SyntaxError} If the text has an empty part or more than one slash.
 *
 * @example Round trip
 * ```ts
 * import { keyText, parseKey } from "@coracle/operator/core";
 *
 * const key = parseKey("default/web");
 * if (keyText(key) !== "default/web") throw new Error("Unexpected key");
 * ```
 */
export function parseKey(text: string): ObjectKey {
  const slash = text.indexOf("/");
  if (
    text === "" || slash === 0 || slash === text.length - 1 ||
    slash !== text.lastIndexOf("/")
  ) {
    throw new SyntaxError(
      `Cannot read an object key: it must be "name" or "namespace/name": received "${text}"`,
    );
  }
  return slash < 0
    ? { name: text }
    : { namespace: text.slice(0, slash), name: text.slice(slash + 1) };
}

/** The key of an object. */
export function keyOf(object: KubernetesObject): ObjectKey {
  const { namespace, name } = object.metadata;
  return namespace ? { namespace, name } : { name };
}
