import type { UntypedObject } from "@coracle/operator/client";
import { isJsonObject, type JsonObject } from "@coracle/operator/internal";
import type { Schema } from "./schema.ts";
import type { FieldConflict } from "./structured_merge.ts";
import { compareTyped } from "./typed_compare.ts";
import { fieldsOf } from "./typed_fields.ts";
import { typeProblems } from "./typed_value.ts";
import { readJson, writeJson } from "../exact_json.ts";

/** Annotation with the last configuration of client-side `kubectl apply`. */
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/** Maximum total size of annotations, in bytes of UTF-8. */
const MAX_ANNOTATIONS_BYTES = 256 * 1024;

/**
 * Removes conflicts about fields that client-side apply set, which a migration to
 * server-side apply takes over.
 */
export function conflictsBesideLastApplied(
  schema: Schema,
  live: UntypedObject,
  conflicts: readonly FieldConflict[],
): readonly FieldConflict[] {
  const last = parseObject(live.metadata.annotations?.[LAST_APPLIED]);
  if (
    last === undefined || last.apiVersion !== live.apiVersion ||
    typeProblems(schema, last).length > 0
  ) return conflicts;
  const { added, modified, removed } = compareTyped(schema, last, live);
  const ours = fieldsOf(schema, last)
    .minus(added).minus(modified).minus(removed);
  return conflicts.filter(({ path }) => !ours.has(path));
}

function parseObject(text: string | undefined): JsonObject | undefined {
  if (!text) return undefined;
  try {
    const value = readJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Updates the annotation of client-side apply, if the object has it. */
export function withLastApplied(
  object: UntypedObject,
  applied: UntypedObject,
): UntypedObject {
  const { annotations } = object.metadata;
  if (!annotations?.[LAST_APPLIED]) return object;
  const { [LAST_APPLIED]: _, ...others } = applied.metadata.annotations ?? {};
  const { annotations: __, ...metadata } = applied.metadata;
  const text = writeJson({
    ...applied,
    metadata: Object.keys(others).length > 0
      ? { ...metadata, annotations: others }
      : metadata,
  });
  const next = { ...annotations, [LAST_APPLIED]: `${text}\n` };
  if (annotationsSize(next) > MAX_ANNOTATIONS_BYTES) {
    const { [LAST_APPLIED]: _, ...rest } = annotations;
    return { ...object, metadata: { ...object.metadata, annotations: rest } };
  }
  return { ...object, metadata: { ...object.metadata, annotations: next } };
}

function annotationsSize(
  annotations: Readonly<Record<string, string>>,
): number {
  const encoder = new TextEncoder();
  return Object.entries(annotations).reduce(
    (size, [name, value]) =>
      size + encoder.encode(name).length + encoder.encode(value).length,
    0,
  );
}
