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

/** What an {@linkcode ObjectWatch} works with. */
export interface ObjectWatchOptions {
  readonly rules: ReadonlyMap<string, StatusRule> | undefined;
  readonly clock: Clock;
  /** Whether a Job that cleans up after itself is done when it is gone. */
  readonly jobsMayVanish: boolean;
  /** Told the state of each object as it is, and each time it may be another. */
  readonly onStatus: (
    reference: ObjectReference,
    status: ObjectStatus,
  ) => void;
}

/** The objects of one kind in one namespace, and the watch that covers them. */
interface Group {
  readonly references: ObjectReference[];
  readonly informer: Informer<KubernetesObject>;
}

const NOT_FOUND: ObjectStatus = {
  status: "NotFound",
  reason: "",
  message: "Resource not found",
};

/** Jobs are waited for until their end, not until they run. */
const WAITING_RULES: ReadonlyMap<string, StatusRule> = new Map([
  ["batch/Job", jobCompletionStatus],
]);

/**
 * Watches objects of any kinds and tells their states: one watch for all of a
 * kind in a namespace, and one of a single object where it is alone.
 */
export class ObjectWatch {
  readonly #client: Client;
  readonly #options: ObjectWatchOptions;
  readonly #rules: ReadonlyMap<string, StatusRule>;
  readonly #groups: readonly Group[];
  /** The Jobs that vanish by themselves once they are done. */
  readonly #vanishing: Set<string> = new Set();
  /** By the id of their owner. */
  readonly #pods: Map<string, OwnedPods> = new Map();
  /** Those that are looked at again when their grace is over. */
  readonly #timers: Map<string, Timer> = new Map();
  #stopped = false;

  /**
   * @param client Speaks to the cluster.
   * @param objects Which ones.
   * @param options Whom to tell.
   */
  constructor(
    client: Client,
    objects: readonly (KubernetesObject | ObjectReference)[],
    options: ObjectWatchOptions,
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

  /** Begins to watch. */
  start(): void {
    for (const group of this.#groups) void this.#follow(group);
  }

  /** Ends every watch. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    await Promise.all([
      ...this.#groups.map(({ informer }) => informer.stop()),
      ...[...this.#pods.values()].map((pods) => pods.stop()),
    ]);
  }

  /** What keeps an object from being seen; undefined if nothing does. */
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
      // It may be served soon: the informer goes on asking.
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
      return; // It was stopped.
    }
    for (const reference of references) this.#look(group, reference);
  }

  async #isServed(reference: ObjectReference): Promise<boolean> {
    try {
      await this.#client.resolve(referencedKind(reference));
      return true;
    } catch (error) {
      // What else is wrong shows up in the health of the informer.
      return !(ApiError.is(error) && error.isNotFound);
    }
  }

  /** Finds out the state of an object, and tells it. */
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
          ? currentStatus("Job is done and gone")
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

  /** The pods of an object that is in progress by way of pods. */
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

/** The references by kind and namespace. */
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

/** What {@linkcode OwnedPods} works with. */
export interface OwnedPodsOptions {
  readonly client: Client;
  readonly clock: Clock;
  /** Called when a pod has changed. */
  readonly again: () => void;
}

/** Whether the failure of a pod is that of such an object. */
export function ownsPods({ apiVersion, kind }: ObjectReference): boolean {
  const { group } = parseApiVersion(apiVersion);
  return (group === "apps" || group === "extensions") &&
    (kind === "ReplicaSet" || kind === "StatefulSet");
}

/** The pods that one object has made, watched while it is in progress. */
export class OwnedPods {
  readonly #informer: Informer<Pod>;
  readonly #ownerUid: string | undefined;

  private constructor(informer: Informer<Pod>, ownerUid: string | undefined) {
    this.#informer = informer;
    this.#ownerUid = ownerUid;
  }

  /** Begins to watch; undefined if the object selects no pods. */
  static of(
    owner: KubernetesObject,
    { client, clock, again }: OwnedPodsOptions,
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
    informer.start().synced.catch(() => {}); // It is stopped with the wait.
    return new OwnedPods(informer, uid);
  }

  /** How many have failed. */
  failures(now: number): number {
    return this.#all().filter((pod) =>
      statusOf({ ...pod, apiVersion: "v1", kind: "Pod" }, { now }).status ===
        "Failed"
    ).length;
  }

  /** How long until the next pod that is not scheduled has failed by that. */
  nextGrace(now: number): number | undefined {
    const waits = this.#all()
      .filter((pod) =>
        statusOf({ ...pod, apiVersion: "v1", kind: "Pod" }, { now }).reason ===
          "PodNotScheduled"
      )
      .map((pod) => graceLeft(pod, now));
    return waits.length === 0 ? undefined : Math.min(...waits);
  }

  /** Ends the watch. */
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

/** The state of an object in progress, as its pods make it. */
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
