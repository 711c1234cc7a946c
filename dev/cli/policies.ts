/**
 * Admission policies that files export.
 *
 * @module
 */
import type { AdmissionRule } from "@coracle/operator/core";
import type { AdmissionPolicy } from "@coracle/operator/crd";
import type { Terminal } from "./command.ts";

/** Policy or binding, as far as the tools read it. */
interface NamedObject {
  readonly kind?: string | undefined;
  readonly metadata: { readonly name: string };
}

/** A policy of any type, with its binding; plain data. */
export interface ExportedPolicy extends Pick<AdmissionPolicy, "since"> {
  readonly policy: NamedObject;
  readonly binding: NamedObject;
}

/** Whether an export is what `validatingPolicy` or `mutatingPolicy` returned. */
export function isPolicy(value: unknown): value is ExportedPolicy {
  if (typeof value !== "object" || value === null) return false;
  const { since, policy, binding } = value as Partial<ExportedPolicy>;
  return typeof since === "string" &&
    /AdmissionPolicy$/.test(policy?.kind ?? "") &&
    /AdmissionPolicyBinding$/.test(binding?.kind ?? "");
}

/** Objects of policies, in the order to apply them. */
export function policyObjects(
  policies: readonly ExportedPolicy[],
): readonly NamedObject[] {
  return policies.flatMap(({ policy, binding }) => [policy, binding]);
}

/** A policy as plain data, which can be passed to another process. */
export function plainPolicy(
  { since, policy, binding }: ExportedPolicy,
): ExportedPolicy {
  return { since, policy, binding };
}

/** Says from which version of Kubernetes on the policies work. */
export function sayPolicies(
  { say }: Terminal,
  policies: readonly ExportedPolicy[],
): void {
  for (const { since, policy } of policies) {
    say(
      `${policy.kind} ${policy.metadata.name} works from Kubernetes ${since} on.\n`,
    );
  }
}

/** Flag that says where each rule is enforced. */
export const EXPLAIN_FLAG = {
  explain: "say where each rule for objects is enforced, and why there",
} as const;

/** Says where each rule is enforced, and why there. */
export function sayRules(
  { say }: Terminal,
  rules: readonly AdmissionRule[],
): void {
  const lines = rules.map(({ kind, rule, place, why }) =>
    `${kind}, ${rule}\n  ${place}: ${why}\n`
  );
  say([...new Set(lines)].join("") || "There are no rules for objects.\n");
}
