import type { ManagedFieldsEntry } from "../api/object.ts";
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
  /** Time of the last change (RFC 3339); absent if there was none. */
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

/**
 * Encodes owners for `metadata.managedFields`: operation `Apply` first, then by
 * time and name. `undefined` if there is no owner.
 */
export function encodeOwners(
  owners: FieldOwners,
): ManagedFieldsEntry[] | undefined {
  if (owners.size === 0) return undefined;
  return [...owners.values()].sort(compareOwners).map((owner) => ({
    manager: owner.manager,
    operation: owner.operation,
    apiVersion: owner.apiVersion,
    ...(owner.time === undefined ? {} : { time: owner.time }),
    fieldsType: "FieldsV1",
    fieldsV1: owner.fields.toJSON(),
    ...(owner.subresource ? { subresource: owner.subresource } : {}),
  }));
}

function compareOwners(a: FieldOwner, b: FieldOwner): number {
  return compare(a.operation, b.operation) ||
    compare(a.time ?? "", b.time ?? "") ||
    compare(a.manager, b.manager) ||
    compare(a.apiVersion, b.apiVersion) ||
    compare(a.subresource ?? "", b.subresource ?? "");
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Formats an owner for messages about conflicts. */
export function ownerText(owner: FieldOwner): string {
  const name = JSON.stringify(owner.manager);
  const described = owner.subresource
    ? `${name} with subresource ${JSON.stringify(owner.subresource)}`
    : name;
  return owner.operation === "Update"
    ? `${described} using ${owner.apiVersion}`
    : described;
}

/** Maximum number of entries with operation `Update`; older ones are merged. */
const MAX_UPDATE_OWNERS = 10;

/** Name of the manager of the merged entries. */
const MERGED_MANAGER = "ancient-changes";

/** Merges the oldest entries with operation `Update` per version, if too many. */
export function mergeOldOwners(owners: FieldOwners): FieldOwners {
  const updaters = [...owners].filter(([, owner]) =>
    owner.operation === "Update"
  );
  let surplus = updaters.length - MAX_UPDATE_OWNERS;
  if (surplus <= 0) return owners;
  updaters.sort(([idA, a], [idB, b]) =>
    compare(a.time ?? "", b.time ?? "") || compare(idA, idB)
  );
  const merged = new Map(owners);
  const firsts = new Map<string, string>();
  for (const [id, owner] of updaters) {
    if (surplus <= 0) break;
    const first = firsts.get(owner.apiVersion);
    if (first === undefined) {
      firsts.set(owner.apiVersion, id);
      continue;
    }
    const { apiVersion, time } = owner;
    const identity = {
      manager: MERGED_MANAGER,
      operation: "Update",
      apiVersion,
    } as const;
    const before = merged.get(ownerId(identity)) ?? merged.get(first);
    merged.delete(first);
    merged.delete(id);
    merged.set(ownerId(identity), {
      ...identity,
      time,
      fields: owner.fields.union(before?.fields ?? FieldSet.empty),
    });
    surplus--;
  }
  return merged;
}
