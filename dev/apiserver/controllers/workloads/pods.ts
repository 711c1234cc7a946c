import type { KubernetesObject, ResolvedKind } from "@coracle/operator/client";
import { mutableCopy } from "@coracle/operator/internal";
import {
  Pod,
  type PodCondition,
  type PodTemplateSpec,
} from "@coracle/operator/kinds";
import {
  type ControllerApi,
  controllerReference,
  type Draft,
} from "../controller_api.ts";

export function podCondition(
  { status }: Pod,
  type: string,
): PodCondition | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}

export function isReady(pod: Pod): boolean {
  return podCondition(pod, "Ready")?.status === "True";
}

/** Time at which a ready pod becomes available, in milliseconds; undefined if it is not ready. */
export function availableAt(pod: Pod, minReadySeconds = 0): number | undefined {
  const ready = podCondition(pod, "Ready");
  if (ready?.status !== "True") return undefined;
  if (minReadySeconds === 0) return 0;
  return Date.parse(ready.lastTransitionTime ?? "") + minReadySeconds * 1000;
}

export function isFinished({ status }: Pod): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}

/** Whether a pod is neither finished nor being deleted. */
export function isActive(pod: Pod): boolean {
  return !isFinished(pod) && pod.metadata.deletionTimestamp === undefined;
}

/** Counts of ready and available pods, and when the next one becomes available. */
export function readiness(
  pods: readonly Pod[],
  minReadySeconds: number | undefined,
  now: number,
): { ready: number; available: number; delay: number | undefined } {
  let ready = 0;
  let available = 0;
  let delay: number | undefined;
  for (const pod of pods) {
    const at = availableAt(pod, minReadySeconds);
    if (at === undefined) continue;
    ready++;
    if (at <= now) available++;
    else delay = Math.min(delay ?? Infinity, at - now);
  }
  return { ready, available, delay };
}

const PHASE_RANKS: Readonly<Record<string, number>> = {
  Pending: 0,
  Unknown: 1,
  Running: 2,
};

/**
 * Pods in the order in which a scale-down deletes them: without a node, pending,
 * not ready, cheap to delete, many on a node, ready for a short time, often
 * restarted, and young ones first.
 */
export function deletionOrder(pods: readonly Pod[]): Pod[] {
  const onNode = new Map<string, number>();
  for (const pod of pods) {
    const { nodeName } = pod.spec;
    if (nodeName && isActive(pod)) {
      onNode.set(nodeName, (onNode.get(nodeName) ?? 0) + 1);
    }
  }
  const ranks = new Map(pods.map((pod) => [pod, [
    pod.spec.nodeName ? 1 : 0,
    PHASE_RANKS[pod.status?.phase ?? ""] ?? 0,
    isReady(pod) ? 1 : 0,
    deletionCost(pod),
    -(onNode.get(pod.spec.nodeName ?? "") ?? 0),
    isReady(pod)
      ? -Date.parse(podCondition(pod, "Ready")?.lastTransitionTime ?? "")
      : 0,
    -restartsOf(pod),
    -Date.parse(pod.metadata.creationTimestamp ?? ""),
  ]]));
  return [...pods].sort((a, b) => {
    const [first = [], second = []] = [ranks.get(a), ranks.get(b)];
    const index = first.findIndex((rank, at) => rank !== second[at]);
    return (first[index] ?? 0) - (second[index] ?? 0);
  });
}

function deletionCost({ metadata: { annotations } }: Pod): number {
  const text = annotations?.["controller.kubernetes.io/pod-deletion-cost"];
  return /^-?(?:0|[1-9]\d*)$/.test(text ?? "") ? Number(text) : 0;
}

function restartsOf({ status }: Pod): number {
  return Math.max(
    0,
    ...status?.containerStatuses?.map(({ restartCount }) =>
      restartCount ?? 0
    ) ?? [],
  );
}

/** Pod created from the template of the workload that manages it. */
export function podFrom(
  template: PodTemplateSpec,
  ownerKind: ResolvedKind,
  owner: KubernetesObject,
  name?: string,
): Draft<Pod> {
  const { labels, annotations, finalizers } = template.metadata ?? {};
  return {
    metadata: {
      ...(name === undefined
        ? { generateName: prefixOf(owner.metadata.name) }
        : { name }),
      namespace: owner.metadata.namespace,
      ...(labels && { labels: { ...labels } }),
      ...(annotations && { annotations: { ...annotations } }),
      ...(finalizers && { finalizers: [...finalizers] }),
      ownerReferences: [controllerReference(ownerKind, owner)],
    },
    spec: mutableCopy(template.spec),
  };
}

/** Name prefix of generated pods, without the hyphen if it is too long. */
function prefixOf(name: string): string {
  return name.length > 252 ? name : `${name}-`;
}

/** Whether a pod has all labels of the template. */
export function matchesTemplate(
  { metadata: { labels = {} } }: Pod,
  template: PodTemplateSpec | undefined,
): boolean {
  return Object.entries(template?.metadata?.labels ?? {}).every((
    [name, value],
  ) => labels[name] === value);
}

/** Creates pods one by one; stops at the first failure. */
export async function createPods(
  api: ControllerApi,
  count: number,
  draft: () => Draft<Pod>,
): Promise<void> {
  for (let created = 0; created < count; created++) {
    await api.create(Pod, draft());
  }
}

/** Value of a number or a percentage of a total, rounded. */
export function scaled(
  value: number | string | undefined,
  total: number,
  round: "up" | "down",
): number {
  if (typeof value !== "string") return value ?? 0;
  const part = (Number.parseInt(value) || 0) * total / 100;
  return round === "up" ? Math.ceil(part) : Math.floor(part);
}

/** Objects by age, oldest first; by name within the same second. */
export function byAge(a: KubernetesObject, b: KubernetesObject): number {
  const [first, second] = [a.metadata, b.metadata].map((
    { creationTimestamp = "", name },
  ) => `${creationTimestamp} ${name}`);
  return (first ?? "") < (second ?? "") ? -1 : 1;
}
