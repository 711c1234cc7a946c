import type { UntypedObject } from "@coracle/operator/client";
import { apiVersionOf, parseApiVersion } from "@coracle/operator/internal";
import type { ResourceDefinition, ResourceVersion } from "../registry.ts";
import { encodeObject, StoredObject } from "./stored_object.ts";

/** View of stored objects: a resource in one of its versions. */
export interface View {
  readonly definition: ResourceDefinition;
  readonly version: ResourceVersion;
}

/** API version of the objects in a view. */
export function apiVersionIn({ definition, version }: View): string {
  return apiVersionOf({ group: definition.group, version: version.name });
}

/** Whether the stored bytes are already in the version of the view. */
export function isStoredForm(stored: StoredObject, view: View): boolean {
  return stored.current && stored.definition === view.definition &&
    view.version.name === view.definition.storageVersion;
}

/** Whether an object that is written in a view has the defaults of its storage version. */
export function hasStoredDefaults({ definition, version }: View): boolean {
  return !definition.custom || version.name === definition.storageVersion;
}

/**
 * Object in the version of a view, as a new tree.
 *
 * A custom resource whose CRD changed since it was written, or that was written
 * in another version than that of the storage, is pruned and defaulted by the
 * version in which it is stored.
 *
 * @throws {StatusError} If the object cannot be converted.
 */
export function objectIn(stored: StoredObject, view: View): UntypedObject {
  const object = stored.parse();
  return isStoredForm(stored, view) ? object : converted(stored, object, view);
}

/**
 * Object that a write with `dryRun` answers: as it would be read back.
 *
 * @throws {StatusError} If the object cannot be converted.
 */
export function dryRunObject(
  object: UntypedObject,
  home: ResourceDefinition,
  view: View,
): UntypedObject {
  if (!home.custom || view.version.name === home.storageVersion) return object;
  const stored = new StoredObject(
    home,
    home.convert(object, home.storageVersion),
    { revision: 0, current: false },
  );
  const read = objectIn(stored, view);
  const { resourceVersion } = object.metadata;
  if (resourceVersion === undefined) delete read.metadata.resourceVersion;
  else read.metadata.resourceVersion = resourceVersion;
  return read;
}

function converted(
  stored: StoredObject,
  object: UntypedObject,
  { definition, version }: View,
): UntypedObject {
  const source = definition.custom
    ? current(stored, object, definition)
    : object;
  return definition.convert(source, version.name);
}

/** Custom resource in its stored version, by the current definition. */
function current(
  stored: StoredObject,
  object: UntypedObject,
  definition: ResourceDefinition,
): UntypedObject {
  // The defaults are those of the version in which the object is stored.
  const { version: written } = parseApiVersion(object.apiVersion ?? "");
  const own = definition.versions.find(({ name }) => name === written);
  if (!own || (stored.definition === definition && stored.current)) {
    return object;
  }
  const decoded = own.decode(object).object;
  own.setDefaults(decoded);
  return decoded;
}

/** Converts objects by one call of a conversion webhook, in a step of `settle`. */
export function prepareObjects(
  objects: readonly StoredObject[],
  { definition, version }: View,
): void {
  definition.prepareConversion?.(
    objects.map((stored) => current(stored, stored.parse(), definition)),
    version.name,
  );
}

/**
 * Bytes of an object in the version of a view; the stored bytes if equal.
 *
 * @throws {StatusError} If the object cannot be converted.
 */
export function bytesIn(stored: StoredObject, view: View): Uint8Array {
  return isStoredForm(stored, view)
    ? stored.bytes
    : encodeObject(objectIn(stored, view));
}
