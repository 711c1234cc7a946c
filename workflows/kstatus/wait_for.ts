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
export interface WaitOptions {
  /**
   * What to wait for: that all are what they ask for, or that all are gone.
   *
   * @default {"Current"}
   */
  readonly desired?: "Current" | "NotFound" | undefined;
  /**
   * Whether the first failure ends the wait; otherwise it goes on while any
   * object may still get there.
   *
   * @default {false}
   */
  readonly failFast?: boolean | undefined;
  /**
   * How long to wait at most.
   *
   * @default {"60s"}
   */
  readonly timeout?: Duration | undefined;
  /** Ends the wait; what it throws is the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Rules of your own, as of {@linkcode statusOf}.
   *
   * @default {none}
   */
  readonly rules?: ReadonlyMap<string, StatusRule> | undefined;
  /**
   * Told each time the state of an object changes.
   *
   * @default {nobody}
   */
  readonly onChange?: ((waited: WaitedObject) => void) | undefined;
  /**
   * Measures the time.
   *
   * @default {systemClock}
   */
  readonly clock?: Clock | undefined;
}

const RULES: OptionRules<WaitOptions> = {
  desired: ["Current", "NotFound", undefined],
  failFast: "boolean?",
  timeout: "duration?",
  signal: "signal?",
  rules: "map?",
  onChange: "function?",
  clock: "clock?",
};

/** An object that is waited for, and in which state it was seen last. */
export interface WaitedObject {
  /** Which one. */
  readonly reference: ObjectReference;
  /** In which state, and why. */
  readonly status: ObjectStatus;
}

/** Objects did not get to where they were waited for. */
export class WaitError extends Error {
  /** Whether the time was up; otherwise objects have failed. */
  readonly timedOut: boolean;
  /** Every object with its last state, also those that got there. */
  readonly objects: readonly WaitedObject[];

  /**
   * Says which objects did not get there.
   *
   * @param why What ended the wait.
   * @param objects Every object with its last state.
   * @param options What all should have been, and whether the time was up.
   */
  constructor(
    why: string,
    objects: readonly WaitedObject[],
    options: { readonly desired: string; readonly timedOut: boolean },
  ) {
    const { desired, timedOut } = options;
    const others = objects.filter(({ status }) => status.status !== desired);
    super(
      `Cannot wait until all are ${desired}: ${why}: received ${
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
 * Waits until objects are what they ask for, or are gone, by watching them:
 * nothing is asked again and again.
 *
 * Their state is that of {@linkcode statusOf}, with three differences that only
 * a watch can make: a ReplicaSet or StatefulSet in progress has failed once a
 * pod of it has; a pod that cannot be scheduled is given 15 seconds; and a Job
 * is in progress while it runs. A Job that cleans up after itself may be gone.
 *
 * The wait ends as soon as all are there, as soon as none can get there any
 * more, or with `failFast` at the first failure. It needs the rights to list and
 * watch the kinds, and pods for ReplicaSets and StatefulSets.
 *
 * @param client Speaks to the cluster.
 * @param objects Which ones, as they were sent or by reference.
 * @param options What for, and how long.
 * @returns Every object with its last state.
 * @throws {TypeError | RangeError} If an option is unknown or makes no sense.
 * @throws {WaitError} If objects have failed, or the time is up; it names each
 * with its state.
 * @throws The reason of the signal, if that fires.
 *
 * @example A ConfigMap is there at once
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
  options: WaitOptions = {},
): Promise<readonly WaitedObject[]> {
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

/** One wait for objects. */
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
      onStatus: (reference, status) => this.#see(reference, status),
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
    return new WaitError("the time is up", objects, {
      desired,
      timedOut: true,
    });
  }

  #see(reference: ObjectReference, status: ObjectStatus): void {
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
    this.#conclude();
  }

  #conclude(): void {
    const desired = this.#desired;
    const objects = [...this.#waited.values()];
    const states = objects.map(({ status }) => status.status);
    if (aggregateStatus(states, desired) === desired) {
      this.#done.resolve(objects);
      return;
    }
    // What is on its way out may have failed before: that is no obstacle.
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
