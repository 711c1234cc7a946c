import { type Kind, kindText } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { keyOf, keyText } from "../../api/object_key.ts";
import { encodeJson } from "../../client/request.ts";
import { mutableCopy } from "../../json/prune.ts";
import {
  diffJsonPatch,
  type JsonPatchOperation,
} from "../../patch/json_patch.ts";
import { checkIntegers } from "../../patch/json_value.ts";
import { isPromise } from "../../callback.ts";
import { valuesOf } from "./write_changes.ts";
import { replacementChanges } from "./write_match.ts";

/**
 * JSON Patch with the changes that a function makes, for an object that nobody has
 * changed; undefined if it changes nothing that a write can set.
 *
 * @throws {TypeError} If the function returns a promise or another object, or a
 * value is no JSON.
 * @throws {RangeError} If a changed part has an integer beyond 2^53 − 1.
 */
export function modification<T extends KubernetesObject>(
  kind: Kind<T>,
  object: T,
  { change, subresource }: {
    readonly change: (object: T) => void;
    readonly subresource: "status" | undefined;
  },
): readonly JsonPatchOperation[] | undefined {
  const copy = mutableCopy(object);
  const result: unknown = change(copy);
  const isAsync = isPromise(result);
  if (isAsync) result.then(undefined, () => {}); // Reported below.
  const { metadata } = Object(result) as Partial<KubernetesObject>;
  const isOther = metadata?.uid === object.metadata.uid && result !== copy;
  if (isAsync || isOther) {
    throw new TypeError(
      `Cannot modify ${kind.kind}: the function must change the object that it gets, without await, and return nothing: received ${
        isAsync ? "a promise" : "another object"
      }`,
    );
  }
  const action = `modify ${kindText(kind)} ${keyText(keyOf(object))}`;
  const changed = JSON.parse(encodeJson(copy, action)) as T;
  if (!replacementChanges(object, changed, subresource)) return undefined;
  const patch = diffJsonPatch(object, changed);
  checkIntegers(action, valuesOf(patch));
  const path = "/metadata/resourceVersion";
  const value = object.metadata.resourceVersion;
  // The server reports a conflict if it has another one.
  return [...patch, { op: "replace", path, value }];
}
