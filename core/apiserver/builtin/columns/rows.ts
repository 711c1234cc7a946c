import type { UntypedObject } from "../../../api/object.ts";

/** The cells of a row of a resource's table. */
export function rowOf(
  _resource: string,
  object: UntypedObject,
  _now: number,
): readonly unknown[] {
  return [object.metadata.name];
}
