import type { StatusCause } from "@coracle/operator/internal";
import { fieldPathText } from "./path_element.ts";
import { ownerId } from "./field_owner.ts";
import { ownerText } from "./owner_entries.ts";
import type { FieldConflict } from "./structured_merge.ts";
import { StatusError } from "../status.ts";

/** Creates the error for conflicts, with the text and order of kube-apiserver. */
export function conflictError(
  conflicts: readonly FieldConflict[],
): StatusError {
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
    return refused(
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
  return refused(
    `Apply failed with ${causes.length} conflicts: ${lines.join("\n")}`,
    causes,
  );
}

function refused(message: string, causes: readonly StatusCause[]): StatusError {
  return new StatusError({
    code: 409,
    reason: "Conflict",
    message,
    details: { causes },
  });
}
