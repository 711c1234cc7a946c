import { jsonEquals } from "@coracle/operator/internal";
import {
  type ControllerRevision,
  PersistentVolumeClaim,
  Pod,
  StatefulSet,
  type StatefulSetStatus,
} from "@coracle/operator/kinds";
import {
  type ControllerApi,
  controllerReference,
  type Draft,
} from "../controller_api.ts";
import type { ControllerDefinition } from "../controller_loop.ts";
import {
  availableAt,
  isFinished,
  isReady,
  podFrom,
  readiness,
  scaled,
} from "./pods.ts";
import { cutRevisions, syncRevisions, templateOf } from "./revisions.ts";

const REVISION_LABEL = "controller-revision-hash";

/** Controller of StatefulSets. */
export const STATEFUL_SETS: ControllerDefinition = {
  name: "statefulset-controller",
  kind: StatefulSet,
  owns: [Pod],
  sync: (object, api) => syncStatefulSet(object as StatefulSet, api),
};

function isTerminating({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined;
}

function isHealthy(pod: Pod | undefined): boolean {
  return pod?.status?.phase === "Running" && isReady(pod) &&
    !isTerminating(pod);
}

function revisionOf(pod: Pod | undefined): string | undefined {
  return pod?.metadata.labels?.[REVISION_LABEL];
}

async function syncStatefulSet(
  set: StatefulSet,
  api: ControllerApi,
): Promise<number | undefined> {
  const { metadata, spec, status } = set;
  const { replicas = 1, minReadySeconds = 0, updateStrategy } = spec;
  const { all, newest } = await syncRevisions(
    api,
    StatefulSet,
    set,
    (hash) => ({ "controller.kubernetes.io/hash": hash }),
  );
  const current =
    all.find(({ metadata: { name } }) => name === status?.currentRevision) ??
      newest;
  const claim = async () =>
    (await api.claim(Pod, StatefulSet, set, spec.selector)).filter((pod) =>
      ordinalOf(set, pod) !== undefined
    );
  const update = new Update(set, { current, newest }, api);
  let failure: unknown;
  if (metadata.deletionTimestamp === undefined) {
    try {
      await update.run(await claim());
    } catch (error) {
      failure = error;
    }
  }
  const pods = await claim();
  const counted = pods.filter((pod) => pod.status?.phase !== undefined);
  const { ready, available, delay } = readiness(
    counted.filter(({ status }) => status?.phase === "Running"),
    minReadySeconds,
    api.now,
  );
  const live = counted.filter((pod) => !isTerminating(pod));
  const of = (revision: ControllerRevision) =>
    live.filter((pod) => revisionOf(pod) === revision.metadata.name).length;
  const updated = of(newest);
  const isComplete = updateStrategy?.type !== "OnDelete" &&
    updated === replicas && ready === replicas && counted.length === replicas;
  const active = isComplete ? newest : current;
  const counts = {
    readyReplicas: ready,
    currentReplicas: isComplete ? updated : of(current),
    updatedReplicas: updated,
  };
  const next: StatefulSetStatus = {
    observedGeneration: metadata.generation,
    replicas: counted.length,
    availableReplicas: available,
    ...Object.fromEntries(Object.entries(counts).filter(([, n]) => n > 0)),
    currentRevision: active.metadata.name,
    updateRevision: newest.metadata.name,
    collisionCount: status?.collisionCount ?? 0,
  };
  await api.setStatus(StatefulSet, set, next);
  await cutRevisions(
    api,
    set,
    all,
    (revision) =>
      revision === active || revision === newest ||
      pods.some((pod) => revisionOf(pod) === revision.metadata.name),
  );
  if (failure !== undefined) throw failure;
  return delay;
}

/** Ordinal of a pod by its name; undefined for a pod of another set. */
function ordinalOf({ metadata }: StatefulSet, pod: Pod): number | undefined {
  const match = /^(.*)-(\d+)$/.exec(pod.metadata.name);
  return match?.[1] === metadata.name ? Number(match[2]) : undefined;
}

/** Step of a StatefulSet towards its desired pods, in the order of their ordinals. */
class Update {
  readonly #set: StatefulSet;
  readonly #current: ControllerRevision;
  readonly #newest: ControllerRevision;
  readonly #api: ControllerApi;
  readonly #isOrdered: boolean;

  constructor(
    set: StatefulSet,
    { current, newest }: {
      readonly current: ControllerRevision;
      readonly newest: ControllerRevision;
    },
    api: ControllerApi,
  ) {
    this.#set = set;
    this.#current = current;
    this.#newest = newest;
    this.#api = api;
    this.#isOrdered = set.spec.podManagementPolicy !== "Parallel";
  }

  async run(pods: readonly Pod[]): Promise<void> {
    const { replicas = 1, ordinals, updateStrategy } = this.#set.spec;
    const start = ordinals?.start ?? 0;
    const wanted: (Pod | undefined)[] = Array(replicas).fill(undefined);
    const condemned: Pod[] = [];
    for (const pod of pods) {
      const index = (ordinalOf(this.#set, pod) ?? 0) - start;
      if (index >= 0 && index < replicas) wanted[index] = pod;
      else condemned.push(pod);
    }
    for (let index = 0; index < replicas; index++) {
      if (await this.#keep(wanted[index], start + index)) return;
    }
    condemned.sort((a, b) =>
      (ordinalOf(this.#set, b) ?? 0) - (ordinalOf(this.#set, a) ?? 0)
    );
    if (await this.#condemn(condemned, wanted)) return;
    if (updateStrategy?.type !== "OnDelete") await this.#roll(wanted);
  }

  #isAvailable(pod: Pod): boolean {
    const { minReadySeconds } = this.#set.spec;
    return isHealthy(pod) &&
      (availableAt(pod, minReadySeconds) ?? Infinity) <= this.#api.now;
  }

  /** Creates or replaces a pod; returns whether later pods must wait. */
  async #keep(pod: Pod | undefined, ordinal: number): Promise<boolean> {
    if (pod && isFinished(pod)) {
      if (!isTerminating(pod)) await this.#api.delete(Pod, pod);
      return this.#isOrdered;
    }
    await this.#keepClaims(ordinal, undefined);
    if (pod === undefined) {
      await this.#api.create(Pod, this.#podOf(ordinal));
      return this.#isOrdered;
    }
    return this.#isOrdered && !this.#isAvailable(pod);
  }

  /** Deletes the pods beyond the range, highest ordinal first. */
  async #condemn(
    condemned: readonly Pod[],
    wanted: readonly (Pod | undefined)[],
  ): Promise<boolean> {
    const firstUnhealthy = [...wanted, ...[...condemned].reverse()]
      .find((pod) => !isHealthy(pod));
    for (const pod of condemned) {
      await this.#keepClaims(ordinalOf(this.#set, pod) ?? 0, pod);
      if (isTerminating(pod)) {
        if (this.#isOrdered) return true;
        continue;
      }
      const waits = !this.#isAvailable(pod) && pod !== firstUnhealthy;
      if (this.#isOrdered && waits) return true;
      await this.#api.delete(Pod, pod);
      if (this.#isOrdered) return true;
    }
    return false;
  }

  /** Deletes pods of old revisions, from the highest ordinal to the partition. */
  async #roll(wanted: readonly (Pod | undefined)[]): Promise<void> {
    const { rollingUpdate = {} } = this.#set.spec.updateStrategy ?? {};
    const { partition = 0, maxUnavailable = 1 } = rollingUpdate;
    const limit = Math.max(1, scaled(maxUnavailable, wanted.length, "up"));
    let unavailable = wanted.filter((pod) => !isHealthy(pod)).length;
    for (let index = wanted.length - 1; index >= partition; index--) {
      const pod = wanted[index];
      if (pod === undefined || isTerminating(pod)) return;
      if (revisionOf(pod) === this.#newest.metadata.name) {
        if (!isHealthy(pod) && limit === 1) return;
        continue;
      }
      if (isHealthy(pod) && unavailable >= limit) return;
      if (isHealthy(pod)) unavailable++;
      await this.#api.delete(Pod, pod);
      if (limit === 1) return;
    }
  }

  #podOf(ordinal: number): Draft<Pod> {
    const { metadata: { name }, spec, status } = this.#set;
    const { rollingUpdate, type } = spec.updateStrategy ?? {};
    const start = spec.ordinals?.start ?? 0;
    const kept = rollingUpdate?.partition ?? status?.currentReplicas ?? 0;
    const revision = type !== "OnDelete" && ordinal < start + kept
      ? this.#current
      : this.#newest;
    const podName = `${name}-${ordinal}`;
    const draft = podFrom(
      templateOf(revision),
      StatefulSet,
      this.#set,
      podName,
    );
    draft.metadata.labels = {
      ...draft.metadata.labels,
      "apps.kubernetes.io/pod-index": String(ordinal),
      [REVISION_LABEL]: revision.metadata.name,
      "statefulset.kubernetes.io/pod-name": podName,
    };
    draft.spec.hostname = podName;
    if (spec.serviceName) draft.spec.subdomain = spec.serviceName;
    const claims = this.#claims(ordinal);
    draft.spec.volumes = [
      ...claims.map(({ volume, name }) => ({
        name: volume,
        persistentVolumeClaim: { claimName: name },
      })),
      ...draft.spec.volumes?.filter(({ name }) =>
        !claims.some(({ volume }) => volume === name)
      ) ?? [],
    ];
    return draft;
  }

  #claims(ordinal: number) {
    return (this.#set.spec.volumeClaimTemplates ?? []).map((template) => ({
      volume: template.metadata?.name ?? "",
      name: `${template.metadata?.name}-${this.#set.metadata.name}-${ordinal}`,
      template,
    }));
  }

  /** Creates missing claims of a pod; sets their owners by the retention policy. */
  async #keepClaims(
    ordinal: number,
    condemned: Pod | undefined,
  ): Promise<void> {
    const { metadata: { namespace }, spec } = this.#set;
    const policy = spec.persistentVolumeClaimRetentionPolicy ?? {};
    const { whenDeleted = "Retain", whenScaled = "Retain" } = policy;
    const owner = condemned && whenScaled === "Delete"
      ? controllerReference(Pod, condemned)
      : whenDeleted === "Delete"
      ? controllerReference(StatefulSet, this.#set)
      : undefined;
    const owners = owner && [owner];
    for (const { name, template } of this.#claims(ordinal)) {
      const known = this.#api.get(PersistentVolumeClaim, { namespace, name });
      if (known === undefined) {
        await this.#api.create(PersistentVolumeClaim, {
          metadata: {
            ...template.metadata,
            name,
            namespace,
            labels: {
              ...template.metadata?.labels,
              ...spec.selector.matchLabels,
            },
            ...(owners && { ownerReferences: owners }),
          },
          spec: template.spec,
        });
      } else if (
        policy.whenDeleted && !jsonEquals(
          known.metadata.ownerReferences ?? [],
          owners ?? [],
        )
      ) {
        await this.#api.update(PersistentVolumeClaim, known, (draft) => {
          draft.metadata.ownerReferences = owners ?? [];
        });
      }
    }
  }
}
