import type { KubernetesObject } from "./object.ts";
import { typeText } from "./options.ts";

/** Key of an object of a kind: its namespace and name. */
export interface ObjectKey {
  /** Namespace; absent for cluster-scoped kinds. */
  readonly namespace?: string | undefined;
  /** Name of the object. */
  readonly name: string;
}

/** Text of a key: `namespace/name`, or `name` for cluster-scoped kinds. */
export function keyText({ namespace, name }: ObjectKey): string {
  return namespace ? `${namespace}/${name}` : name;
}

/**
 * Parses the text of a key.
 *
 * @param text `namespace/name` or `name`.
 * @throws {TypeError} If it is not a text.
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
  if (typeof text !== "string") {
    throw new TypeError(
      `Cannot read an object key: it must be text: received ${typeText(text)}`,
    );
  }
  const slash = text.indexOf("/");
  if (
    slash === 0 || slash === text.length - 1 ||
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

export function keyOf(object: KubernetesObject): ObjectKey {
  const { namespace, name } = object.metadata;
  return namespace ? { namespace, name } : { name };
}

/**
 * Key of the object that `ctx.get` reads: by default that of the primary.
 *
 * @throws {TypeError} If the name is empty or explicitly undefined, as an
 * optional field may be: another object, or no object, would be read.
 */
export function keyToRead(
  kind: { readonly kind: string },
  names: readonly [name?: string | undefined, namespace?: string | undefined],
  primary: Partial<ObjectKey> = {},
): ObjectKey {
  const [name = primary.name, namespace = primary.namespace] = names;
  const isMissing = names.length > 0 && names[0] === undefined;
  // A cache holds no object without a name, so that it would just be absent.
  if (name === undefined || name === "" || isMissing) {
    throw new TypeError(
      `Cannot read ${kind.kind}: the name is missing: received ${
        name === "" ? "an empty text" : "undefined"
      }`,
    );
  }
  return { namespace, name };
}
