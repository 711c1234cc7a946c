import type { KubernetesObject } from "@coracle/operator/client";
import {
  DaemonSet,
  Deployment,
  Pod,
  PodDisruptionBudget,
  type PodDisruptionBudgetStatus,
  ReplicaSet,
  ReplicationController,
  StatefulSet,
} from "@coracle/operator/kinds";
import { type ControllerApi, controllerOf } from "../controller_api.ts";
import type { ControllerDefinition } from "../controller_loop.ts";
import { budgetsOf, selectsPods } from "../../write/disruption_budgets.ts";
import { withPresentCondition } from "../conditions.ts";
import { isReady, scaled } from "../workloads/pods.ts";

/** Time limit for the end of an evicted pod, in milliseconds. */
const DELETION_MS = 120_000;

/** Controller of PodDisruptionBudgets: counts healthy pods and permitted disruptions. */
export const DISRUPTION_BUDGETS: ControllerDefinition = {
  name: "disruption-controller",
  kind: PodDisruptionBudget,
  watches: [
    {
      kind: Pod,
      *keys({ object, previous }, api) {
        for (const pod of previous ? [previous, object] : [object]) {
          for (const budget of budgetsOf(api.context.store, pod)) {
            yield budget.key;
          }
        }
      },
    },
    ...[ReplicaSet, StatefulSet, ReplicationController].map((kind) => ({
      kind,
      *keys(
        { object: { namespace } }: { object: { namespace: string } },
        api: ControllerApi,
      ) {
        const budgets = api.context.store.collection(PodDisruptionBudget);
        for (const { key } of budgets.scan({ namespace })) yield key;
      },
    })),
  ],
  sync: (object, api) => syncBudget(object as PodDisruptionBudget, api),
};

async function syncBudget(
  budget: PodDisruptionBudget,
  api: ControllerApi,
): Promise<number | undefined> {
  const { metadata: { namespace, generation }, spec, status } = budget;
  const pods = api.list(Pod, namespace, selectsPods(spec?.selector));
  const { minAvailable, maxUnavailable } = spec ?? {};
  let expected = pods.length;
  let desired = Number(minAvailable ?? 0);
  let failure: string | undefined;
  if (maxUnavailable !== undefined || typeof minAvailable === "string") {
    const scale = expectedScale(pods, api);
    if (typeof scale === "string") failure = scale;
    else {
      expected = scale;
      desired = maxUnavailable === undefined
        ? scaled(minAvailable, scale, "up")
        : Math.max(0, scale - scaled(maxUnavailable, scale, "up"));
    }
  }
  const disrupted: Record<string, string> = {};
  let delay: number | undefined;
  let healthy = 0;
  for (const pod of pods) {
    if (pod.metadata.deletionTimestamp) continue;
    const { name } = pod.metadata;
    const evicted = status?.disruptedPods?.[name];
    const left = Date.parse(evicted ?? "") + DELETION_MS - api.now;
    if (evicted !== undefined && left > 0) {
      disrupted[name] = evicted;
      delay = Math.min(delay ?? Infinity, left);
    } else if (isReady(pod)) healthy++;
  }
  const allowed = failure === undefined && expected > 0
    ? Math.max(0, healthy - desired)
    : 0;
  const counts = failure === undefined
    ? {
      observedGeneration: generation,
      ...(Object.keys(disrupted).length > 0 && { disruptedPods: disrupted }),
      currentHealthy: healthy,
      desiredHealthy: desired,
      expectedPods: expected,
    }
    : status ?? { currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 };
  const next: PodDisruptionBudgetStatus = {
    ...counts,
    disruptionsAllowed: allowed,
    conditions: withPresentCondition(status?.conditions, {
      type: "DisruptionAllowed",
      status: allowed > 0 ? "True" : "False",
      observedGeneration: failure === undefined
        ? generation
        : status?.observedGeneration,
      lastTransitionTime: api.time,
      reason: failure !== undefined
        ? "SyncFailed"
        : allowed > 0
        ? "SufficientPods"
        : "InsufficientPods",
      message: failure ?? "",
    }),
  };
  await api.setStatus(PodDisruptionBudget, budget, next);
  return delay;
}

/** Sum of the desired replicas of the pods' managers, or the reason why it is unknown. */
function expectedScale(
  pods: readonly Pod[],
  api: ControllerApi,
): number | string {
  const sizes = new Map<string, number>();
  for (const { metadata: { name, namespace, ownerReferences } } of pods) {
    const owner = controllerOf(ownerReferences);
    if (owner === undefined || sizes.has(owner.uid)) continue;
    const get = (kind: typeof ReplicaSet) =>
      api.get(kind, { namespace, name: owner.name });
    let manager: KubernetesObject | undefined;
    for (const kind of [ReplicaSet, StatefulSet, ReplicationController]) {
      if (kind.kind === owner.kind) manager = get(kind as typeof ReplicaSet);
    }
    const set = controllerOf(manager?.metadata.ownerReferences);
    const deployment = set?.kind === "Deployment"
      ? api.get(Deployment, { namespace, name: set.name })
      : undefined;
    const { spec, metadata } = (deployment ?? manager ?? {}) as Partial<
      Deployment
    >;
    if (metadata?.uid === undefined || owner.kind === DaemonSet.kind) {
      return `found no controllers for pod "${name}"`;
    }
    sizes.set(metadata.uid, spec?.replicas ?? 1);
  }
  return [...sizes.values()].reduce((sum, size) => sum + size, 0);
}
