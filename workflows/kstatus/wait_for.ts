import { type Duration, milliseconds } from "../../core/api/duration.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../core/api/options.ts";
import type { Client } from "../../core/client/client.ts";
import { type Clock, deadline, systemClock } from "../../core/clock.ts";
import {
  type ObjectReference,
  referenceId,
  referenceOf,
  referenceText,
} from "./object_reference.ts";
import type { ObjectStatus, StatusRule } from "./object_status.ts";
import { ObjectWatch } from "./object_watch.ts";
import { aggregateStatus } from "./status_of.ts";

/** Options of {@linkcode waitFor}. */
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

/** Object that is waited for, with its last status. */
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
 * import { ApiServer } from "@coracle/operator/apiserver";
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
    /** Custom rules, as of {@linkcode statusOf}. There are none by default. */
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

/** Wait for objects. */
class ObjectWait {
  readonly #options: WaitOptions;
  readonly #desired: "Current" | "NotFound";
  readonly #waited: Map<string, WaitedObject> = new Map();
  readonly #watch: ObjectWatch;
  readonly #done: PromiseWithResolvers<readonly WaitedObject[]> = Promise
    .withResolvers();

  constructor(
    client: Client,
    objects: readonly (KubernetesObject | ObjectReference)[],
    options: WaitOptions & { readonly clock: Clock },
  ) {
    this.#options = options;
    this.#desired = options.desired ?? "Current";
    for (const object of objects) {
      const reference = referenceOf(object);
      this.#waited.set(referenceId(reference), {
        reference,
        status: { status: "Unknown", reason: "", message: "" },
      });
    }
    this.#watch = new ObjectWatch(client, objects, {
      rules: options.rules,
      clock: options.clock,
      jobsMayVanish: this.#desired === "Current",
      onStatus: (reference, status) => this.#update(reference, status),
    });
  }

  get done(): Promise<readonly WaitedObject[]> {
    return this.#done.promise;
  }

  start(): void {
    this.#watch.start();
  }

  async stop(): Promise<void> {
    await this.#watch.stop();
  }

  fail(reason: unknown): void {
    this.#done.reject(reason);
  }

  /** Error for a wait that has reached its time limit. */
  timeoutError(): WaitError {
    const objects = [...this.#waited.values()].map((waited) => {
      const trouble = this.#watch.troubleOf(waited.reference);
      if (trouble === undefined) return waited;
      const message = [waited.status.message, trouble].filter(Boolean)
        .join("; ");
      return { ...waited, status: { ...waited.status, message } };
    });
    const desired = this.#desired;
    return new WaitError("the time limit was exceeded", objects, {
      desired,
      timedOut: true,
    });
  }

  #update(reference: ObjectReference, status: ObjectStatus): void {
    const id = referenceId(reference);
    const old = this.#waited.get(id)?.status;
    if (
      old?.status === status.status && old.reason === status.reason &&
      old.message === status.message
    ) return;
    const waited = { reference, status };
    this.#waited.set(id, waited);
    try {
      this.#options.onChange?.(waited);
    } catch (error) {
      this.fail(error);
    }
    this.#finishIfDone();
  }

  #finishIfDone(): void {
    const desired = this.#desired;
    const objects = [...this.#waited.values()];
    const states = objects.map(({ status }) => status.status);
    if (aggregateStatus(states, desired) === desired) {
      this.#done.resolve(objects);
      return;
    }
    // A failed object can still be deleted.
    if (desired === "NotFound" || !states.includes("Failed")) return;
    const isOver = states.every((state) =>
      state === "Failed" || state === desired
    );
    if (!isOver && !this.#options.failFast) return;
    this.fail(
      new WaitError("objects have failed", objects, {
        desired,
        timedOut: false,
      }),
    );
  }
}
