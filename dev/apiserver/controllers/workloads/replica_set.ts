import type {
  KubernetesObject,
  LabelSelector,
  ResolvedKind,
} from "@coracle/operator/client";
import {
  Pod,
  ReplicaSet,
  type ReplicaSetSpec,
  type ReplicaSetStatus,
  ReplicationController,
} from "@coracle/operator/kinds";
import type { ControllerApi } from "../controller_api.ts";
import type { ControllerDefinition } from "../controller_loop.ts";
import { withCondition, withoutCondition } from "../conditions.ts";
import {
  createPods,
  deletionOrder,
  isActive,
  isFinished,
  matchesTemplate,
  podFrom,
  readiness,
} from "./pods.ts";

/** Maximum number of pods that one sync creates or deletes. */
const BURST = 500;

/** Controller of ReplicaSets. */
export const REPLICA_SETS: ControllerDefinition = {
  name: "replicaset-controller",
  kind: ReplicaSet,
  owns: [Pod],
  sync: (object, api) =>
    syncReplicas(
      ReplicaSet,
      object as ReplicaSet,
      api,
      ({ spec }) => spec?.selector,
    ),
};

/** Controller of ReplicationControllers. */
export const REPLICATION_CONTROLLERS: ControllerDefinition = {
  name: "replicationcontroller-controller",
  kind: ReplicationController,
  owns: [Pod],
  sync: (object, api) =>
    syncReplicas(
      ReplicationController,
      object as ReplicationController,
      api,
      ({ spec }) => ({ matchLabels: spec?.selector }),
    ),
};

/** Fields that ReplicaSets and ReplicationControllers share. */
interface Replicated extends KubernetesObject {
  spec?: Partial<Omit<ReplicaSetSpec, "selector">> | undefined;
  status?: ReplicaSetStatus | undefined;
}

async function syncReplicas<T extends Replicated>(
  kind: ResolvedKind<T>,
  owner: T,
  api: ControllerApi,
  selectorOf: (owner: T) => LabelSelector | undefined,
): Promise<number | undefined> {
  const { replicas = 1, minReadySeconds, template } = owner.spec ?? {};
  let terminating = 0;
  const claim = async () => {
    const claimed = await api.claim(Pod, kind, owner, selectorOf(owner));
    const running = claimed.filter((pod) => !isFinished(pod));
    const active = running.filter(isActive);
    terminating = running.length - active.length;
    return active;
  };
  let failure: { reason: string; error: unknown } | undefined;
  let pods = await claim();
  const difference = replicas - pods.length;
  if (difference !== 0 && template && !owner.metadata.deletionTimestamp) {
    try {
      await createPods(
        api,
        Math.min(difference, BURST),
        () => podFrom(template, kind, owner),
      );
      const surplus = deletionOrder(pods)
        .slice(0, Math.min(Math.max(-difference, 0), BURST));
      for (const pod of surplus) await api.delete(Pod, pod);
    } catch (error) {
      const reason = difference > 0 ? "FailedCreate" : "FailedDelete";
      failure = { reason, error };
    }
    pods = await claim();
  }
  const { ready, available, delay } = readiness(pods, minReadySeconds, api.now);
  const before = owner.status?.conditions;
  const conditions = failure
    ? withCondition(before, {
      type: "ReplicaFailure",
      status: "True",
      lastTransitionTime: api.time,
      reason: failure.reason,
      message: (failure.error as Error).message,
    })
    : withoutCondition(before, "ReplicaFailure");
  const labelled = pods.filter((pod) => matchesTemplate(pod, template)).length;
  await api.setStatus(kind, owner, {
    replicas: pods.length,
    ...(labelled > 0 && { fullyLabeledReplicas: labelled }),
    ...(ready > 0 && { readyReplicas: ready }),
    ...(available > 0 && { availableReplicas: available }),
    // A ReplicationController does not have it.
    ...(kind.kind === ReplicaSet.kind && { terminatingReplicas: terminating }),
    observedGeneration: owner.metadata.generation,
    ...(conditions.length > 0 && { conditions }),
  });
  if (failure) throw failure.error;
  // More than one burst is missing.
  return Math.abs(difference) > BURST ? 0 : delay;
}
