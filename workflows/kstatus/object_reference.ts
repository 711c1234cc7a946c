import { type Kind, parseApiVersion } from "../../core/api/kind.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import { keyText, type ObjectKey } from "../../core/api/object_key.ts";

/** Names one object of any kind, in a form that a status can hold. */
export interface ObjectReference extends ObjectKey {
  /** The version of its kind, such as `apps/v1`. */
  readonly apiVersion: string;
  /** Its kind, such as `Deployment`. */
  readonly kind: string;
}

/**
 * The name of an object, by what it says itself.
 *
 * @param object An object as it is sent, or a reference, which is given back.
 * @throws {TypeError} If it does not say its kind.
 */
export function referenceOf(
  object: KubernetesObject | ObjectReference,
): ObjectReference {
  const { apiVersion, kind } = object;
  const { namespace, name } = "metadata" in object ? object.metadata : object;
  if (!apiVersion || !kind || !name) {
    throw new TypeError(
      `Cannot refer to an object: it must have apiVersion, kind and name: received ${
        JSON.stringify({ apiVersion, kind, name })
      }`,
    );
  }
  return { apiVersion, kind, ...(namespace && { namespace }), name };
}

/** A reference for people: `Deployment/default/web`. */
export function referenceText(reference: ObjectReference): string {
  return `${reference.kind}/${keyText(reference)}`;
}

/** A text that differs for every object, whatever the version of its kind. */
export function referenceId(reference: ObjectReference): string {
  const { group } = parseApiVersion(reference.apiVersion);
  return `${group}/${referenceText(reference)}`;
}

/** The kind of a reference. */
export function referencedKind(reference: ObjectReference): Kind {
  const { apiVersion, kind } = reference;
  return { ...parseApiVersion(apiVersion), kind };
}

/** An object with its kind, which answers and events do not always say. */
export function asReferenced<T extends KubernetesObject>(
  object: T,
  { apiVersion, kind }: ObjectReference,
): T {
  return { ...object, apiVersion, kind };
}
