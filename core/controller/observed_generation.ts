import type { Kind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import { isExplainedBy } from "../cache/informer/explained_change.ts";
import { isJsonObject } from "../patch/json_value.ts";
import { statusSchemaOf } from "../crd/check_status.ts";

/** The field of a status that tells which generation it is about. */
export const OBSERVED = "observedGeneration";

/** Whether the status of a kind tells which generation it is about. */
export function tellsGeneration(kind: Kind): boolean {
  return Object.hasOwn(statusSchemaOf(kind)?.properties ?? {}, OBSERVED);
}

/** The generation that the status of an object tells, as far as it is there. */
export function toldGeneration(object: KubernetesObject): unknown {
  // A cache may have been told to leave the status out.
  const status: unknown = Object.getOwnPropertyDescriptor(object, "status")
    ?.value;
  return isJsonObject(status) ? status[OBSERVED] : undefined;
}

/**
 * The generation that a run has observed, after what it wrote itself. A change
 * of the spec that it made is observed with it; one that somebody else may have
 * had a part in is not, and makes the object run again.
 *
 * @param primary The object as the run was given it.
 * @param object The object after the run has written it.
 * @param written The fields that the run wrote; undefined if none.
 */
export function observedGeneration(
  primary: KubernetesObject,
  object: KubernetesObject,
  written: object | undefined,
): number | undefined {
  const isOurs = written !== undefined &&
    isExplainedBy(written, primary, object);
  return (isOurs ? object : primary).metadata.generation;
}
