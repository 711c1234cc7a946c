import type { UntypedObject } from "../../core/api/object.ts";
import type { Timer } from "../../core/clock.ts";
import { timestamp } from "../../core/api/timestamp.ts";
import type { ApiContext } from "../api_context.ts";
import { rethrowMissing } from "../settle.ts";
import type { GroupResource } from "../registry.ts";
import type { Change } from "../storage/history.ts";
import type { StoredObject } from "../storage/stored_object.ts";
import { updateObject } from "../write/update.ts";
import { internalRequest, internalWrite } from "./internal_request.ts";

/** Delay until a workload becomes ready, in milliseconds. */
const READY_DELAY_MS = 500;

/** Resources whose readiness is simulated. */
const WORKLOADS: readonly GroupResource[] = [
  { group: "apps", plural: "deployments" },
  { group: "apps", plural: "statefulsets" },
];

/**
 * Simulator of workload readiness: Deployments and StatefulSets become ready
 * shortly after each change of their spec. No pods are created.
 */
export class ReadinessSimulator {
  readonly #context: ApiContext;
  readonly #timers: Map<string, Timer> = new Map();

  constructor(context: ApiContext) {
    this.#context = context;
    context.store.listen((change) => this.#observe(change));
  }

  #observe({ type, object }: Change): void {
    const { group, plural } = object.definition;
    if (
      type === "DELETED" || object.terminating ||
      !WORKLOADS.some((workload) =>
        workload.group === group && workload.plural === plural
      )
    ) return;
    // By UID: the timer of an object does not serve the next one of its name.
    const id = object.uid;
    if (this.#timers.has(id) || isReady(object.parse())) return;
    const timer = this.#context.clock.setTimer(() => {
      this.#timers.delete(id);
      this.#makeReady(object);
    }, READY_DELAY_MS);
    this.#timers.set(id, timer);
  }

  #makeReady({ definition, namespace, name, uid }: StoredObject): void {
    try {
      updateObject(
        internalRequest(this.#context, definition, {
          namespace,
          name,
          subresource: "status",
        }),
        {
          options: internalWrite("kube-controller-manager"),
          conditional: false,
          mayCreate: false,
          uid,
          next: (live) => ({
            ...live,
            status: readyStatus(live, this.#context.clock.wallTime()),
          }),
        },
      );
    } catch (error) {
      rethrowMissing(error);
      // The object may have been deleted, or recreated with the same name.
      this.#context.logger.debug("Cannot simulate readiness", { name, error });
    }
  }

  /** Continues with the objects of a store that was loaded. */
  begin(): void {
    this.#context.store.replay((change) => this.#observe(change));
  }

  stop(): void {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }
}

interface WorkloadStatus {
  readonly observedGeneration?: number;
  readonly availableReplicas?: number;
}

function replicasOf({ spec }: UntypedObject): number {
  return (spec as { replicas?: number } | undefined)?.replicas ?? 1;
}

function isReady(object: UntypedObject): boolean {
  const status = (object.status ?? {}) as WorkloadStatus;
  return status.observedGeneration === object.metadata.generation &&
    (status.availableReplicas ?? 0) === replicasOf(object);
}

function readyStatus(object: UntypedObject, now: number): unknown {
  const { kind, metadata, status: before } = object;
  const replicas = replicasOf(object);
  const revision = `${metadata.name}-${metadata.generation}`;
  const counts = {
    observedGeneration: metadata.generation,
    replicas,
    updatedReplicas: replicas,
    readyReplicas: replicas,
    availableReplicas: replicas,
  };
  if (kind === "StatefulSet") {
    return {
      ...counts,
      currentReplicas: replicas,
      currentRevision: revision,
      updateRevision: revision,
    };
  }
  const { conditions = [] } = (before ?? {}) as {
    conditions?: { type: string; lastTransitionTime?: string }[];
  };
  const time = timestamp(now);
  const condition = (type: string, reason: string, message: string) => ({
    type,
    status: "True",
    lastUpdateTime: time,
    lastTransitionTime: conditions.find((condition) => condition.type === type)
      ?.lastTransitionTime ?? time,
    reason,
    message,
  });
  return {
    ...counts,
    conditions: [
      condition(
        "Available",
        "MinimumReplicasAvailable",
        "Deployment has minimum availability.",
      ),
      condition(
        "Progressing",
        "NewReplicaSetAvailable",
        `Deployment ${
          JSON.stringify(metadata.name)
        } has successfully progressed.`,
      ),
    ],
  };
}
