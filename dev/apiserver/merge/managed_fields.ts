/**
 * Server side of patches and field ownership, as pure functions on JSON values:
 * strategic merge patch, and server-side apply with `managedFields`
 * (`structured_merge.ts` is structured-merge-diff's merge, the `typed_*.ts` files
 * its operations on typed values). Arguments are never modified, except where
 * {@linkcode updateManagedFields} says so. This folder imports only `core/api`,
 * `core/patch`, `status.ts` and the formatting of values in
 * `validation/go_value.ts`.
 *
 * @module
 */
import type {
  ManagedFieldsEntry,
  UntypedObject,
} from "@coracle/operator/client";
import { conflictError } from "./apply_error.ts";
import {
  decodeOwners,
  type FieldOwner,
  type FieldOwners,
  ownerId,
} from "./field_owner.ts";
import { FieldSet } from "./field_set.ts";
import { conflictsBesideLastApplied, withLastApplied } from "./last_applied.ts";
import { encodeOwners, mergeOldOwners } from "./owner_entries.ts";
import {
  FieldConflictError,
  mergeApply,
  type MergedApply,
  mergeUpdate,
  type TypedObject,
  TypedValueError,
  type VersionedKind,
} from "./structured_merge.ts";
import { badRequest, serverError, StatusError } from "../status.ts";
import { typeProblems, typeProblemsText } from "./typed_value.ts";

/** Kind with managed fields. */
export interface ManagedKind extends VersionedKind {
  /**
   * Creates an empty object to compare new objects with; for a built-in kind,
   * with the fields that are always serialized.
   */
  empty(apiVersion: string): UntypedObject;
}

/** Write to an object, as recorded in managed fields. */
export interface ManagedFieldsWrite {
  /** Field manager. */
  readonly manager: string;
  /** API version of the request. */
  readonly apiVersion: string;
  /** Subresource that is written, such as `status`. */
  readonly subresource?: string | undefined;
  /** Time of the write, such as `2024-01-02T03:04:05Z`. */
  readonly time: string;
  /** Whether the owners before the write are kept where new ones cannot be determined. */
  readonly keepsOwners?: boolean | undefined;
}

/** Fields that no manager owns: identity, and metadata set by the server. */
const UNOWNED: FieldSet = FieldSet.of([
  ["f:apiVersion"],
  ["f:kind"],
  ["f:metadata"],
  ...[
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
  ].map((name) => ["f:metadata", `f:${name}`]),
]);

/** Manager of the fields that had no owner before the first apply. */
const BEFORE_FIRST_APPLY = "before-first-apply";

/** Manager of `kubectl apply --server-side`, which migrates client-side apply. */
const KUBECTL = "kubectl";

function entriesOf(object: UntypedObject): ManagedFieldsEntry[] | undefined {
  return object.metadata?.managedFields;
}

/** Copy of an object with other managed fields. */
function withEntries(
  object: UntypedObject,
  entries: ManagedFieldsEntry[] | undefined,
): UntypedObject {
  const { managedFields: _, ...metadata } = object.metadata;
  return {
    ...object,
    metadata: entries === undefined
      ? metadata
      : { ...metadata, managedFields: entries },
  };
}

/**
 * Decodes managedFields entries; returns no owners if an entry is malformed, as
 * kube-apiserver does.
 */
function decodeOrNone(entries: ManagedFieldsEntry[] | undefined): FieldOwners {
  try {
    return decodeOwners(entries);
  } catch {
    return new Map();
  }
}

/**
 * Whether the managedFields of a request reset the ownership of all fields: an
 * empty list, or one empty entry.
 */
function isReset(entries: ManagedFieldsEntry[] | undefined): boolean {
  return entries !== undefined && (entries.length === 0 ||
    entries.length === 1 && Object.keys(entries[0] ?? {}).length === 0);
}

/** Owners before an update: those in the request, or else the stored ones. */
function ownersFor(
  live: UntypedObject,
  next: UntypedObject,
  write: ManagedFieldsWrite,
): FieldOwners {
  const theirs = entriesOf(next);
  if (!write.subresource) {
    if (isReset(theirs)) return new Map();
    const owners = decodeOrNone(theirs);
    if (owners.size > 0) return owners;
  }
  return decodeOrNone(entriesOf(live));
}

function withoutUnowned(owners: FieldOwners, id: string): FieldOwners {
  const owner = owners.get(id);
  if (owner === undefined) return owners;
  const result = new Map(owners);
  const fields = owner.fields.minus(UNOWNED);
  if (fields.isEmpty) result.delete(id);
  else result.set(id, { ...owner, fields });
  return result;
}

function ownerOf(
  write: ManagedFieldsWrite,
  operation: "Apply" | "Update",
): Omit<FieldOwner, "fields"> {
  const { manager, apiVersion, subresource, time } = write;
  return {
    manager: manager === "" ? "unknown" : manager,
    operation,
    apiVersion,
    subresource: subresource || undefined,
    time,
  };
}

function typed(write: ManagedFieldsWrite, value: UntypedObject): TypedObject {
  return { apiVersion: write.apiVersion, value: withEntries(value, undefined) };
}

/**
 * Records an update: the writer owns its previous fields and the changed ones.
 * A write without changes leaves all entries and times unchanged.
 */
function updateOwners(
  kind: ManagedKind,
  objects: { readonly live: UntypedObject; readonly next: UntypedObject },
  owners: FieldOwners,
  write: ManagedFieldsWrite,
): FieldOwners {
  const owner = ownerOf(write, "Update");
  const id = ownerId(owner);
  // The write is merged under an identity of its own, so that a change of a field
  // that the manager owns already still updates the time of its entry.
  const self = "current-operation";
  const merged = withoutUnowned(
    mergeUpdate(
      kind,
      { live: typed(write, objects.live), next: typed(write, objects.next) },
      owners,
      { id: self, owner },
    ),
    self,
  );
  const changed = merged.get(self);
  if (changed === undefined) return merged;
  const result = new Map(merged);
  result.delete(self);
  const before = result.get(id)?.fields ?? FieldSet.empty;
  result.set(id, { ...owner, fields: changed.fields.union(before) });
  return result;
}

/**
 * Updates `metadata.managedFields` after a create, update or patch, in place.
 *
 * An update adds no managed fields to an object without them: tracking starts
 * with its first apply. If the owners cannot be determined, the managed fields
 * are removed, or those before the write are kept (`keepsOwners`).
 *
 * @param kind The versions of the kind.
 * @param objects The object before the write (`undefined` for a create) and
 * after it, in the API version of the request.
 * @param write The write.
 */
export function updateManagedFields(
  kind: ManagedKind,
  objects: {
    readonly live: UntypedObject | undefined;
    readonly next: UntypedObject;
  },
  write: ManagedFieldsWrite,
): void {
  const { next } = objects;
  const live = objects.live ?? kind.empty(write.apiVersion);
  const owners = ownersFor(live, next, write);
  let entries: ManagedFieldsEntry[] | undefined;
  if (owners.size > 0 || objects.live === undefined) {
    try {
      const updated = updateOwners(kind, { live, next }, owners, write);
      entries = encodeOwners(mergeOldOwners(updated));
    } catch (error) {
      if (
        !(error instanceof TypedValueError || error instanceof StatusError)
      ) throw error;
      if (write.keepsOwners) entries = live.metadata.managedFields;
    }
  }
  if (entries === undefined) delete next.metadata.managedFields;
  else next.metadata.managedFields = entries;
}

/**
 * Merges an apply configuration into an object and updates its managed fields.
 * The result is neither defaulted nor validated.
 *
 * @param kind The versions of the kind.
 * @param objects The object before the apply, in the API version of the request
 * (`undefined` for a create), and the configuration.
 * @param write The write; `force` takes over fields of other managers.
 * @returns A new object, and whether it differs in more than its owners.
 * @throws {StatusError} If the configuration does not fit the schema or
 * conflicts.
 */
export function applyManaged(
  kind: ManagedKind,
  objects: {
    readonly live: UntypedObject | undefined;
    readonly applied: UntypedObject;
  },
  write: ManagedFieldsWrite & { readonly force: boolean },
): { readonly object: UntypedObject; readonly changed: boolean } {
  const { applied } = objects;
  const live = objects.live ?? kind.empty(write.apiVersion);
  if (entriesOf(applied) !== undefined && entriesOf(applied) !== null) {
    throw badRequest("metadata.managedFields must be nil");
  }
  const owners = ownersBeforeApply(kind, objects.live, write);
  checkTyped(kind, { object: applied, what: "patch", write });
  checkTyped(kind, {
    object: withEntries(live, undefined),
    what: "live",
    write,
  });
  const owner = ownerOf(write, "Apply");
  const id = ownerId(owner);
  const merged = mergeOrRefuse(kind, { live, applied }, owners, {
    ...write,
    id,
    owner,
  });
  const result = new Map(withoutUnowned(merged.owners, id));
  const own = result.get(id);
  if (own) {
    // Without changes the entry keeps its time.
    const time = merged.value === undefined ? owners.get(id)?.time : write.time;
    result.set(id, { ...own, time });
  }
  const value = (merged.value ?? live) as UntypedObject;
  const object = withEntries(value, encodeOwners(result));
  return {
    object: write.manager === KUBECTL
      ? withLastApplied(object, applied)
      : object,
    changed: merged.value !== undefined,
  };
}

/** Assigns fields without an owner to the manager `before-first-apply`. */
function ownersBeforeApply(
  kind: ManagedKind,
  live: UntypedObject | undefined,
  write: ManagedFieldsWrite,
): FieldOwners {
  if (live === undefined) return new Map();
  let owners: FieldOwners;
  try {
    owners = decodeOwners(entriesOf(live));
  } catch (error) {
    throw serverError(
      `failed to decode managed fields: ${(error as Error).message}`,
    );
  }
  if (owners.size > 0) return owners;
  try {
    return updateOwners(
      kind,
      { live: kind.empty(write.apiVersion), next: live },
      owners,
      { ...write, manager: BEFORE_FIRST_APPLY },
    );
  } catch (error) {
    if (!(error instanceof TypedValueError)) throw error;
    throw serverError(
      `failed to create manager for existing fields: failed to convert new object (${
        typedName(live, write)
      }) to smd typed: ${error.message}`,
    );
  }
}

/** Formats an API version for messages: with its group, even if empty. */
function versionText(apiVersion: string): string {
  return apiVersion.includes("/") ? apiVersion : `/${apiVersion}`;
}

function checkTyped(
  kind: ManagedKind,
  { object, what, write }: {
    readonly object: UntypedObject;
    readonly what: "patch" | "live";
    readonly write: ManagedFieldsWrite;
  },
): void {
  const schema = kind.schema(write.apiVersion);
  const allowDuplicates = what === "live";
  const problems = schema === undefined
    ? [{ path: "", message: `no corresponding type for ${write.apiVersion}` }]
    : typeProblems(schema, object, { allowDuplicates });
  if (problems.length === 0) return;
  throw serverError(
    `failed to create typed ${what} object (${typedName(object, write)}): ${
      typeProblemsText(problems)
    }`,
  );
}

/** Name, version and kind of an object in messages. */
function typedName(
  { metadata, kind }: UntypedObject,
  { apiVersion }: ManagedFieldsWrite,
): string {
  const { namespace = "", name = "" } = metadata ?? {};
  return `${namespace}/${name}; ${versionText(apiVersion)}, Kind=${kind}`;
}

function mergeOrRefuse(
  kind: ManagedKind,
  { live, applied }: {
    readonly live: UntypedObject;
    readonly applied: UntypedObject;
  },
  owners: FieldOwners,
  write: ManagedFieldsWrite & {
    readonly id: string;
    readonly owner: Omit<FieldOwner, "fields">;
    readonly force: boolean;
  },
): MergedApply {
  const merge = (force: boolean) =>
    mergeApply(
      kind,
      {
        live: typed(write, live),
        applied: { apiVersion: write.apiVersion, value: applied },
      },
      owners,
      { id: write.id, owner: write.owner, force },
    );
  try {
    return merge(write.force);
  } catch (error) {
    if (error instanceof TypedValueError) {
      throw serverError(error.message);
    }
    if (!(error instanceof FieldConflictError)) throw error;
    const schema = kind.schema(write.apiVersion);
    const conflicts = schema !== undefined && write.manager === KUBECTL
      ? conflictsBesideLastApplied(schema, live, error.conflicts)
      : error.conflicts;
    if (conflicts.length > 0) throw conflictError(conflicts);
    return merge(true);
  }
}
