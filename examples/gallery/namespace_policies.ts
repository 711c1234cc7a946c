/**
 * Operator that gives each namespace of a team its quota, a network policy that
 * closes it, and the team's rights. A namespace joins by a label:
 *
 *     kubectl label namespace shop gallery.coracle.dev/team=payments
 */
import { Operator, type OperatorOptions } from "@coracle/operator";
import {
  Namespace,
  NetworkPolicy,
  ResourceQuota,
  RoleBinding,
} from "@coracle/operator/kinds";
import { kubernetesDependent, Workflow } from "@coracle/operator/workflows";

/** Label with the name of the team that a namespace belongs to. */
const TEAM = "gallery.coracle.dev/team";

function teamOf({ metadata }: Namespace): string | undefined {
  return metadata.labels?.[TEAM];
}

/** Metadata of the objects of a namespace, which are in it. */
const metadataOf = (namespace: Namespace) => ({
  name: "team-policy",
  namespace: namespace.metadata.name,
});

// Without the label the workflow deletes what it made.
const policies = new Workflow<Namespace>({
  reconcileWhen: ({ primary }) => teamOf(primary) !== undefined,
})
  .add(
    "quota",
    kubernetesDependent(ResourceQuota, {
      desired: (namespace) => ({
        metadata: metadataOf(namespace),
        spec: { hard: { pods: "50", "requests.cpu": "10" } },
      }),
    }),
  )
  .add(
    "network",
    kubernetesDependent(NetworkPolicy, {
      desired: (namespace) => ({
        metadata: metadataOf(namespace),
        spec: {
          podSelector: {},
          policyTypes: ["Ingress"],
          ingress: [{ from: [{ podSelector: {} }] }],
        },
      }),
    }),
  )
  .add(
    "rights",
    kubernetesDependent(RoleBinding, {
      desired: (namespace) => ({
        metadata: metadataOf(namespace),
        roleRef: {
          apiGroup: "rbac.authorization.k8s.io",
          kind: "ClusterRole",
          name: "edit",
        },
        subjects: [{
          apiGroup: "rbac.authorization.k8s.io",
          kind: "Group",
          name: `team:${teamOf(namespace)}`,
        }],
      }),
    }),
  );

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator(options);
  operator.register(Namespace, {
    reconcile(namespace, ctx) {
      ctx.log.debug("Policies", { team: teamOf(namespace) ?? "" });
    },
  }, {
    workflow: policies,
  });
  return operator;
}

if (import.meta.main) await operator().run();
