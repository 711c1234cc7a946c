import type { ManagedFieldsEntry } from "@coracle/operator/client";
import { type FieldOwner, type FieldOwners, ownerId } from "./field_owner.ts";
import { FieldSet } from "./field_set.ts";
import { compareTexts } from "@coracle/operator/internal";

/**
 * Encodes owners for `metadata.managedFields`: operation `Apply` first, then by
 * time and name. Returns `undefined` if there is no owner.
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
  return compareTexts(a.operation, b.operation) ||
    compareTexts(a.time ?? "", b.time ?? "") ||
    compareTexts(a.manager, b.manager) ||
    compareTexts(a.apiVersion, b.apiVersion) ||
    compareTexts(a.subresource ?? "", b.subresource ?? "");
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

/** Manager name of merged entries. */
const MERGED_MANAGER = "ancient-changes";

/** Merges the oldest entries with operation `Update` per version, if there are too many. */
export function mergeOldOwners(owners: FieldOwners): FieldOwners {
  const updaters = [...owners].filter(([, owner]) =>
    owner.operation === "Update"
  );
  let surplus = updaters.length - MAX_UPDATE_OWNERS;
  if (surplus <= 0) return owners;
  updaters.sort(([idA, a], [idB, b]) =>
    compareTexts(a.time ?? "", b.time ?? "") || compareTexts(idA, idB)
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
