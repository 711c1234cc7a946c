import { ApiError } from "../../core/api/api_error.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import { keyText } from "../../core/api/object_key.ts";
import { Informer } from "../../core/cache/informer/informer.ts";
import type { Client } from "../../core/client/client.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import {
  currentStatus,
  failedStatus,
  type ObjectStatus,
  type StatusRule,
} from "./object_status.ts";
import {
  asReferenced,
  type ObjectReference,
  referencedKind,
  referenceId,
  referenceOf,
} from "./object_reference.ts";
import { at, graceLeft, jobCompletionStatus } from "./status_rules.ts";
import { statusOf } from "./status_of.ts";
import { parseApiVersion } from "../../core/api/kind.ts";
import type { LabelSelector } from "../../core/api/label_selector.ts";
import { Pod } from "../../core/kinds/core_v1.ts";

/** Dependencies of an {@linkcode ObjectWatch}. */
export interface ObjectWatchDeps {
  readonly rules: ReadonlyMap<string, StatusRule> | undefined;
  readonly clock: Clock;
  /** Whether a Job with a TTL counts as Current after it was deleted. */
  readonly jobsMayVanish: boolean;
  /**
   * Callback for the initial status of each object, and for each possible
   * change.
   */
  readonly onStatus: (
    reference: ObjectReference,
    status: ObjectStatus,
  ) => void;
}

/** Objects of one kind in one namespace, and their informer. */
interface Group {
  readonly references: ObjectReference[];
  readonly informer: Informer<KubernetesObject>;
}

const NOT_FOUND: ObjectStatus = {
  status: "NotFound",
  reason: "",
  message: "Resource not found",
};

/**
 * Rules for waiting: Jobs are Current when they have ended, not while they run.
 */
const WAITING_RULES: ReadonlyMap<string, StatusRule> = new Map([
  ["batch/Job", jobCompletionStatus],
]);

/**
 * Watches the status of objects of any kinds. There is one watch for each kind
 * and namespace, restricted to the object if it is the only one.
 */
export class ObjectWatch {
  readonly #client: Client;
  readonly #options: ObjectWatchDeps;
  readonly #rules: ReadonlyMap<string, StatusRule>;
  readonly #groups: readonly Group[];
  /** Ids of Jobs with a TTL, which are deleted after they have ended. */
  readonly #vanishing: Set<string> = new Set();
  /** Pods by the id of their owner. */
  readonly #pods: Map<string, OwnedPods> = new Map();
  /** Timers of objects with a grace period, by id. */
  readonly #timers: Map<string, Timer> = new Map();
  #stopped = false;

  /**
   * @param client The client of the cluster.
   * @param objects The objects, or references to them.
   * @param deps The clock, the rules and the callback.
   */
  constructor(
    client: Client,
    objects: readonly (KubernetesObject | ObjectReference)[],
    options: ObjectWatchDeps,
  ) {
    this.#client = client;
    this.#options = options;
    this.#rules = new Map([...WAITING_RULES, ...options.rules ?? []]);
    for (const object of objects) this.#noteVanishing(object);
    this.#groups = [...groupsOf(objects).values()].map((references) => ({
      references,
      informer: this.#informerOf(references),
    }));
  }

  /** Starts the watches. */
  start(): void {
    for (const group of this.#groups) void this.#follow(group);
  }

  /** Stops all watches. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    await Promise.all([
      ...this.#groups.map(({ informer }) => informer.stop()),
      ...[...this.#pods.values()].map((pods) => pods.stop()),
    ]);
  }

  /** Error of the watch of an object; undefined if it works. */
  troubleOf(reference: ObjectReference): string | undefined {
    const id = referenceId(reference);
    const group = this.#groups.find(({ references }) =>
      references.some((one) => referenceId(one) === id)
    );
    const watches = group?.informer.health().watches ?? [];
    return watches.find(({ synced }) => !synced)?.lastError?.message;
  }

  #informerOf(
    references: readonly ObjectReference[],
  ): Informer<KubernetesObject> {
    const [first] = references as [ObjectReference];
    const { clock } = this.#options;
    return new Informer(this.#client, referencedKind(first), {
      clock,
      prune: ["metadata.managedFields"],
      ...(first.namespace && { namespaces: [first.namespace] }),
      ...(references.length === 1 && {
        fieldSelector: `metadata.name=${first.name}`,
      }),
    });
  }

  async #follow(group: Group): Promise<void> {
    const { references, informer } = group;
    if (!await this.#isServed(references[0]!)) {
      // The kind may be installed later: the informer retries.
      for (const reference of references) this.#tell(reference, NOT_FOUND);
    }
    if (this.#stopped) return;
    const byKey = new Map(
      references.map((reference) => [keyText(reference), reference]),
    );
    informer.addHandler(({ key }) => {
      const reference = byKey.get(key);
      if (reference !== undefined) this.#look(group, reference);
    }, { name: "wait" });
    try {
      await informer.start().synced;
    } catch {
      return; // The watch was stopped.
    }
    for (const reference of references) this.#look(group, reference);
  }

  async #isServed(reference: ObjectReference): Promise<boolean> {
    try {
      await this.#client.resolve(referencedKind(reference));
      return true;
    } catch (error) {
      // Other errors show in the health of the informer.
      return !(ApiError.is(error) && error.isNotFound);
    }
  }

  /** Computes the status of an object, and reports it. */
  #look(group: Group, reference: ObjectReference): void {
    if (this.#stopped) return;
    const { informer } = group;
    const id = referenceId(reference);
    this.#timers.get(id)?.cancel();
    this.#timers.delete(id);
    const object = informer.get(keyText(reference));
    if (object === undefined) {
      if (!informer.hasSynced) return;
      this.#tell(
        reference,
        this.#vanishing.has(id)
          ? currentStatus("Job is done and deleted")
          : NOT_FOUND,
      );
      return;
    }
    const named = asReferenced(object, reference);
    this.#noteVanishing(named);
    const now = this.#options.clock.wallTime();
    const status = statusOf(named, { now, rules: this.#rules });
    const again = () => this.#look(group, reference);
    const pods = this.#podsOf(reference, { object, status, again });
    if (status.reason === "PodNotScheduled") {
      this.#lookLater(id, graceLeft(object, now), again);
    }
    const unscheduled = pods?.nextGrace(now);
    if (unscheduled !== undefined) this.#lookLater(id, unscheduled, again);
    this.#tell(reference, pods ? failedByPods(status, pods, now) : status);
  }

  /** Pods of an object whose progress depends on them. */
  #podsOf(
    reference: ObjectReference,
    { object, status, again }: {
      readonly object: KubernetesObject;
      readonly status: ObjectStatus;
      readonly again: () => void;
    },
  ): OwnedPods | undefined {
    const id = referenceId(reference);
    const known = this.#pods.get(id);
    if (status.status !== "InProgress" || !ownsPods(reference)) {
      return undefined;
    }
    if (known !== undefined) return known;
    const { clock } = this.#options;
    const pods = OwnedPods.of(object, { client: this.#client, clock, again });
    if (pods !== undefined) this.#pods.set(id, pods);
    return pods;
  }

  #lookLater(id: string, delay: number, again: () => void): void {
    this.#timers.get(id)?.cancel();
    this.#timers.set(id, this.#options.clock.setTimer(again, delay));
  }

  #noteVanishing(object: KubernetesObject | ObjectReference): void {
    if (!this.#options.jobsMayVanish || !("metadata" in object)) return;
    if (object.kind !== "Job") return;
    if (typeof at(object, "spec.ttlSecondsAfterFinished") === "number") {
      this.#vanishing.add(referenceId(referenceOf(object)));
    }
  }

  #tell(reference: ObjectReference, status: ObjectStatus): void {
    if (!this.#stopped) this.#options.onStatus(reference, status);
  }
}

/** Groups the references by kind and namespace. */
function groupsOf(
  objects: readonly (KubernetesObject | ObjectReference)[],
): Map<string, ObjectReference[]> {
  const groups = new Map<string, Map<string, ObjectReference>>();
  for (const object of objects) {
    const reference = referenceOf(object);
    const { apiVersion, kind, namespace = "" } = reference;
    const name = `${apiVersion} ${kind} ${namespace}`;
    const group = groups.get(name) ?? new Map();
    group.set(reference.name, reference);
    groups.set(name, group);
  }
  return new Map([...groups].map(([name, one]) => [name, [...one.values()]]));
}

/** Dependencies of {@linkcode OwnedPods}. */
export interface OwnedPodsDeps {
  readonly client: Client;
  readonly clock: Clock;
  /** Callback for each change of a pod. */
  readonly again: () => void;
}

/** Whether the failure of a pod counts as a failure of its owner. */
export function ownsPods({ apiVersion, kind }: ObjectReference): boolean {
  const { group } = parseApiVersion(apiVersion);
  return (group === "apps" || group === "extensions") &&
    (kind === "ReplicaSet" || kind === "StatefulSet");
}

/** Pods of one object, watched while it is in progress. */
export class OwnedPods {
  readonly #informer: Informer<Pod>;
  readonly #ownerUid: string | undefined;

  private constructor(informer: Informer<Pod>, ownerUid: string | undefined) {
    this.#informer = informer;
    this.#ownerUid = ownerUid;
  }

  /** Starts watching; undefined if the object selects no pods. */
  static of(
    owner: KubernetesObject,
    { client, clock, again }: OwnedPodsDeps,
  ): OwnedPods | undefined {
    const labelSelector = at(owner, "spec.selector") as
      | LabelSelector
      | undefined;
    const { namespace, uid } = owner.metadata;
    if (labelSelector === undefined || namespace === undefined) {
      return undefined;
    }
    const informer = new Informer(client, Pod, {
      clock,
      namespaces: [namespace],
      labelSelector,
      prune: ["metadata.managedFields"],
    });
    informer.addHandler(again, { name: "wait" });
    informer.start().synced.catch(() => {}); // The informer is stopped with the wait.
    return new OwnedPods(informer, uid);
  }

  /** Number of failed pods. */
  failures(now: number): number {
    return this.#all().filter((pod) =>
      statusOf({ ...pod, apiVersion: "v1", kind: "Pod" }, { now }).status ===
        "Failed"
    ).length;
  }

  /** Time until the next unscheduled pod counts as failed, in milliseconds. */
  nextGrace(now: number): number | undefined {
    const waits = this.#all()
      .filter((pod) =>
        statusOf({ ...pod, apiVersion: "v1", kind: "Pod" }, { now }).reason ===
          "PodNotScheduled"
      )
      .map((pod) => graceLeft(pod, now));
    return waits.length === 0 ? undefined : Math.min(...waits);
  }

  /** Stops the watch. */
  async stop(): Promise<void> {
    await this.#informer.stop();
  }

  #all(): readonly Pod[] {
    return this.#informer.list().filter(({ metadata }) => {
      const owners = metadata.ownerReferences ?? [];
      return owners.length === 0 ||
        owners.some(({ uid }) => uid === this.#ownerUid);
    });
  }
}

/** Computes the status of an object in progress from its pods. */
export function failedByPods(
  status: ObjectStatus,
  pods: OwnedPods,
  now: number,
): ObjectStatus {
  const count = pods.failures(now);
  return count === 0
    ? status
    : failedStatus("PodsFailed", `${count} pods have failed`);
}
