import { ApiError } from "../api/api_error.ts";
import type { ResolvedKind } from "../api/kind.ts";
import { kindText } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import { keyOf, keyText } from "../api/object_key.ts";
import type { JsonPatchOperation } from "../patch/json_patch.ts";

/** How often a write is tried again when others change the object meanwhile. */
const ATTEMPTS = 10;

/** A domain with a path, as the API server asks it of custom finalizers. */
const NAME =
  /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+\/[A-Za-z0-9]([-\w.]*[A-Za-z0-9])?$/;

/**
 * The finalizer of a controller that was not given one: `<plural>.<group>/finalizer`,
 * and under this library's domain for kinds of the core group.
 */
export function defaultFinalizer(kind: ResolvedKind): string {
  return `${kind.plural}.${
    kind.group.includes(".") ? kind.group : "coracle.dev"
  }/finalizer`;
}

/**
 * Checks the name of a finalizer.
 *
 * @throws {TypeError} If it is not a domain, a slash and a name.
 */
export function checkFinalizer(finalizer: string): string {
  if (NAME.test(finalizer) && finalizer.length <= 316) return finalizer;
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

/** Adds a finalizer by JSON Patch; it fails if the object changed meanwhile. */
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
 * Removes a finalizer by JSON Patch. List items are removed by their place: the
 * tests make sure that it is still the finalizer's, and the object the same.
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

/** Reads and writes one object, with its writes seen by the cache. */
export interface ObjectAccess<P extends KubernetesObject> {
  readonly kind: ResolvedKind<P>;
  /** The object as the server has it now; undefined if it is gone. */
  read(): Promise<P | undefined>;
  patch(patch: readonly JsonPatchOperation[]): Promise<P>;
}

/**
 * Changes the finalizers of an object, again and again while others change it
 * meanwhile (409, or 422 for a failed test).
 *
 * @param primary The object as last seen.
 * @param access How to read and write it.
 * @param change Gives the patch, or undefined if nothing is left to do.
 * @returns The object as it is now; undefined if it, or the incarnation that
 * was meant, is gone.
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
      if (attempt === ATTEMPTS) {
        throw new Error(
          `Cannot change the finalizers of ${kindText(access.kind)} ${
            keyText(keyOf(primary))
          }: it was changed by others ${ATTEMPTS} times in a row: received ${error.message}`,
          { cause: error },
        );
      }
    }
    const fresh = await access.read();
    if (fresh?.metadata.uid !== primary.metadata.uid) return undefined;
    object = fresh as P;
  }
}
