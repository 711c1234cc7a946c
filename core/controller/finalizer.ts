import { ApiError } from "../api/api_error.ts";
import type { ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import { retryOnConflict } from "../client/retry_on_conflict.ts";
import type { JsonPatchOperation } from "../patch/json_patch.ts";

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
 * JSON Patch that adds a finalizer, or removes all its entries; undefined if
 * nothing has to change. An addition tests that the object is unchanged, and a
 * removal that the UID and all finalizers are the same.
 */
function finalizerPatch(
  { metadata }: KubernetesObject,
  finalizer: string,
  isWanted: boolean,
): readonly JsonPatchOperation[] | undefined {
  const { finalizers = [], uid, resourceVersion } = metadata;
  if (finalizers.includes(finalizer) === isWanted) return undefined;
  const path = "/metadata/finalizers";
  if (isWanted) {
    // The server refuses new finalizers of an object that is being deleted.
    if (metadata.deletionTimestamp !== undefined) return undefined;
    return [
      { op: "test", path: "/metadata/resourceVersion", value: resourceVersion },
      finalizers.length === 0
        ? { op: "add", path, value: [finalizer] }
        : { op: "add", path: `${path}/-`, value: finalizer },
    ];
  }
  const others = finalizers.filter((name) => name !== finalizer);
  return [
    { op: "test", path: "/metadata/uid", value: uid },
    { op: "test", path, value: finalizers },
    { op: "replace", path, value: others },
  ];
}

/** Change of a finalizer, with the access to its object. */
export interface FinalizerChange<P extends KubernetesObject> {
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
 * @throws {ApiError} If the server refuses the patch, or after ten conflicts.
 * @throws {Error} If it refuses the patch of an object that nobody has changed.
 */
export async function setFinalizer<P extends KubernetesObject>(
  primary: P,
  change: FinalizerChange<P>,
): Promise<P | undefined> {
  const { finalizer, isWanted } = change;
  const { uid } = primary.metadata;
  try {
    return await retryOnConflict(primary, {
      attempts: 10,
      hasTests: true,
      async send(latest) {
        const patch = finalizerPatch(latest, finalizer, isWanted);
        return patch === undefined ? latest : await change.patch(patch);
      },
      async read() {
        const fresh = await change.read();
        return fresh?.metadata.uid === uid ? fresh : undefined;
      },
    });
  } catch (error) {
    if (ApiError.is(error) && error.isNotFound) return undefined;
    throw error;
  }
}
