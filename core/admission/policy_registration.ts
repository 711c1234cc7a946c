/**
 * Policies of an operator in the API server.
 *
 * @module
 */
import { ApiError, ifFound } from "../api/api_error.ts";
import { builtIn, type ResolvedKind } from "../api/kind.ts";
import type { Client } from "../client/client.ts";
import type { AdmissionPolicy, PolicyObject } from "../crd/policies.ts";

/** Who applies policies. */
interface PolicyWriter {
  readonly client: Client;
  readonly fieldManager: string;
  readonly signal: AbortSignal;
}

/**
 * Applies a policy and its binding.
 *
 * @returns Whether the API server has its type; otherwise nothing is applied.
 */
export async function applyPolicy(
  { policy, binding }: AdmissionPolicy,
  { client, ...options }: PolicyWriter,
): Promise<boolean> {
  try {
    for (const object of [policy, binding]) {
      const { metadata, spec } = object;
      // The server answers an apply that changes nothing without a write.
      await client.apply(kindOf(object), {
        metadata: { ...metadata, labels: LABELS },
        spec,
      }, { ...options, force: true });
    }
    return true;
  } catch (error) {
    if (ApiError.is(error) && error.isNotFound) return false;
    throw error;
  }
}

/** Deletes a policy and its binding, as far as they exist. */
export async function deletePolicy(
  { policy, binding }: AdmissionPolicy,
  client: Client,
): Promise<void> {
  for (const object of [binding, policy]) {
    const { name } = object.metadata;
    await ifFound(client.delete(kindOf(object), { name }));
  }
}

const LABELS = { "app.kubernetes.io/managed-by": "coracle" } as const;

function kindOf({ kind = "" }: PolicyObject): ResolvedKind<PolicyObject> {
  return {
    ...builtIn<PolicyObject>(kind, "Cluster", "admissionregistration.k8s.io"),
    plural: `${kind.toLowerCase()}s`.replace(/ys$/, "ies"),
  };
}
