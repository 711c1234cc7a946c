import type { StatusCause } from "../../../core/api/api_error.ts";
import type { UntypedObject } from "../../../core/api/object.ts";
import { fieldError } from "../../status.ts";

const ANNOTATION = "api-approved.kubernetes.io";

/** Checks the approval annotation that CRDs in protected Kubernetes groups need; returns the violations. */
export function approvalCauses(
  object: UntypedObject,
  live: UntypedObject | undefined,
): StatusCause[] {
  const { group = "" } = (object.spec ?? {}) as { readonly group?: string };
  if (!/(?:^|\.)(?:k8s|kubernetes)\.io$/.test(group)) return [];
  const value = object.metadata.annotations?.[ANNOTATION] ?? "";
  const before = live?.metadata.annotations?.[ANNOTATION] ?? "";
  const state = approvalState(value);
  if (live !== undefined && approvalState(before) === state) return [];
  const field = `metadata.annotations[${ANNOTATION}]`;
  if (state === "missing") {
    return [fieldError.required(
      field,
      `protected groups must have approval annotation "${ANNOTATION}", see https://github.com/kubernetes/enhancements/pull/1111`,
    )];
  }
  return state === "invalid"
    ? [fieldError.invalid(
      field,
      value,
      `protected groups must have approval annotation "${ANNOTATION}" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111`,
    )]
    : [];
}

function approvalState(
  value: string,
): "missing" | "bypassed" | "approved" | "invalid" {
  if (value === "") return "missing";
  if (value.startsWith("unapproved")) return "bypassed";
  return URL.canParse(value) ? "approved" : "invalid";
}
