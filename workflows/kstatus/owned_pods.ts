import { parseApiVersion } from "../../core/api/kind.ts";
import type { LabelSelector } from "../../core/api/label_selector.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import type { Informer } from "../../core/cache/informer/informer.ts";
import type { Client } from "../../core/client/client.ts";
import type { Clock } from "../../core/clock.ts";
import { Pod } from "../../core/kinds/core_v1.ts";
import { at } from "./fields.ts";
import type { ObjectReference } from "./object_reference.ts";
import { failed, type ObjectStatus } from "./object_status.ts";
import { graceLeft } from "./resource_rules.ts";
import { statusOf } from "./status_of.ts";

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
    const informer = client.informer(Pod, {
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
    : failed("PodsFailed", `${count} pods have failed`);
}
