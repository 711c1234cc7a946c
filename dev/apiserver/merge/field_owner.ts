import type { ManagedFieldsEntry } from "@coracle/operator/client";
import { FieldSet, type FieldsV1 } from "./field_set.ts";

/** Entry of `metadata.managedFields`, decoded. */
export interface FieldOwner {
  /** Name of the field manager. */
  readonly manager: string;
  /** Operation: a server-side apply or any other write. */
  readonly operation: "Apply" | "Update";
  /** API version that the fields belong to. */
  readonly apiVersion: string;
  /** Subresource of the writes, such as `status`. */
  readonly subresource?: string | undefined;
  /** Time of the last change (RFC 3339); absent if unknown. */
  readonly time?: string | undefined;
  /** Owned fields. */
  readonly fields: FieldSet;
}

/** Identity of an owner: the parts of an entry that never change. */
export type FieldOwnerIdentity = Pick<
  FieldOwner,
  "manager" | "operation" | "apiVersion" | "subresource"
>;

/** Owners of the fields of an object, by {@linkcode ownerId}. */
export type FieldOwners = ReadonlyMap<string, FieldOwner>;

/**
 * Encodes the identity of an owner as a text. Operation `Apply` has one entry per
 * manager for all API versions, `Update` one per API version.
 */
export function ownerId(owner: FieldOwnerIdentity): string {
  const { manager, operation, apiVersion, subresource } = owner;
  const version = operation === "Apply" ? "" : apiVersion;
  return JSON.stringify([manager, operation, version, subresource ?? ""]);
}

/**
 * Decodes `metadata.managedFields`.
 *
 * @throws {SyntaxError} If an entry is malformed.
 */
export function decodeOwners(
  entries: readonly ManagedFieldsEntry[] | undefined,
): FieldOwners {
  const owners = new Map<string, FieldOwner>();
  for (const [index, entry] of (entries ?? []).entries()) {
    const { manager = "", operation, apiVersion, fieldsType, subresource } =
      entry;
    if (operation !== "Apply" && operation !== "Update") {
      throw malformed(index, '"operation" must be Apply or Update', operation);
    }
    if (!apiVersion) {
      throw malformed(index, '"apiVersion" must not be empty', apiVersion);
    }
    if (fieldsType !== "FieldsV1") {
      throw malformed(index, '"fieldsType" must be FieldsV1', fieldsType);
    }
    const owner: FieldOwner = {
      manager,
      operation,
      apiVersion,
      subresource,
      time: entry.time,
      fields: FieldSet.fromJSON((entry.fieldsV1 ?? {}) as FieldsV1),
    };
    owners.set(ownerId(owner), owner);
  }
  return owners;
}

function malformed(index: number, why: string, received: unknown): SyntaxError {
  return new SyntaxError(
    `Cannot read managed fields: entry ${index}: ${why}: received ${
      JSON.stringify(received)
    }`,
  );
}
