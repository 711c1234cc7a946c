import type { ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { Client } from "../client/client.ts";
import { Lease } from "./lease_lock.ts";

/** Asks whether an account may do something. */
interface AccessReview extends KubernetesObject {
  spec: { resourceAttributes: Record<string, string> };
  status?: { allowed: boolean } | undefined;
}

const ACCESS_REVIEW: ResolvedKind<AccessReview> = {
  group: "authorization.k8s.io",
  version: "v1",
  kind: "SelfSubjectAccessReview",
  plural: "selfsubjectaccessreviews",
  scope: "Cluster",
};

/**
 * Looks whether Leases may be used.
 *
 * @param client The cluster.
 * @param options What must be allowed, where, and what for.
 * @throws {Error} If a right is missing, with the rule that gives it.
 */
export async function checkLeaseRights(
  client: Client,
  options: {
    readonly namespace: string;
    readonly verbs: readonly string[];
    /** What cannot be done otherwise, such as `elect a leader by Lease a/b`. */
    readonly purpose: string;
  },
): Promise<void> {
  const { namespace, verbs, purpose } = options;
  const { group, plural } = Lease;
  const missing: string[] = [];
  for (const verb of verbs) {
    const review = await client.create(ACCESS_REVIEW, {
      metadata: {},
      spec: {
        resourceAttributes: { verb, group, resource: plural, namespace },
      },
    });
    if (review.status?.allowed !== true) missing.push(verb);
  }
  if (missing.length === 0) return;
  throw new Error(
    `Cannot ${purpose}: the right is missing, so give the operator's account a Role in namespace ${namespace} with { apiGroups: ["${group}"], resources: ["${plural}"], verbs: ${
      JSON.stringify(verbs).replaceAll(",", ", ")
    } }: received no right to ${missing.join(", ")}`,
  );
}
