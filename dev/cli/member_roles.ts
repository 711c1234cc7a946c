import { operatorAccess } from "../testing/operator_access.ts";
import { policyRules, type RbacManifest } from "../testing/rbac.ts";
import { operatorLabels } from "./operator_deployment.ts";
import type { OperatorManifestInput } from "./operator_manifests.ts";

/**
 * ClusterRole with the rights that controllers need in each of their `clusters`, to
 * be bound there to the account of its kubeconfig; none without such controllers.
 *
 * In the operator's own cluster it is bound to nobody.
 */
export function memberRoles(
  { name, namespace, operators, managed }: Pick<
    OperatorManifestInput,
    "name" | "namespace" | "operators" | "managed"
  >,
): readonly RbacManifest[] {
  const access = operators.flatMap(({ controllers, settings }) => {
    const there = controllers.flatMap((controller) =>
      controller.clusters === undefined
        ? []
        : [{ ...controller, clusters: undefined }]
    );
    // Leases, webhooks and reviews are those of the operator's own cluster.
    const { namespaces } = settings;
    return operatorAccess({ controllers: there, settings: { namespaces } }, {
      namespace,
      managed,
    });
  });
  if (access.length === 0) return [];
  return [{
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: {
      name: memberRoleName(name),
      labels: operatorLabels(name),
    } as RbacManifest["metadata"],
    rules: policyRules(access),
  }];
}

/** Name of the ClusterRole for the clusters of an operator. */
export function memberRoleName(name: string): string {
  return `${name}-members`;
}
