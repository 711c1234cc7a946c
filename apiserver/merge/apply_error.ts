import type { StatusCause } from "../../core/api/api_error.ts";
import { fieldPathText } from "./path_element.ts";
import { ownerId } from "./field_owner.ts";
import { ownerText } from "./owner_entries.ts";
import type { FieldConflict } from "./structured_merge.ts";

/** Reason of a refused apply. */
export type ApplyRefusal =
  /** The configuration contains managed fields. */
  | "managedFields"
  /** The object or the configuration does not fit the schema. */
  | "type"
  /** The apply would change fields of other managers. */
  | "conflict";

/** Error of a server-side apply that was refused. */
export class ApplyError extends Error {
  /** Reason of the refusal. */
  readonly refusal: ApplyRefusal;
  /** Conflicting fields and their managers, as in a Status. */
  readonly causes: readonly StatusCause[];

  /**
   * Creates the error.
   *
   * @param refusal Reason of the refusal.
   * @param message Message with the text of kube-apiserver.
   * @param causes Conflicting fields.
   */
  constructor(
    refusal: ApplyRefusal,
    message: string,
    causes: readonly StatusCause[] = [],
  ) {
    super(message);
    this.name = "ApplyError";
    this.refusal = refusal;
    this.causes = causes;
  }
}

/** Creates the error for conflicts, with the text and order of kube-apiserver. */
export function conflictError(conflicts: readonly FieldConflict[]): ApplyError {
  const sorted = conflicts
    .map((conflict) => ({ ...conflict, id: ownerId(conflict.owner) }))
    .sort((a, b) => a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
  const causes = sorted.map(({ owner, path }): StatusCause => ({
    reason: "FieldManagerConflict",
    message: `conflict with ${ownerText(owner)}`,
    field: fieldPathText(path),
  }));
  const [first] = causes;
  if (causes.length === 1 && first) {
    return new ApplyError(
      "conflict",
      `Apply failed with 1 conflict: ${first.message}: ${first.field}`,
      causes,
    );
  }
  const lines: string[] = [];
  let current: string | undefined;
  for (const { owner, path } of sorted) {
    const text = ownerText(owner);
    if (text !== current) lines.push(`conflicts with ${text}:`);
    current = text;
    lines.push(`- ${fieldPathText(path)}`);
  }
  return new ApplyError(
    "conflict",
    `Apply failed with ${causes.length} conflicts: ${lines.join("\n")}`,
    causes,
  );
}
