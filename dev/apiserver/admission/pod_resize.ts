import { Quantity, type UntypedObject } from "@coracle/operator/client";
import { jsonEquals } from "@coracle/operator/internal";
import type { Node, Pod } from "@coracle/operator/kinds";
import { StatusError } from "../status.ts";
import { type AdmissionPlugin, type Attributes, refusal } from "./admission.ts";
import { podAmounts } from "./pod_resources.ts";

/** Old and new state of a bound Pod whose specification has changed; undefined for other requests. */
function boundPods(
  { object, oldObject }: Attributes,
): { readonly pod: Pod; readonly before: Pod } | undefined {
  const pod = object as unknown as Pod | undefined;
  const before = oldObject as unknown as Pod | undefined;
  if (!pod?.spec.nodeName || before === undefined) return undefined;
  return pod.metadata?.generation === before.metadata?.generation
    ? undefined
    : { pod, before };
}

/** Node of a pod; refuses the request if the node is missing. */
function nodeOf(attributes: Attributes, name: string): Node {
  const node: UntypedObject | undefined = attributes.hooks.find(
    { group: "", plural: "nodes" },
    { name },
  );
  if (node) return node as unknown as Node;
  throw refusal(attributes, `node "${name}" not found`);
}

function resizeRefusal(
  attributes: Attributes,
  why: string,
  reason: string,
): StatusError {
  const { status } = refusal(attributes, why);
  const details = { ...status.details, causes: [{ reason }] };
  return new StatusError({ ...status, code: 403, details });
}

/** Plug-in that refuses a resize which does not fit on the node of the pod. */
export const POD_RESIZE: AdmissionPlugin = {
  name: "PodResizeValidator",
  operations: ["UPDATE"],
  resources: ["pods/resize"],
  validate(attributes): void {
    const { pod } = boundPods(attributes) ?? {};
    if (pod === undefined) return;
    const { metadata, status } = nodeOf(attributes, pod.spec.nodeName ?? "");
    const system = metadata?.labels?.["kubernetes.io/os"] ?? "linux";
    if (system !== "linux") {
      throw resizeRefusal(
        attributes,
        `pod resize is only supported on linux nodes, node "${metadata?.name}" is "${system}"`,
        "UnsupportedPlatform",
      );
    }
    const wanted = podAmounts(pod.spec, "requests");
    const exceeded = (["cpu", "memory"] as const).flatMap((name) => {
      const requested = wanted.get(name) ?? Quantity.parse("0");
      const allocatable = Quantity.parse(status?.allocatable?.[name] ?? "0");
      if (requested.compare(allocatable) <= 0) return [];
      const unit = name === "cpu" ? 1_000_000n : 1_000_000_000n;
      const shown = ({ nano }: Quantity) => (nano + unit - 1n) / unit;
      return [
        `${name}, requested: ${shown(requested)}, allocatable: ${
          shown(allocatable)
        }`,
      ];
    });
    if (exceeded.length === 0) return;
    throw resizeRefusal(
      attributes,
      `node didn't have enough allocatable resources: ${exceeded.join("; ")}`,
      "NodeCapacity",
    );
  },
};

/** Node features that an update of a pod needs. */
function neededFeatures(pod: Pod, before: Pod): string[] {
  const levels = !jsonEquals(pod.spec.resources, before.spec.resources);
  const initial = before.spec.initContainers?.some((container, index) =>
    container.restartPolicy !== "Always" &&
    !jsonEquals(
      container.resources,
      pod.spec.initContainers?.[index]?.resources,
    )
  );
  return [
    ...levels ? ["InPlacePodLevelResourcesVerticalScaling"] : [],
    ...initial ? ["InPlacePodVerticalScalingInitContainers"] : [],
  ];
}

/** Plug-in that refuses an update of a pod which needs features that its node does not declare. */
export const NODE_FEATURES: AdmissionPlugin = {
  name: "NodeDeclaredFeatureValidator",
  operations: ["UPDATE"],
  resources: ["pods", "pods/resize"],
  validate(attributes): void {
    const pods = boundPods(attributes);
    const needed = pods ? neededFeatures(pods.pod, pods.before) : [];
    if (pods === undefined || needed.length === 0) return;
    const node = nodeOf(attributes, pods.pod.spec.nodeName ?? "");
    const { declaredFeatures = [] } = node.status ?? {};
    const missing = needed.filter((name) => !declaredFeatures.includes(name));
    if (missing.length === 0) return;
    throw refusal(
      attributes,
      `pod update requires features ${
        missing.join(", ")
      } which are not available on node "${node.metadata?.name}"`,
    );
  },
};
