/**
 * Operator without a kind of its own and without a controller: it says which pods a
 * cluster takes. What CEL can say is a policy, which the API server enforces also
 * while the operator is away; what needs other objects is a handler.
 */
import { deny, Operator, type OperatorOptions } from "@coracle/operator";
import { mutatingPolicy, validatingPolicy } from "@coracle/operator/crd";
import { Pod, ResourceQuota } from "@coracle/operator/kinds";

const REGISTRY = "registry.sample/";
const MESSAGE = `images must come from ${REGISTRY}`;

const ownRegistry = validatingPolicy(Pod, {
  name: "own-registry.gallery.coracle.dev",
  namespaceSelector: "team",
  validations: [{
    expression:
      `object.spec.containers.all(c, c.image.startsWith('${REGISTRY}'))`,
    message: MESSAGE,
  }],
});

const noToken = mutatingPolicy(Pod, {
  name: "no-token.gallery.coracle.dev",
  namespaceSelector: "team",
  operations: ["CREATE"],
  matchConditions: {
    unset: "!has(object.spec.automountServiceAccountToken)",
  },
  mutations: [{
    apply: "Object{spec: Object.spec{automountServiceAccountToken: false}}",
  }],
});

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator({
    probes: { port: 8080 },
    webhooks: { service: { name: "pod-policies" } },
    ...options,
  });
  // The handlers are for servers before Kubernetes 1.30 and 1.36.
  operator.admit(ownRegistry, {
    validate: ({ spec }) =>
      spec?.containers.every(({ image = "" }) => image.startsWith(REGISTRY))
        ? undefined
        : deny(MESSAGE, { field: "spec.containers" }),
  });
  operator.admit(noToken, {
    default: (pod) => {
      if (pod.spec) pod.spec.automountServiceAccountToken ??= false;
      return pod;
    },
  });
  operator.admit(Pod, {
    async validate(_pod, { list }) {
      const quotas = await list(ResourceQuota);
      return quotas.length > 0
        ? undefined
        : deny("a namespace of a team must have a ResourceQuota");
    },
  }, {
    failurePolicy: "Fail",
    operations: ["CREATE"],
    namespaceSelector: "team",
  });
  return operator;
}

if (import.meta.main) await operator().run();
