import type { StatusCause } from "../api/api_error.ts";
import { fieldPathText } from "./field_element.ts";
import { ownerId, ownerText } from "./field_owner.ts";
import type { FieldConflict } from "./structured_merge.ts";

/** Why an apply is refused. */
export type ApplyRefusal =
  /** The configuration names managed fields. */
  | "managedFields"
  /** The object or the configuration does not fit the schema. */
  | "type"
  /** Others own fields that it would change. */
  | "conflict";

/** An apply was refused; nothing is changed. */
export class ApplyError extends Error {
  /** Why. */
  readonly refusal: ApplyRefusal;
  /** Which fields conflict, and with whom, as a Status tells it. */
  readonly causes: readonly StatusCause[];

  /**
   * Makes the error.
   *
   * @param refusal Why.
   * @param message The same in kube-apiserver's words.
   * @param causes Which fields conflict.
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

/** The refusal of conflicts, in kube-apiserver's words and order. */
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
