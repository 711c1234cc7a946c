import { immediate } from "../../core/callback.ts";
import { ApiError } from "../../core/api/api_error.ts";
import { type Duration, milliseconds } from "../../core/api/duration.ts";
import { type Kind, parseApiVersion } from "../../core/api/kind.ts";
import type { LabelSelector } from "../../core/api/label_selector.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import { keyText, type ObjectKey } from "../../core/api/object_key.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../core/api/options.ts";
import { Informer } from "../../core/cache/informer/informer.ts";
import type { Client } from "../../core/client/client.ts";
import {
  type Clock,
  deadline,
  systemClock,
  type Timer,
} from "../../core/clock.ts";
import { Pod } from "../../core/kinds/core_v1.ts";
import { jsonEquals } from "../../core/patch/json_value.ts";
import {
  at,
  currentStatus,
  failedStatus,
  graceLeft,
  type ObjectStatus,
  type StatusRule,
  WAITING_RULES,
} from "./status_rules.ts";
import { aggregateStatus, statusOf } from "./status_of.ts";

export type WaitOptions = NonNullable<Parameters<typeof waitFor>[2]>;

const RULES: OptionRules<WaitOptions> = {
  desired: ["Current", "NotFound", undefined],
  failFast: "boolean?",
  timeout: "duration?",
  signal: "signal?",
  rules: "map?",
  onChange: "function?",
  clock: "clock?",
};

export type WaitedObject = WaitError["objects"][number];

/** Error for objects that did not reach the desired status. */
export class WaitError extends Error {
  /** Whether the time limit was exceeded; otherwise objects have failed. */
  readonly timedOut: boolean;
  /**
   * All objects with their last status, including those that reached the
   * desired one.
   */
  readonly objects: readonly {
    /** Reference to the object. */
    readonly reference: ObjectReference;
    /** Last status. */
    readonly status: ObjectStatus;
  }[];

  /**
   * Creates the error.
   *
   * @param why The reason why the wait ended.
   * @param objects All objects with their last status.
   * @param options The desired status, and whether the time limit was exceeded.
   */
  constructor(
    why: string,
    objects: readonly WaitedObject[],
    options: { readonly desired: string; readonly timedOut: boolean },
  ) {
    const { desired, timedOut } = options;
    const others = objects.filter(({ status }) => status.status !== desired);
    super(
      `Cannot wait until all objects are ${desired}: ${why}: received ${
        others.map(({ reference, status }) =>
          `${referenceText(reference)} status: '${status.status}'${
            status.message && `: ${status.message}`
          }`
        ).join(", ")
      }`,
    );
    this.name = "WaitError";
    this.objects = objects;
    this.timedOut = timedOut;
  }
}

/**
 * Waits until objects have reached their desired state, or no longer exist. The
 * objects are watched, not polled.
 *
 * The status is that of {@linkcode statusOf}, with three differences that need
 * a watch: a ReplicaSet or StatefulSet in progress has failed when one of its
 * pods has; a pod that cannot be scheduled has a grace period of 15 seconds;
 * and a Job is in progress while it runs. A Job with a TTL may be deleted after
 * it has ended.
 *
 * The wait ends as soon as all objects have succeeded, as soon as no further
 * one can succeed, or with `failFast` at the first failure. It needs permission
 * to list and watch the kinds, and pods for ReplicaSets and StatefulSets.
 *
 * @param client The client of the cluster.
 * @param objects The objects, or references to them.
 * @param options The desired status, and the time limit.
 * @returns All objects with their last status.
 * @throws {TypeError | RangeError} If an option is unknown or invalid.
 * @throws {WaitError} If objects have failed, or the time limit is exceeded;
 * the message has the status of each.
 * @throws The reason of the signal, if that fires.
 *
 * @example Wait for a ConfigMap
 * ```ts
 * import { ApiServer } from "@coracle/dev/apiserver";
 * import { ConfigMap } from "@coracle/operator/kinds";
 * import { waitFor } from "@coracle/operator/workflows";
 *
 * const server = await ApiServer.start({ port: false });
 * const metadata = { namespace: "default", name: "settings" };
 * const made = await server.client.create(ConfigMap, { metadata });
 * const [waited] = await waitFor(server.client, [made], { timeout: "5s" });
 * if (waited?.status.status !== "Current") throw new Error("Unexpected state");
 * await server.stop();
 * ```
 */
export async function waitFor(
  client: Client,
  objects: readonly (KubernetesObject | ObjectReference)[],
  options: {
    /**
     * Status to wait for: all objects have reached their desired state, or none
     * exists.
     *
     * @default {"Current"}
     */
    readonly desired?: "Current" | "NotFound" | undefined;
    /**
     * Whether the first failure ends the wait; otherwise it continues while any
     * object can still succeed.
     *
     * @default {false}
     */
    readonly failFast?: boolean | undefined;
    /**
     * Time limit of the wait.
     *
     * @default {"60s"}
     */
    readonly timeout?: Duration | undefined;
    /** Signal that ends the wait with its reason. */
    readonly signal?: AbortSignal | undefined;
    /** Custom rules for {@linkcode statusOf}. By default there are none. */
    readonly rules?: ReadonlyMap<string, StatusRule> | undefined;
    /** Callback for each change of the status of an object. */
    readonly onChange?:
      | ((waited: WaitError["objects"][number]) => void)
      | undefined;
    /**
     * Clock for the time limit.
     *
     * @default {systemClock}
     */
    readonly clock?: Clock | undefined;
  } = {},
): Promise<WaitError["objects"]> {
  const subject = "waitFor()";
  checkOption(client, "object", { name: "client", subject });
  checkOption(objects, "array", { name: "objects", subject });
  checkOptions(options, RULES, subject);
  const { timeout = "60s", signal, clock = systemClock } = options;
  const limit = milliseconds(timeout, "timeout");
  signal?.throwIfAborted();
  if (objects.length === 0) return [];
  const wait = new ObjectWait(client, objects, { ...options, clock });
  const onTimeout = () => wait.timeoutError();
  try {
    wait.start();
    return await deadline(wait.done, limit, { clock, signal, onTimeout });
  } finally {
    await wait.stop();
  }
}

/** Object of a wait, with its informers and timer. */
interface Member {
  readonly reference: ObjectReference;
  status: ObjectStatus;
  /** Shared informer of the object's kind; undefined before it starts. */
  informer?: Informer<KubernetesObject>;
  /** Informer of the object's pods while it is in progress. */
  pods?: Informer<Pod>;
  /** Timer for the end of a grace period. */
  timer?: Timer;
  /** Whether the object is a Job with a TTL, which is deleted after its end. */
  mayVanish: boolean;
}

const NOT_FOUND: ObjectStatus = {
  status: "NotFound",
  reason: "",
  message: "Resource not found",
};

/** Kinds that count as failed when one of their pods has failed. */
const POD_OWNERS: RegExp = /^(?:apps|extensions)\/(?:ReplicaSet|StatefulSet)$/;

/**
 * Wait for objects of any kinds. There is one watch for each kind and namespace,
 * restricted to the object if it is the only one.
 */
class ObjectWait {
  readonly #client: Client;
  readonly #options: WaitOptions & { readonly clock: Clock };
  readonly #desired: "Current" | "NotFound";
  readonly #rules: ReadonlyMap<string, StatusRule>;
  readonly #members: Map<string, Member> = new Map();
  readonly #informers: { stop(): Promise<void> }[] = [];
  readonly #end: PromiseWithResolvers<readonly WaitedObject[]> = Promise
    .withResolvers();
  /** Promise of all objects, once they have reached the desired status. */
  readonly done: Promise<readonly WaitedObject[]> = this.#end.promise;
  #stopped = false;

  constructor(
    client: Client,
    objects: readonly (KubernetesObject | ObjectReference)[],
    options: WaitOptions & { readonly clock: Clock },
  ) {
    this.#client = client;
    this.#options = options;
    this.#desired = options.desired ?? "Current";
    this.#rules = new Map([...WAITING_RULES, ...options.rules ?? []]);
    for (const object of objects) {
      const reference = referenceOf(object);
      const status = { status: "Unknown", reason: "", message: "" } as const;
      this.#members.set(referenceId(reference), {
        reference,
        status,
        mayVanish: this.#mayVanish(object),
      });
    }
  }

  start(): void {
    const groups = Map.groupBy(
      this.#members.values(),
      ({ reference: { apiVersion, kind, namespace = "" } }) =>
        `${apiVersion} ${kind} ${namespace}`,
    );
    for (const group of groups.values()) {
      this.#follow(group).catch((error) => this.#end.reject(error));
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const { timer } of this.#members.values()) timer?.cancel();
    await Promise.all(this.#informers.map((informer) => informer.stop()));
  }

  timeoutError(): WaitError {
    for (const member of this.#members.values()) {
      const { informer, status } = member;
      const trouble = informer?.health().watches.find(({ synced }) => !synced)
        ?.lastError?.message;
      if (trouble === undefined) continue;
      const message = [status.message, trouble].filter(Boolean).join("; ");
      member.status = { ...status, message };
    }
    return this.#error("the time limit was exceeded", true);
  }

  #error(why: string, timedOut: boolean): WaitError {
    const desired = this.#desired;
    return new WaitError(why, this.#results(), { desired, timedOut });
  }

  #results(): readonly WaitedObject[] {
    return Array.from(
      this.#members.values(),
      ({ reference, status }) => ({ reference, status }),
    );
  }

  /** Watches the objects of one kind in one namespace. */
  async #follow(members: readonly Member[]): Promise<void> {
    const { reference } = members[0]!;
    const kind = referencedKind(reference);
    try {
      await this.#client.resolve(kind);
    } catch (error) {
      // Other errors show in the health of the informer.
      if (ApiError.is(error) && error.isNotFound) {
        // The kind may be installed later: the informer retries.
        for (const member of members) this.#update(member, NOT_FOUND);
      }
    }
    if (this.#stopped) return;
    const { namespace, name } = reference;
    const informer = this.#watch(kind, {
      ...(namespace && { namespaces: [namespace] }),
      ...(members.length === 1 && { fieldSelector: `metadata.name=${name}` }),
    });
    const byKey = new Map(
      members.map((member) => [keyText(member.reference), member]),
    );
    for (const member of members) member.informer = informer;
    informer.addHandler(({ key }) => {
      const member = byKey.get(key);
      if (member !== undefined) this.#look(member);
    }, { name: "wait" });
    await informer.start().synced;
    for (const member of members) this.#look(member);
  }

  #watch<T extends KubernetesObject>(
    kind: Kind<T>,
    selection: ConstructorParameters<typeof Informer<T>>[2],
  ): Informer<T> {
    const informer = new Informer(this.#client, kind, {
      clock: this.#options.clock,
      prune: ["metadata.managedFields"],
      ...selection,
    });
    this.#informers.push(informer);
    return informer;
  }

  /** Reads an object; a rule that throws ends the wait. */
  #look(member: Member): void {
    try {
      this.#read(member);
    } catch (error) {
      this.#end.reject(error);
    }
  }

  #read(member: Member): void {
    const { reference, informer } = member;
    if (this.#stopped || informer === undefined) return;
    member.timer?.cancel();
    const stored = informer.get(keyText(reference));
    if (stored === undefined) {
      if (!informer.hasSynced) return;
      const vanished = currentStatus("Job is done and deleted");
      this.#update(member, member.mayVanish ? vanished : NOT_FOUND);
      return;
    }
    const object = asReferenced(stored, reference);
    member.mayVanish ||= this.#mayVanish(object);
    const { clock } = this.#options;
    const now = clock.wallTime();
    const status = statusOf(object, { now, rules: this.#rules });
    const pods = status.status === "InProgress"
      ? this.#podsOf(member, object).map((pod) => ({
        object: pod,
        ...statusOf({ ...pod, apiVersion: "v1", kind: "Pod" }, { now }),
      }))
      : [];
    const graces = [{ object, ...status }, ...pods]
      .filter(({ reason }) => reason === "PodNotScheduled")
      .map(({ object }) => graceLeft(object, now));
    if (graces.length > 0) {
      const again = () => this.#look(member);
      member.timer = clock.setTimer(again, Math.min(...graces));
    }
    const failures = pods.filter(({ status }) => status === "Failed").length;
    const failed = failedStatus("PodsFailed", `${failures} pods have failed`);
    this.#update(member, failures === 0 ? status : failed);
  }

  /** Watches and returns the pods on which an object's progress depends. */
  #podsOf(member: Member, object: KubernetesObject): readonly Pod[] {
    const { apiVersion, kind } = member.reference;
    const { group } = parseApiVersion(apiVersion);
    const { namespace, uid } = object.metadata;
    const labelSelector = at(object, "spec.selector") as
      | LabelSelector
      | undefined;
    if (
      !POD_OWNERS.test(`${group}/${kind}`) || labelSelector === undefined ||
      namespace === undefined
    ) return [];
    if (member.pods === undefined) {
      const namespaces = [namespace];
      member.pods = this.#watch(Pod, { namespaces, labelSelector });
      member.pods.addHandler(() => this.#look(member), { name: "wait" });
      member.pods.start().synced.catch(() => {}); // It is stopped with the wait.
    }
    return member.pods.list().filter(({ metadata }) => {
      const owners = metadata.ownerReferences ?? [];
      return owners.length === 0 || owners.some((owner) => owner.uid === uid);
    });
  }

  #mayVanish(object: KubernetesObject | ObjectReference): boolean {
    return this.#desired === "Current" && object.kind === "Job" &&
      typeof at(object, "spec.ttlSecondsAfterFinished") === "number";
  }

  #update(member: Member, status: ObjectStatus): void {
    if (this.#stopped || jsonEquals(member.status, status)) return;
    member.status = status;
    try {
      const waited = { reference: member.reference, status };
      immediate(this.#options.onChange?.(waited), "onChange()");
    } catch (error) {
      this.#end.reject(error);
    }
    this.#finishIfDone();
  }

  #finishIfDone(): void {
    const desired = this.#desired;
    const objects = this.#results();
    const states = objects.map(({ status }) => status.status);
    const isOver = states.every((state) =>
      state === "Failed" || state === desired
    );
    if (aggregateStatus(states, desired) === desired) {
      this.#end.resolve(objects);
    } else if (
      // A failed object can still be deleted.
      desired !== "NotFound" && states.includes("Failed") &&
      (isOver || this.#options.failFast)
    ) this.#end.reject(this.#error("objects have failed", false));
  }
}

/** Reference to an object of any kind, in a form that a status can hold. */
export interface ObjectReference extends ObjectKey {
  /** API version of the object, such as `apps/v1`. */
  readonly apiVersion: string;
  /** Kind of the object, such as `Deployment`. */
  readonly kind: string;
}

/** Returns the reference of an object; a reference is returned as it is. */
export function referenceOf(
  object: KubernetesObject | ObjectReference,
): ObjectReference {
  const { apiVersion, kind } = object;
  const { namespace, name } = "metadata" in object ? object.metadata : object;
  if (!apiVersion || !kind || !name) {
    throw new TypeError(
      `Cannot refer to an object: it must have apiVersion, kind and name: received ${
        JSON.stringify({ apiVersion, kind, name })
      }`,
    );
  }
  return { apiVersion, kind, ...(namespace && { namespace }), name };
}

/** Formats a reference for users: `Deployment/default/web`. */
export function referenceText(reference: ObjectReference): string {
  return `${reference.kind}/${keyText(reference)}`;
}

/** Unique id of an object, independent of the version of its kind. */
export function referenceId(reference: ObjectReference): string {
  const { group } = parseApiVersion(reference.apiVersion);
  return `${group}/${referenceText(reference)}`;
}

export function referencedKind(reference: ObjectReference): Kind {
  const { apiVersion, kind } = reference;
  return { ...parseApiVersion(apiVersion), kind };
}

/**
 * Adds apiVersion and kind to an object; responses and events may lack them.
 */
export function asReferenced<T extends KubernetesObject>(
  object: T,
  { apiVersion, kind }: ObjectReference,
): T {
  return { ...object, apiVersion, kind };
}
