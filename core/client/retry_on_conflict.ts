import { ApiError } from "../api/api_error.ts";
import type { KubernetesObject } from "../api/object.ts";

/** Write that is computed from the state of an object. */
export interface WriteOfState<T extends KubernetesObject, R> {
  /** Computes the write from a state, and sends it. */
  send(state: T): Promise<R>;
  /**
   * Reads the state from the server after a conflict.
   *
   * @returns Undefined if the write has become pointless, for example since the
   * object was deleted.
   */
  read(conflict: ApiError): Promise<T | undefined>;
  /**
   * Maximum number of attempts.
   *
   * @default {5}
   */
  readonly attempts?: number;
  /**
   * Whether the write is a JSON Patch with `test` operations: the server answers
   * a failed test with 422.
   *
   * @default {false}
   */
  readonly hasTests?: boolean;
  /** Waits before an attempt after the second. Does not wait by default. */
  readonly pause?: () => Promise<void>;
}

/**
 * Sends a write that depends on the state of an object, and repeats it from the
 * latest state if another client has changed the object in the meantime.
 *
 * A refusal of a write to an object that nobody has changed is no conflict: its
 * schema, a webhook, a policy or a quota would refuse a repetition again.
 *
 * @param state State of the object for the first attempt.
 * @returns Result of the write; undefined if it has become pointless.
 * @throws {ApiError} If the server refuses the write; `isConflict` if other
 * clients changed the object before each attempt.
 * @throws {Error} If the server reports a conflict although nobody has changed
 * the object.
 */
export async function retryOnConflict<T extends KubernetesObject, R>(
  state: T,
  write: WriteOfState<T, R>,
): Promise<R | undefined> {
  const { attempts = 5, hasTests = false } = write;
  let latest = state;
  for (let attempt = 1;; attempt++) {
    let conflict: ApiError;
    try {
      return await write.send(latest);
    } catch (error) {
      if (!ApiError.is(error) || !mayBeConflict(error, hasTests)) throw error;
      conflict = error;
    }
    const { message, details } = conflict;
    if (attempt === attempts) {
      throw new ApiError(
        `${message}; other clients changed the object ${attempts} times in a row`,
        { status: 409, reason: "Conflict", details },
      );
    }
    if (attempt > 1) await write.pause?.();
    const fresh = await write.read(conflict);
    if (fresh === undefined) return undefined;
    const { uid, resourceVersion } = fresh.metadata;
    if (
      uid === latest.metadata.uid &&
      resourceVersion === latest.metadata.resourceVersion
    ) {
      throw new Error(
        `${message}; no other client has changed the object, so its schema, a webhook, a policy or a quota refuses the write`,
        { cause: conflict },
      );
    }
    latest = fresh;
  }
}

/** Whether an answer may mean that the object was changed. */
function mayBeConflict(error: ApiError, hasTests: boolean): boolean {
  if (error.isConflict) return true;
  // A violated schema names fields, and a failed test none.
  return hasTests && error.isInvalid && !error.details.causes?.length;
}
