import { ApiError } from "../api/api_error.ts";
import { kindText, type ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import { keyOf, keyText } from "../api/object_key.ts";
import type { JsonPatchOperation } from "../patch/json_patch.ts";

/** Maximum number of attempts when other clients cause conflicts. */
const MAX_ATTEMPTS = 10;

/** Pattern of custom finalizers, which must be a domain with a path. */
const FINALIZER =
  /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+\/[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$/;

/**
 * Default finalizer of a controller: `<plural>.<group>/finalizer`. For groups
 * without a domain it is `<plural>.coracle.dev/finalizer`.
 */
export function defaultFinalizer(
  kind: Pick<ResolvedKind, "group" | "plural">,
): string {
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

export function hasFinalizer(
  object: KubernetesObject,
  finalizer: string,
): boolean {
  return object.metadata.finalizers?.includes(finalizer) ?? false;
}

/**
 * JSON Patch that adds or removes a finalizer; undefined if nothing has to
 * change. An addition tests that the object is unchanged, and a removal that
 * the UID is the same and the finalizer is still at the index that is removed.
 */
function finalizerPatch(
  object: KubernetesObject,
  finalizer: string,
  isWanted: boolean,
): readonly JsonPatchOperation[] | undefined {
  if (hasFinalizer(object, finalizer) === isWanted) return undefined;
  const { finalizers = [], uid, resourceVersion } = object.metadata;
  if (isWanted) {
    return [
      { op: "test", path: "/metadata/resourceVersion", value: resourceVersion },
      finalizers.length === 0
        ? { op: "add", path: "/metadata/finalizers", value: [finalizer] }
        : { op: "add", path: "/metadata/finalizers/-", value: finalizer },
    ];
  }
  const path = `/metadata/finalizers/${finalizers.indexOf(finalizer)}`;
  return [
    { op: "test", path: "/metadata/uid", value: uid },
    { op: "test", path, value: finalizer },
    { op: "remove", path },
  ];
}

/** Change of a finalizer, with the access to its object. */
export interface FinalizerChange<P extends KubernetesObject> {
  readonly kind: ResolvedKind<P>;
  /** Name of the finalizer. */
  readonly finalizer: string;
  /** Whether the finalizer is added; otherwise it is removed. */
  readonly isWanted: boolean;
  /** Reads the object from the server; undefined if it does not exist. */
  read(): Promise<P | undefined>;
  /** Sends a JSON Patch of the object. */
  patch(patch: readonly JsonPatchOperation[]): Promise<P>;
}

/**
 * Adds or removes a finalizer of an object. Repeats the patch after a conflict:
 * status 409, or 422 if a test of the patch has failed.
 *
 * @returns Current state of the object; undefined if it was deleted, even if
 * there is a new object with the same name.
 * @throws {Error} After ten conflicts.
 */
export async function setFinalizer<P extends KubernetesObject>(
  primary: P,
  change: FinalizerChange<P>,
): Promise<P | undefined> {
  const { kind, finalizer, isWanted } = change;
  let object = primary;
  for (let attempt = 1;; attempt++) {
    // The server refuses new finalizers of an object that is being deleted.
    if (isWanted && object.metadata.deletionTimestamp !== undefined) {
      return object;
    }
    const patch = finalizerPatch(object, finalizer, isWanted);
    if (patch === undefined) return object;
    try {
      return await change.patch(patch);
    } catch (error) {
      if (!ApiError.is(error)) throw error;
      if (error.isNotFound) return undefined;
      if (!error.isConflict && !error.isInvalid) throw error;
      if (attempt === MAX_ATTEMPTS) {
        throw new Error(
          `Cannot change the finalizers of ${kindText(kind)} ${
            keyText(keyOf(primary))
          }: it was changed by other clients ${MAX_ATTEMPTS} times in a row: received ${error.message}`,
          { cause: error },
        );
      }
    }
    const fresh = await change.read();
    if (fresh?.metadata.uid !== primary.metadata.uid) return undefined;
    object = fresh as P;
  }
}
