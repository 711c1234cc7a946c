import {
  type Kind,
  untyped,
  type UntypedObject,
} from "@coracle/operator/client";
import { parseApiVersion } from "@coracle/operator/internal";

/** Reference to the object of a step or a perturbation. */
export interface ObjectReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string | undefined;
}

/** Kind of a referenced object. */
export function kindOf(
  { apiVersion, kind }: ObjectReference,
): Kind<UntypedObject> {
  return untyped({ ...parseApiVersion(apiVersion), kind });
}

/** Reference to an object. */
export function referenceOf(object: object): ObjectReference {
  const { apiVersion = "", kind = "", metadata } = object as UntypedObject;
  const { name = "", namespace } = metadata ?? {};
  return { apiVersion, kind, name, ...(namespace && { namespace }) };
}
