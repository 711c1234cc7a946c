import { operatorLabels, webhookPorts } from "./operator_deployment.ts";
import type { OperatorDescription } from "./operator_description.ts";
import { disruptionBudget } from "./optional_manifests.ts";

/** Kinds of the configurations of webhooks. */
const CONFIGURATIONS = [
  "MutatingWebhookConfiguration",
  "ValidatingWebhookConfiguration",
];

/**
 * Objects that the webhooks of operators need: a Service in front of the pods, and
 * the configurations. These are empty: the operator fills them in as soon as it can
 * be reached, so that no request fails before that, and they go with the other
 * manifests when the operator is uninstalled.
 */
export function webhookManifests(
  { name, namespace, operators }: {
    readonly name: string;
    readonly namespace: string;
    readonly operators: readonly OperatorDescription[];
  },
): readonly unknown[] {
  const labels = operatorLabels(name);
  const ports = webhookPorts(operators);
  const objects = operators.flatMap(({ settings: { webhooks } }) => {
    if (webhooks === undefined || "serve" in webhooks) return [];
    const { service, port } = webhooks;
    if (service === undefined) return [];
    const place = service.namespace ?? namespace;
    const configured = webhooks.name ?? `${service.name}.${place}`;
    const target = ports.find(({ containerPort }) => containerPort === port);
    return [
      {
        apiVersion: "v1",
        kind: "Service",
        metadata: { name: service.name, namespace: place, labels },
        spec: {
          selector: labels,
          ports: [{
            name: "https",
            port: service.port ?? 443,
            targetPort: target?.name,
          }],
        },
      },
      ...CONFIGURATIONS.map((kind) => ({
        apiVersion: "admissionregistration.k8s.io/v1",
        kind,
        metadata: { name: configured, labels },
      })),
    ];
  });
  return objects.length === 0
    ? []
    : [...objects, disruptionBudget({ name, namespace, ports: [] })];
}
