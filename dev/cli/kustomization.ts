import { imageParts } from "./helm_values.ts";
import type { ManifestFile, ToYaml } from "./manifest_output.ts";
import { memberRoles } from "./member_roles.ts";
import {
  metricsPorts,
  replicasOf,
  sourcePorts,
  webhookPorts,
} from "./operator_deployment.ts";
import {
  grafanaDashboard,
  prometheusRule,
} from "./monitoring/monitoring_manifests.ts";
import {
  type OperatorManifestInput,
  operatorManifests,
} from "./operator_manifests.ts";
import { policyObjects } from "./policies.ts";
import {
  disruptionBudget,
  metricsService,
  networkPolicy,
  serviceMonitor,
} from "./optional_manifests.ts";

/** Files of a kustomization that deploys operators, with components to add. */
export function kustomization(
  input: OperatorManifestInput,
  toYaml: ToYaml,
): readonly ManifestFile[] {
  const { name, namespace, image, operators } = input;
  const found = operatorManifests(input);
  const place = { name, namespace, ports: metricsPorts(operators) };
  const called = [...webhookPorts(operators), ...sourcePorts(operators)];
  const bases: Readonly<Record<string, readonly unknown[]>> = {
    "namespace.yaml": [found.namespace],
    ...found.definitions.length > 0 && { "crds.yaml": found.definitions },
    "rbac.yaml": [...found.rbac, ...found.userRoles, ...memberRoles(input)],
    ...found.webhooks.length > 0 && { "webhooks.yaml": found.webhooks },
    ...found.policies.length > 0 && {
      "policies.yaml": policyObjects(found.policies),
    },
    ...found.sources.length > 0 && { "sources.yaml": found.sources },
    "deployment.yaml": [found.deployment],
  };
  const components: Readonly<Record<string, readonly unknown[]>> = {
    ...place.ports.length > 0 && {
      "service-monitor": [metricsService(place), serviceMonitor(place)],
      "prometheus-rule": [prometheusRule(place)],
      "grafana-dashboard": [grafanaDashboard(place)],
    },
    ...found.webhooks.length === 0 && {
      "disruption-budget": [disruptionBudget(place)],
    },
    "network-policy": [networkPolicy({ ...place, called })],
  };
  const file = (path: string, objects: readonly unknown[]): ManifestFile => ({
    path,
    text: objects.map(toYaml).join("---\n"),
  });
  const { repository, tag, digest } = imageParts(image);
  const root = toYaml({
    apiVersion: "kustomize.config.k8s.io/v1beta1",
    kind: "Kustomization",
    resources: Object.keys(bases),
    images: [{
      name: repository,
      ...digest === "" ? { newTag: tag || "latest" } : { digest },
    }],
    replicas: [{ name, count: replicasOf(operators) }],
  });
  const more = Object.keys(components).map((name) =>
    `#   - components/${name}\n`
  ).join("");
  return [
    {
      path: "kustomization.yaml",
      text: `${root}# components:\n${more}`,
      kept: true,
    },
    ...Object.entries(bases).map(([path, objects]) => file(path, objects)),
    ...Object.entries(components).flatMap(([name, objects]) => [
      file(`components/${name}/kustomization.yaml`, [{
        apiVersion: "kustomize.config.k8s.io/v1alpha1",
        kind: "Component",
        resources: [`${name}.yaml`],
      }]),
      file(`components/${name}/${name}.yaml`, objects),
    ]),
  ];
}
