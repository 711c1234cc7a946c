/**
 * What a request is about: which object, with which content. What could not be
 * meant is refused here, before anything is sent.
 *
 * @module
 */
import {
  apiVersionOf,
  type Kind,
  kindText,
  type ResolvedKind,
} from "../api/kind.ts";
import { keyText, type ObjectKey } from "../api/object_key.ts";
import { typeText } from "../api/option_rules.ts";
import type { ObjectBody } from "./request.ts";
import type { PatchType, Subresource } from "./request_options.ts";

/**
 * An object for people: `status of ConfigMap default/web`.
 *
 * @throws {TypeError} If the key is none.
 */
export function describe(
  kind: Pick<Kind, "kind">,
  key: ObjectKey,
  subresource?: Subresource,
): string {
  const given: unknown = key;
  if (typeof given !== "object" || given === null || !("name" in given)) {
    throw new TypeError(
      `Cannot address a ${kind.kind}: its key must be an object with a name, such as { namespace, name }: received ${
        typeof given === "string" ? JSON.stringify(given) : typeText(given)
      }`,
    );
  }
  const part = subresource === undefined ? "" : `${subresource} of `;
  return `${part}${kind.kind} ${keyText(key)}`;
}

/** The objects of a collection for people. */
export function describeMany(kind: ResolvedKind, namespace?: string): string {
  return namespace === undefined || kind.scope === "Cluster"
    ? `${kind.kind} objects`
    : `${kind.kind} objects in namespace ${namespace}`;
}

/**
 * Refuses what is no object to be sent.
 *
 * @param action What is done with it, to read after "Cannot".
 * @throws {TypeError} If it is no object with metadata.
 */
export function checkObject(
  kind: Pick<Kind, "kind">,
  object: ObjectBody,
  action: string,
): void {
  const given: unknown = object;
  const { metadata } = Object(given) as { readonly metadata?: unknown };
  if (
    typeof given === "object" && typeof metadata === "object" &&
    metadata !== null
  ) return;
  throw new TypeError(
    `Cannot ${action} ${kind.kind}: it must be an object with "metadata": received ${
      typeof given === "object" && given !== null && !Array.isArray(given)
        ? `one with ${Object.keys(given).join(", ") || "nothing"}`
        : typeText(given)
    }`,
  );
}

/**
 * Which object is meant by what is sent.
 *
 * @throws {TypeError} If it is none, or has no name.
 */
export function keyFor(
  kind: ResolvedKind,
  object: ObjectBody,
  action: string,
): ObjectKey {
  checkObject(kind, object, action);
  const { name, namespace } = object.metadata;
  if (!name) {
    throw new TypeError(
      `Cannot ${action} ${kind.kind}: "metadata.name" must be set: received ${
        JSON.stringify(name)
      }`,
    );
  }
  return { namespace, name };
}

/**
 * Where an object is made.
 *
 * @throws {TypeError} If it needs a namespace and has none.
 */
export function namespaceFor(
  kind: ResolvedKind,
  key: ObjectKey,
): string | undefined {
  if (kind.scope === "Namespaced" && !key.namespace) {
    throw new TypeError(
      `Cannot create ${kind.kind}: a namespaced kind needs "metadata.namespace": received name "${key.name}" alone`,
    );
  }
  return key.namespace;
}

/**
 * The object as JSON, with the kind's `apiVersion` and `kind`.
 *
 * @throws {TypeError} If it is of another kind.
 */
export function encode(kind: Kind, object: ObjectBody): string {
  const apiVersion = apiVersionOf(kind);
  if (
    (object.kind ?? kind.kind) !== kind.kind ||
    (object.apiVersion ?? apiVersion) !== apiVersion
  ) {
    throw new TypeError(
      `Cannot send a ${
        kindText(kind)
      }: the object is of another kind: received ${
        object.apiVersion ?? apiVersion
      } ${object.kind ?? kind.kind}`,
    );
  }
  return JSON.stringify({ ...object, apiVersion, kind: kind.kind });
}

/**
 * A patch as JSON.
 *
 * @param action What is patched, to read after "Cannot".
 * @throws {TypeError} If it is neither an object nor, for patches of the type
 * `json`, a list of operations.
 */
export function encodePatch(
  body: unknown,
  type: PatchType,
  action: string,
): string {
  const isList = Array.isArray(body);
  if (type === "json" ? isList : isPlain(body) && !isList) {
    return JSON.stringify(body);
  }
  throw new TypeError(
    `Cannot ${action}: ${
      isList
        ? 'a list of operations needs { type: "json" }'
        : type === "json"
        ? 'a patch of the type "json" must be a list of operations'
        : "its patch must be an object"
    }: received ${typeText(body)}`,
  );
}

/**
 * Options with defaults for those that were not given. What is no object stays
 * as it is: the request refuses it.
 */
export function withDefaults<O extends object>(
  options: O,
  defaults: Partial<O>,
): O {
  if (!isPlain(options)) return options;
  const all: Record<string, unknown> = { ...options as object };
  for (const [name, value] of Object.entries(defaults)) {
    if (all[name] === undefined) all[name] = value;
  }
  return all as O;
}

/** Options for a part of an object. What is no object stays as it is. */
export function ofPart<O extends object>(
  options: O,
  subresource: Subresource,
): O & { readonly subresource: Subresource } {
  return (isPlain(options) ? { ...options, subresource } : options) as
    & O
    & { readonly subresource: Subresource };
}

function isPlain(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
