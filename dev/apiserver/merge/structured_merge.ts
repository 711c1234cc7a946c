import type { FieldPath } from "./path_element.ts";
import type { FieldOwner, FieldOwners } from "./field_owner.ts";
import { FieldSet } from "./field_set.ts";
import { jsonEquals } from "@coracle/operator/internal";
import type { Schema } from "./schema.ts";
import { compareTyped, type Comparison } from "./typed_compare.ts";
import { fieldsOf, fieldsUnderSchema, withoutFields } from "./typed_fields.ts";
import { mergeTyped } from "./typed_merge.ts";
import { typeProblems, typeProblemsText } from "./typed_value.ts";

/** Object in an API version, valid by its schema. */
export interface TypedObject {
  /** API version of the value. */
  readonly apiVersion: string;
  /** Object as JSON value. */
  readonly value: unknown;
}

/** Versions of a kind: schemas and conversion. */
export interface VersionedKind {
  /** Returns the schema of a version; `undefined` if it does not exist. */
  schema(apiVersion: string): Schema | undefined;
  /** Converts an object to another version without modifying it. */
  convert(object: TypedObject, apiVersion: string): unknown;
  /** Returns the fields that the request cannot set, such as the status. */
  resetFields?(apiVersion: string): FieldSet | undefined;
}

/** Write with its owner. */
export interface OwnedWrite {
  /** ID of the owner. */
  readonly id: string;
  /** Owner, without its fields. */
  readonly owner: Omit<FieldOwner, "fields">;
}

/** Field of another manager that an apply would change. */
export interface FieldConflict {
  /** Owner of the field. */
  readonly owner: FieldOwner;
  /** Path of the field. */
  readonly path: FieldPath;
}

/** Error of an apply that conflicts with other managers. */
export class FieldConflictError extends Error {
  /** Conflicting fields and their owners. */
  readonly conflicts: readonly FieldConflict[];

  /**
   * Creates the error.
   *
   * @param conflicts Conflicting fields and their owners; at least one.
   */
  constructor(conflicts: readonly FieldConflict[]) {
    super(`Cannot apply: other managers own ${conflicts.length} of the fields`);
    this.name = "FieldConflictError";
    this.conflicts = conflicts;
  }
}

/** Error of an object that does not match the schema of a version. */
export class TypedValueError extends Error {
  override readonly name = "TypedValueError";
}

/** Converts and checks an object; `undefined` if the version does not exist. */
function convertTo(
  kind: VersionedKind,
  object: TypedObject,
  apiVersion: string,
): { schema: Schema; object: TypedObject } | undefined {
  const schema = kind.schema(apiVersion);
  if (schema === undefined) return undefined;
  if (object.apiVersion === apiVersion) return { schema, object };
  const value = kind.convert(object, apiVersion);
  const problems = typeProblems(schema, value);
  if (problems.length > 0) {
    throw new TypedValueError(typeProblemsText(problems));
  }
  return { schema, object: { apiVersion, value } };
}

/** Checks an object that is stored or updated; its items may repeat. */
function checkMatches(kind: VersionedKind, { apiVersion, value }: TypedObject) {
  const schema = kind.schema(apiVersion);
  if (schema === undefined) return;
  const problems = typeProblems(schema, value, { allowDuplicates: true });
  if (problems.length === 0) return;
  throw new TypedValueError(typeProblemsText(problems));
}

/**
 * Converts an object like {@linkcode convertTo}, and names the purpose in the
 * error.
 */
function convertFor(
  purpose: string,
  kind: VersionedKind,
  { object, apiVersion }: { object: TypedObject; apiVersion: string },
): ReturnType<typeof convertTo> {
  try {
    return convertTo(kind, object, apiVersion);
  } catch (error) {
    if (!(error instanceof TypedValueError)) throw error;
    throw new TypedValueError(`${purpose}: ${error.message}`);
  }
}

function withoutReset(
  kind: VersionedKind,
  apiVersion: string,
  fields: FieldSet,
): FieldSet {
  const reset = kind.resetFields?.(apiVersion);
  return reset === undefined ? fields : fields.minusWhole(reset);
}

function comparisonOf(
  kind: VersionedKind,
  schema: Schema,
  { live, next }: { live: TypedObject; next: TypedObject },
): Comparison {
  const { added, modified, removed } = compareTyped(
    schema,
    live.value,
    next.value,
  );
  const keep = (fields: FieldSet) =>
    withoutReset(kind, next.apiVersion, fields);
  return {
    added: keep(added),
    modified: keep(modified),
    removed: keep(removed),
  };
}

/** Adapts owners to the current schemas; drops those of removed versions. */
function ownersUnderSchemas(
  kind: VersionedKind,
  owners: FieldOwners,
): Map<string, FieldOwner> {
  const result = new Map<string, FieldOwner>();
  for (const [id, owner] of owners) {
    const schema = kind.schema(owner.apiVersion);
    if (schema === undefined) continue;
    const fields = fieldsUnderSchema(schema, owner.fields);
    result.set(id, fields === owner.fields ? owner : { ...owner, fields });
  }
  return result;
}

/**
 * Removes the fields that a write changed or removed, from all other owners.
 *
 * @throws {FieldConflictError} If the write changed a field of another owner,
 * unless forced.
 */
function takeFields(
  kind: VersionedKind,
  owners: ReadonlyMap<string, FieldOwner>,
  write: {
    readonly self: string;
    readonly live: TypedObject;
    readonly next: TypedObject;
    readonly force: boolean;
  },
): { owners: Map<string, FieldOwner>; comparison: Comparison } {
  const { live, next } = write;
  const comparisons = new Map<string, Comparison | undefined>();
  const compareIn = (apiVersion: string): Comparison | undefined => {
    if (comparisons.has(apiVersion)) return comparisons.get(apiVersion);
    const before = convertFor("failed to convert old object", kind, {
      object: live,
      apiVersion,
    });
    const after = convertFor("failed to convert new object", kind, {
      object: next,
      apiVersion,
    });
    const comparison = before && after &&
      comparisonOf(kind, before.schema, {
        live: before.object,
        next: after.object,
      });
    comparisons.set(apiVersion, comparison);
    return comparison;
  };

  const own = compareIn(next.apiVersion);
  if (own === undefined) {
    throw new TypedValueError(`no corresponding type for ${next.apiVersion}`);
  }
  const result = new Map<string, FieldOwner>();
  const conflicts: FieldConflict[] = [];
  for (const [id, owner] of owners) {
    if (id === write.self) {
      if (!owner.fields.isEmpty) result.set(id, owner);
      continue;
    }
    const comparison = compareIn(owner.apiVersion);
    if (comparison === undefined) continue;
    const changed = comparison.modified.union(comparison.added);
    const taken = owner.fields.intersection(changed);
    for (const path of taken.paths()) conflicts.push({ owner, path });
    const fields = owner.fields.minus(taken).minus(comparison.removed);
    if (!fields.isEmpty) result.set(id, { ...owner, fields });
  }
  if (conflicts.length > 0 && !write.force) {
    throw new FieldConflictError(conflicts);
  }
  return { owners: result, comparison: own };
}

/**
 * Computes the owners after a create, update or patch: the writer owns its
 * previous fields and those that it added or changed; other owners lose changed
 * and removed fields.
 *
 * @throws {TypedValueError} If an object does not match the schema of its version
 * or of an owner's.
 */
export function mergeUpdate(
  kind: VersionedKind,
  objects: { readonly live: TypedObject; readonly next: TypedObject },
  owners: FieldOwners,
  write: OwnedWrite,
): FieldOwners {
  checkMatches(kind, objects.next);
  checkMatches(kind, objects.live);
  const taken = takeFields(kind, ownersUnderSchemas(kind, owners), {
    self: write.id,
    ...objects,
    force: true,
  });
  const { added, modified, removed } = taken.comparison;
  const before = taken.owners.get(write.id)?.fields ?? FieldSet.empty;
  const fields = withoutReset(
    kind,
    write.owner.apiVersion,
    before.minus(removed).union(modified).union(added),
  );
  if (fields.isEmpty) taken.owners.delete(write.id);
  else taken.owners.set(write.id, { ...write.owner, fields });
  return taken.owners;
}

/** Result of an apply. */
export interface MergedApply {
  /** New object; `undefined` if it is unchanged. */
  readonly value: unknown;
  /** Owners after the apply. */
  readonly owners: FieldOwners;
}

/**
 * Merges an apply configuration into a live object. The manager owns exactly
 * the fields of the configuration; previously applied fields without an owner
 * are removed.
 *
 * @throws {FieldConflictError} If the apply would change fields of other
 * managers, unless forced.
 * @throws {TypedValueError} If an object does not match the schema of a
 * version.
 */
export function mergeApply(
  kind: VersionedKind,
  objects: { readonly live: TypedObject; readonly applied: TypedObject },
  owners: FieldOwners,
  write: OwnedWrite & { readonly force: boolean },
): MergedApply {
  const { live, applied } = objects;
  const { apiVersion } = applied;
  const schema = kind.schema(apiVersion);
  if (schema === undefined) {
    throw new TypedValueError(`no corresponding type for ${apiVersion}`);
  }
  const current = ownersUnderSchemas(kind, owners);
  const last = current.get(write.id);
  const fields = withoutReset(
    kind,
    apiVersion,
    fieldsOf(schema, applied.value),
  );
  current.set(write.id, { ...write.owner, fields });
  const merged: TypedObject = {
    apiVersion,
    value: mergeTyped(schema, live.value, applied.value),
  };
  const next = removeAbandoned(kind, merged, { owners: current, last });
  const taken = takeFields(kind, current, {
    self: write.id,
    live,
    next,
    force: write.force,
  });
  return {
    value: jsonEquals(live.value, next.value) ? undefined : next.value,
    owners: taken.owners,
  };
}

/** Removes the fields of the previous apply that have no owner left. */
function removeAbandoned(
  kind: VersionedKind,
  merged: TypedObject,
  { owners, last }: {
    owners: ReadonlyMap<string, FieldOwner>;
    last: FieldOwner | undefined;
  },
): TypedObject {
  if (last === undefined || last.fields.isEmpty) return merged;
  try {
    const before = convertFor(
      "failed to convert merged object to last applied version",
      kind,
      { object: merged, apiVersion: last.apiVersion },
    );
    if (before === undefined) return merged;
    const { schema, object } = before;
    const lastFields = last.fields.withNamedFields(schema);
    let pruned: TypedObject = {
      apiVersion: last.apiVersion,
      value: withoutFields(schema, object.value, lastFields),
    };
    pruned = addBackOwned(kind, { merged: object, pruned }, owners);
    pruned = addBackNeverOwned(kind, { merged: object, pruned }, {
      schema,
      lastFields,
      apiVersion: last.apiVersion,
    });
    const back = convertTo(kind, pruned, merged.apiVersion);
    return back?.object ?? merged;
  } catch (error) {
    if (!(error instanceof TypedValueError)) throw error;
    throw new TypedValueError(`failed to prune fields: ${error.message}`);
  }
}

interface Pruning {
  readonly merged: TypedObject;
  readonly pruned: TypedObject;
}

/** Restores pruned fields that have an owner. */
function addBackOwned(
  kind: VersionedKind,
  { merged, pruned }: Pruning,
  owners: ReadonlyMap<string, FieldOwner>,
): TypedObject {
  const owned = new Map<string, FieldSet>();
  for (const { apiVersion, fields } of owners.values()) {
    const others = owned.get(apiVersion) ?? FieldSet.empty;
    owned.set(apiVersion, others.union(fields));
  }
  // The current version first: conversions to others may need its fields.
  const versions = [...owned.keys()].sort((a, b) =>
    Number(b === merged.apiVersion) - Number(a === merged.apiVersion)
  );
  let result = pruned;
  for (const apiVersion of versions) {
    const convert = (what: string, object: TypedObject) =>
      convertFor(
        `failed add back owned items: failed to convert ${what} object at version ${apiVersion}`,
        kind,
        { object, apiVersion },
      );
    const full = convert("merged", merged);
    const part = convert("pruned", result);
    if (full === undefined || part === undefined) continue;
    const { schema } = full;
    const fields = owned.get(apiVersion) ?? FieldSet.empty;
    const all = fieldsOf(schema, full.object.value).withNamedFields(schema);
    const left = fieldsOf(schema, part.object.value).withNamedFields(schema);
    const removed = all.minus(left.union(fields.withNamedFields(schema)));
    const value = withoutFields(schema, full.object.value, removed);
    result = { apiVersion, value };
  }
  return result;
}

/** Restores fields that were pruned together with a parent but that the manager never owned. */
function addBackNeverOwned(
  kind: VersionedKind,
  { merged, pruned }: Pruning,
  last: {
    readonly schema: Schema;
    readonly lastFields: FieldSet;
    readonly apiVersion: string;
  },
): TypedObject {
  const { schema, lastFields, apiVersion } = last;
  const part = convertFor(
    "failed add back dangling items: failed to convert pruned object to last applied version",
    kind,
    { object: pruned, apiVersion },
  );
  if (part === undefined) return merged;
  const all = fieldsOf(schema, merged.value).withNamedFields(schema);
  const left = fieldsOf(schema, part.object.value).withNamedFields(schema);
  const removed = all.minus(left).intersection(lastFields);
  return { apiVersion, value: withoutFields(schema, merged.value, removed) };
}
