import { ApiError } from "../../core/api/api_error.ts";
import type { ObjectMeta } from "../../core/api/object.ts";

/** Metadata fields that only the server sets. */
const SERVER_METADATA: ReadonlySet<string> = new Set([
  "creationTimestamp",
  "deletionTimestamp",
  "generation",
  "managedFields",
  "resourceVersion",
  "selfLink",
  "uid",
]);

/** Metadata without the fields that only the server sets, for an apply. */
export function appliedMetadata<M extends Partial<ObjectMeta>>(metadata: M): M {
  return Object.fromEntries(
    Object.entries(metadata).filter(([name, value]) =>
      value !== undefined && !SERVER_METADATA.has(name)
    ),
  ) as M;
}

/** Pattern of the messages of servers that refuse to change an immutable field. */
const IMMUTABLE =
  /immutable|(?:may not|cannot) (?:be )?change|may not add or remove|forbidden: updates to/i;

/** Whether the server refused to change an immutable field. */
export function isImmutable(error: unknown): boolean {
  return ApiError.is(error) && (error.isInvalid || error.isConflict) &&
    IMMUTABLE.test(error.message);
}
