import type { UntypedObject } from "@coracle/operator/client";
import type { Pod } from "@coracle/operator/kinds";
import type { AdmissionPlugin, Attributes } from "./admission.ts";

/** Labels that pods copy from their node. */
const TOPOLOGY = [
  "topology.kubernetes.io/zone",
  "topology.kubernetes.io/region",
];

/** Topology labels of a node. */
export function topologyLabels(
  node: Pick<UntypedObject, "metadata"> | undefined,
): Readonly<Record<string, string>> {
  const { labels = {} } = node?.metadata ?? {};
  return Object.fromEntries(
    TOPOLOGY.flatMap((name) =>
      labels[name] === undefined ? [] : [[name, labels[name]]]
    ),
  );
}

function nodeNamed(
  { hooks }: Attributes,
  name: string,
): UntypedObject | undefined {
  return hooks.find({ group: "", plural: "nodes" }, { name });
}

/** Plug-in that copies the topology of a node to the pods that are bound to it. */
export const POD_TOPOLOGY_LABELS: AdmissionPlugin = {
  name: "PodTopologyLabels",
  operations: ["CREATE"],
  resources: ["pods", "pods/binding"],
  mutate(attributes): void {
    const { metadata, spec, target } = attributes.object as {
      readonly metadata: { labels?: Readonly<Record<string, string>> };
      readonly spec?: Pod["spec"];
      readonly target?: { readonly kind?: string; readonly name?: string };
    };
    const name = target?.kind === "Node" ? target.name : spec?.nodeName;
    const labels = name ? topologyLabels(nodeNamed(attributes, name)) : {};
    if (Object.keys(labels).length === 0) return;
    metadata.labels = { ...metadata.labels, ...labels };
  },
};
