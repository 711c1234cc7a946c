import type { CrdCondition } from "@coracle/operator/internal";
import { requestUrlProblem, webhookUrl } from "../validation/request_url.ts";
import { goQuote } from "../validation/go_value.ts";

const ANNOTATION = "api-approved.kubernetes.io";
const SEE = "see https://github.com/kubernetes/enhancements/pull/1111";

/** What the annotation of a CRD in a group of Kubernetes says. */
export function approvalState(
  note: string,
): "missing" | "bypassed" | "approved" | "invalid" {
  if (note === "") return "missing";
  if (note.startsWith("unapproved")) return "bypassed";
  if (requestUrlProblem(note) !== undefined) return "invalid";
  const { scheme, host } = webhookUrl(note);
  return scheme && host ? "approved" : "invalid";
}

/** Condition about the approval of a CRD; only in the groups of Kubernetes. */
export function approvalCondition(
  { spec, metadata }: {
    readonly spec: { readonly group: string };
    readonly metadata: {
      readonly annotations?: Readonly<Record<string, string>> | undefined;
    };
  },
): Omit<CrdCondition, "lastTransitionTime"> | undefined {
  if (!/(?:^|\.)(?:k8s|kubernetes)\.io$/.test(spec.group)) return undefined;
  const note = metadata.annotations?.[ANNOTATION] ?? "";
  const demand =
    `protected groups must have approval annotation "${ANNOTATION}"`;
  const [status, reason, message] = {
    missing: ["False", "MissingAnnotation", `${demand}, ${SEE}`],
    bypassed: [
      "False",
      "UnapprovedAnnotation",
      `not approved: ${goQuote(note)}`,
    ],
    approved: ["True", "ApprovedAnnotation", `approved in ${note}`],
    invalid: [
      "False",
      "InvalidAnnotation",
      `${demand} with either a URL or a reason starting with "unapproved", ${SEE}`,
    ],
  }[approvalState(note)] as [CrdCondition["status"], string, string];
  return {
    type: "KubernetesAPIApprovalPolicyConformant",
    status,
    reason,
    message,
  };
}
