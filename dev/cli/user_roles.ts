import type { CrdManifest } from "@coracle/operator/crd";
import type { RbacManifest } from "../testing/rbac.ts";

const RBAC_GROUP = "rbac.authorization.k8s.io";
const READS = ["get", "list", "watch"];
const WRITES = ["create", "delete", "patch", "update"];

/**
 * ClusterRoles for the users of an operator's kinds. They are aggregated into the
 * roles `view`, `edit` and `admin` of Kubernetes: who may see or change the usual
 * objects of a namespace may do the same with those of the operator.
 */
export function userRoles(
  definitions: readonly CrdManifest[],
  { name, labels }: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
  },
): readonly RbacManifest[] {
  if (definitions.length === 0) return [];
  const groups = Map.groupBy(definitions, ({ spec }) => spec.group);
  const role = (
    suffix: string,
    verbs: readonly string[],
    into: readonly string[],
  ) => ({
    apiVersion: `${RBAC_GROUP}/v1`,
    kind: "ClusterRole",
    metadata: {
      name: `${name}-${suffix}`,
      labels: {
        ...labels,
        ...Object.fromEntries(
          into.map((one) => [`${RBAC_GROUP}/aggregate-to-${one}`, "true"]),
        ),
      },
    },
    rules: [...groups].map(([group, all]) => ({
      apiGroups: [group],
      resources: all.map(({ spec }) => spec.names.plural),
      verbs: [...verbs],
    })),
  });
  return [
    role("viewer", READS, ["view"]),
    role("editor", [...READS, ...WRITES].toSorted(), ["edit", "admin"]),
  ];
}
