import { ApiError } from "../api/api_error.ts";
import type { ResolvedKind } from "../api/kind.ts";
import { kindText } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import { keyOf, keyText } from "../api/object_key.ts";
import type { JsonPatchOperation } from "../patch/json_patch.ts";

/** Number of attempts to write when other clients cause conflicts. */
const MAX_ATTEMPTS = 10;

/** Domain with a path, as the API server requires it of custom finalizers. */
const FINALIZER =
  /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+\/[A-Za-z0-9]([-\w.]*[A-Za-z0-9])?$/;

/**
 * Default finalizer of a controller: `<plural>.<group>/finalizer`. For groups
 * without a domain it is `<plural>.coracle.dev/finalizer`.
 */
export function defaultFinalizer(kind: ResolvedKind): string {
  return `${kind.plural}.${
    kind.group.includes(".") ? kind.group : "coracle.dev"
  }/finalizer`;
}

/**
 * Validates the name of a finalizer.
 *
 * @throws {TypeError} If the name is not a domain, a slash and a name.
 */
export function checkFinalizer(finalizer: string): string {
  if (FINALIZER.test(finalizer) && finalizer.length <= 316) return finalizer;
  throw new TypeError(
    `Cannot use a finalizer: it must be a domain, a slash and a name, such as "gadgets.example.com/finalizer": received ${
      JSON.stringify(finalizer)
    }`,
  );
}

/** Whether an object has a finalizer. */
export function hasFinalizer(
  object: KubernetesObject,
  finalizer: string,
): boolean {
  return object.metadata.finalizers?.includes(finalizer) ?? false;
}

/** JSON Patch that adds a finalizer; it fails if the object was changed. */
export function addFinalizerPatch(
  object: KubernetesObject,
  finalizer: string,
): readonly JsonPatchOperation[] {
  const { finalizers, resourceVersion } = object.metadata;
  const unchanged = {
    op: "test",
    path: "/metadata/resourceVersion",
    value: resourceVersion,
  } as const;
  return finalizers === undefined || finalizers.length === 0
    ? [unchanged, {
      op: "add",
      path: "/metadata/finalizers",
      value: [finalizer],
    }]
    : [unchanged, {
      op: "add",
      path: "/metadata/finalizers/-",
      value: finalizer,
    }];
}

/**
 * JSON Patch that removes a finalizer. It removes an index of the list, so it
 * tests first that the finalizer is still there, and that the UID is the same.
 */
export function removeFinalizerPatch(
  object: KubernetesObject,
  finalizer: string,
): readonly JsonPatchOperation[] {
  const { finalizers = [], uid } = object.metadata;
  const path = `/metadata/finalizers/${finalizers.indexOf(finalizer)}`;
  return [
    { op: "test", path: "/metadata/uid", value: uid },
    { op: "test", path, value: finalizer },
    { op: "remove", path },
  ];
}

/** Access to one object whose writes go into the cache. */
export interface ObjectAccess<P extends KubernetesObject> {
  readonly kind: ResolvedKind<P>;
  /** Reads the object from the server; undefined if it does not exist. */
  read(): Promise<P | undefined>;
  patch(patch: readonly JsonPatchOperation[]): Promise<P>;
}

/**
 * Changes the finalizers of an object. Repeated after a conflict: status 409, or
 * 422 if a test of the patch has failed.
 *
 * @param primary Last known state of the object.
 * @param access Access to the object.
 * @param change Computes the patch, or returns undefined if none is needed.
 * @returns Current state of the object; undefined if it was deleted, even if there
 * is a new object of the same name.
 * @throws {Error} After ten conflicts.
 */
export async function changeFinalizers<P extends KubernetesObject>(
  primary: P,
  access: ObjectAccess<P>,
  change: (object: P) => readonly JsonPatchOperation[] | undefined,
): Promise<P | undefined> {
  let object = primary;
  for (let attempt = 1;; attempt++) {
    const patch = change(object);
    if (patch === undefined) return object;
    try {
      return await access.patch(patch);
    } catch (error) {
      if (!ApiError.is(error)) throw error;
      if (error.isNotFound) return undefined;
      if (!error.isConflict && !error.isInvalid) throw error;
      if (attempt === MAX_ATTEMPTS) {
        throw new Error(
          `Cannot change the finalizers of ${kindText(access.kind)} ${
            keyText(keyOf(primary))
          }: it was changed by other clients ${MAX_ATTEMPTS} times in a row: received ${error.message}`,
          { cause: error },
        );
      }
    }
    const fresh = await access.read();
    if (fresh?.metadata.uid !== primary.metadata.uid) return undefined;
    object = fresh as P;
  }
}
