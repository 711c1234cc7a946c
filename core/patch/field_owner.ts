import type { ManagedFieldsEntry } from "../api/object.ts";
import { FieldSet, type FieldsV1 } from "./field_set.ts";

/** Which fields one manager owns, decoded from `metadata.managedFields`. */
export interface FieldOwner {
  readonly manager: string;
  readonly operation: "Apply" | "Update";
  /** The version in whose terms the fields are named. */
  readonly apiVersion: string;
  /** Set for writes to a subresource, such as `status`. */
  readonly subresource?: string | undefined;
  /** When it last changed something; absent if it never did. */
  readonly time?: string | undefined;
  readonly fields: FieldSet;
}

/** What makes an owner: the rest of its entry may change from write to write. */
export type FieldOwnerIdentity = Pick<
  FieldOwner,
  "manager" | "operation" | "apiVersion" | "subresource"
>;

/** The owners of an object's fields, by {@linkcode ownerId}. */
export type FieldOwners = ReadonlyMap<string, FieldOwner>;

/**
 * The identity of an owner as a text. An applier has one entry whatever version
 * it speaks, one that updates has one for each version.
 */
export function ownerId(owner: FieldOwnerIdentity): string {
  const { manager, operation, apiVersion, subresource } = owner;
  const version = operation === "Apply" ? "" : apiVersion;
  return JSON.stringify([manager, operation, version, subresource ?? ""]);
}

/**
 * Reads `metadata.managedFields`.
 *
 * @throws {SyntaxError} If an entry is not as the API server writes them.
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
 * What to write to `metadata.managedFields`: appliers first, then by time and
 * name. Undefined if there is no owner.
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

/** An owner for people, as messages of conflicts name it. */
export function ownerText(owner: FieldOwner): string {
  const name = JSON.stringify(owner.manager);
  const place = owner.subresource
    ? `${name} with subresource ${JSON.stringify(owner.subresource)}`
    : name;
  return owner.operation === "Update"
    ? `${place} using ${owner.apiVersion}`
    : place;
}

/** How many owners by update are kept apart; older ones are joined. */
const UPDATE_OWNERS_KEPT = 10;

/** The manager in whose name the oldest updates are joined. */
const JOINED_MANAGER = "ancient-changes";

/** Joins the oldest owners by update, version by version, when too many. */
export function joinOldOwners(owners: FieldOwners): FieldOwners {
  const updaters = [...owners].filter(([, owner]) =>
    owner.operation === "Update"
  );
  let surplus = updaters.length - UPDATE_OWNERS_KEPT;
  if (surplus <= 0) return owners;
  updaters.sort(([idA, a], [idB, b]) =>
    compare(a.time ?? "", b.time ?? "") || compare(idA, idB)
  );
  const joined = new Map(owners);
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
      manager: JOINED_MANAGER,
      operation: "Update",
      apiVersion,
    } as const;
    const before = joined.get(ownerId(identity)) ?? joined.get(first);
    joined.delete(first);
    joined.delete(id);
    joined.set(ownerId(identity), {
      ...identity,
      time,
      fields: owner.fields.union(before?.fields ?? FieldSet.empty),
    });
    surplus--;
  }
  return joined;
}
