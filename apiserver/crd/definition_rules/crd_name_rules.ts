import type { StatusCause } from "../../../core/api/api_error.ts";
import type { CrdNames } from "../../../core/crd/crd_object.ts";
import { label1035Problems } from "../../validation/names.ts";
import { fieldError } from "../../status.ts";
import { childPath, keyPath } from "../../validation/field_path.ts";

/** Validates the names in the spec of a CRD; returns the violations. */
export function nameCauses(
  names: Partial<CrdNames>,
): StatusCause[] {
  const base = "spec.names";
  const causes: StatusCause[] = [];
  for (const name of ["plural", "singular", "kind", "listKind"] as const) {
    if (!names[name]) causes.push(fieldError.required(childPath(base, name)));
  }
  for (const name of ["plural", "singular"] as const) {
    const value = names[name];
    if (value) causes.push(...labelCauses(childPath(base, name), value));
  }
  for (const name of ["kind", "listKind"] as const) {
    const value = names[name];
    const problems = value ? label1035Problems(value.toLowerCase()) : [];
    if (problems.length === 0) continue;
    causes.push(fieldError.invalid(
      childPath(base, name),
      value,
      `may have mixed case, but should otherwise match: ${problems.join(",")}`,
    ));
  }
  for (const list of ["shortNames", "categories"] as const) {
    for (const [index, value] of (names[list] ?? []).entries()) {
      const field = keyPath(childPath(base, list), index);
      causes.push(...labelCauses(field, value));
    }
  }
  if (names.kind && names.kind === names.listKind) {
    const why = "kind and listKind may not be the same";
    const field = childPath(base, "listKind");
    causes.push(fieldError.invalid(field, names.listKind, why));
  }
  return causes;
}

function labelCauses(field: string, value: string): StatusCause[] {
  const problems = label1035Problems(value);
  return problems.length === 0
    ? []
    : [fieldError.invalid(field, value, problems.join(","))];
}
