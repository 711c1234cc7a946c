import { type Kind, parseApiVersion } from "../../core/api/kind.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import { keyText, type ObjectKey } from "../../core/api/object_key.ts";

/** Reference to an object of any kind, in a form that a status can hold. */
export interface ObjectReference extends ObjectKey {
  /** API version of the object, such as `apps/v1`. */
  readonly apiVersion: string;
  /** Kind of the object, such as `Deployment`. */
  readonly kind: string;
}

/** Creates the reference of an object; returns one that is given. */
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

/** Formats a reference for users: `Deployment/default/web`. */
export function referenceText(reference: ObjectReference): string {
  return `${reference.kind}/${keyText(reference)}`;
}

/** Unique id of an object, independent of the version of its kind. */
export function referenceId(reference: ObjectReference): string {
  const { group } = parseApiVersion(reference.apiVersion);
  return `${group}/${referenceText(reference)}`;
}

export function referencedKind(reference: ObjectReference): Kind {
  const { apiVersion, kind } = reference;
  return { ...parseApiVersion(apiVersion), kind };
}

/**
 * Adds apiVersion and kind to an object; responses and events may lack them.
 */
export function asReferenced<T extends KubernetesObject>(
  object: T,
  { apiVersion, kind }: ObjectReference,
): T {
  return { ...object, apiVersion, kind };
}
