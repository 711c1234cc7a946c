import type { UntypedObject } from "@coracle/operator/client";
import { mutableCopy, parseApiVersion } from "@coracle/operator/internal";
import { FieldSet } from "./merge/field_set.ts";
import {
  applyManaged,
  type ManagedFieldsWrite,
  type ManagedKind,
  updateManagedFields as update,
} from "./merge/managed_fields.ts";
import {
  type ManagedWrite,
  type ResourceDefinition,
  type ResourceVersion,
  subresourcesOf,
} from "./registry.ts";
import { serverError } from "./status.ts";
import { apiVersionIn } from "./storage/object_view.ts";

const STATUS_FIELD: FieldSet = FieldSet.of([["f:status"]]);
const SPEC_FIELD: FieldSet = FieldSet.of([["f:spec"]]);
const ALL_BUT_STATUS: FieldSet = FieldSet.of([["f:spec"], ["f:metadata"]]);

function versionOf(
  definition: ResourceDefinition,
  apiVersion: string,
): ResourceVersion | undefined {
  const { group, version } = parseApiVersion(apiVersion);
  if (group !== definition.group) return undefined;
  return definition.versions.find(({ name }) => name === version);
}

/** Fields that a write resets, so no manager can own them. */
function resetFields(write: ManagedWrite): FieldSet | undefined {
  const { definition, subresource } = write;
  const own = definition.resetFields?.(subresource);
  if (own !== undefined) return own;
  if (subresource === "status") {
    return definition.custom ? ALL_BUT_STATUS : SPEC_FIELD;
  }
  const hasStatus = subresourcesOf(write).some(({ name }) => name === "status");
  return subresource === undefined && hasStatus ? STATUS_FIELD : undefined;
}

function managedKind(write: ManagedWrite): ManagedKind {
  const { definition } = write;
  const reset = resetFields(write);
  const requested = apiVersionIn(write);
  return {
    schema: (apiVersion) => {
      const schema = versionOf(definition, apiVersion)?.schema;
      if (schema || !definition.custom) return schema;
      throw serverError(
        `request to convert CR to an invalid group/version: ${apiVersion}`,
      );
    },
    // Ownership of all fields is kept, including fields that the schema of
    // another version would drop; a webhook may move them.
    convert: ({ value }, apiVersion) =>
      definition.custom && definition.prepareConversion === undefined
        ? { ...value as UntypedObject, apiVersion }
        : definition.convert(
          value as UntypedObject,
          parseApiVersion(apiVersion).version,
        ),
    resetFields: (apiVersion) => apiVersion === requested ? reset : undefined,
    empty: (apiVersion) => {
      const empty = versionOf(definition, apiVersion)?.empty?.();
      return empty ??
        { apiVersion, kind: definition.kind, metadata: { name: "" } };
    },
  };
}

function managedFieldsWrite(write: ManagedWrite): ManagedFieldsWrite {
  const { manager, subresource, time, keepsOwners } = write;
  const apiVersion = apiVersionIn(write);
  return { manager, apiVersion, subresource, time, keepsOwners };
}

/** Sets `next.metadata.managedFields` after a create, update or patch. */
export function updateManagedFields(
  live: UntypedObject | undefined,
  next: UntypedObject,
  write: ManagedWrite,
): void {
  update(managedKind(write), { live, next }, managedFieldsWrite(write));
}

/**
 * Merges an apply configuration into the live object (undefined for a create)
 * and sets defaults.
 *
 * @throws {StatusError} 409 on conflicts, 500 if a value does not fit the
 * schema, 400 if the configuration has managed fields.
 */
export function applyPatch(
  live: UntypedObject | undefined,
  applied: UntypedObject,
  write: ManagedWrite & { readonly force: boolean },
): UntypedObject {
  const { definition, version, force } = write;
  const { object: merged, changed } = applyManaged(managedKind(write), {
    live,
    applied,
  }, {
    ...managedFieldsWrite(write),
    force,
  });
  // A custom resource is stored as merged. A built-in object is decoded into
  // its Go type, which has no null and drops empty values.
  const object = definition.custom
    ? mutableCopy(merged)
    : version.decode(mutableCopy(merged)).object;
  // An object that does not change keeps fields unset that its version defaults.
  if (changed) version.setDefaults(object);
  return object;
}
