import type { KubernetesObject } from "../../core/api/object.ts";
import { immediate } from "../../core/callback.ts";
import type { StandardSchema } from "../../core/crd/standard_schema.ts";
import {
  type Condition,
  type ConditionMoment,
  findCondition,
  READY,
  RECONCILING,
  setReadiness,
  STALLED,
} from "../conditions/condition.ts";
import { CONDITIONED_FIELDS, statusWith } from "../conditions/status_schema.ts";

/** Status that phased reconcilers write. */
export interface PhasedStatus<Spec = unknown> {
  /**
   * Write-ahead log of the rollout: every action is written here before it is
   * performed, so that a crash at any time loses no state and repeats no action
   * that must happen once.
   */
  rollout?: {
    /**
     * Phase of the rollout.
     *
     * - `"Upgrading"`: the target is being deployed.
     * - `"Deployed"`: the target was deployed.
     * - `"RollingBack"`: the last stable spec is being deployed.
     * - `"RolledBack"`: the last stable spec was deployed instead of the target.
     */
    phase: "Upgrading" | "Deployed" | "RollingBack" | "RolledBack";
    /** Whether a deployment is running, as last observed. */
    running: boolean;
    /** Whether the deployment was stable when last observed. */
    healthy?: boolean | undefined;
    /** Spec that should run; absent before the first deployment. */
    target?: {
      /** Copy of the spec at the time when it was chosen. */
      readonly spec: Spec;
      /** Generation of the object when it had the recorded spec. */
      readonly generation: number;
      /** Whether nothing was deployed before this spec. */
      readonly first?: boolean | undefined;
      /** Version of the kind in which the spec is written, such as `v1`. */
      readonly version?: string | undefined;
    } | undefined;
    /** Last spec that became stable. */
    stable?: NonNullable<PhasedStatus<Spec>["rollout"]>["target"];
    /** Id of the current attempt: `<generation>.<counter>`. */
    attempt?: string | undefined;
    /** State that the suspension hands over to the next deployment. */
    savepoint?: unknown;
    /** Start of the current attempt, in milliseconds since the Unix epoch. */
    since?: number | undefined;
    /**
     * Number of writes of the status; distinguishes a newer status of another
     * replica from a manual edit.
     */
    revision?: number | undefined;
  } | undefined;
  /** Lifecycle state of the object; see `lifecycleOf`. */
  lifecycle?:
    | "Created"
    | "Upgrading"
    | "RollingBack"
    | "Suspended"
    | "Failed"
    | "RolledBack"
    | "Stable"
    | "Deployed"
    | "Deleting"
    | undefined;
  /** Newest generation whose rollout has ended, successfully or not. */
  observedGeneration?: number | undefined;
  /** Last error, until it is resolved. */
  error?: {
    /** Machine-readable reason. */
    readonly reason: string;
    /** Human-readable message, with the causes. */
    readonly message: string;
    /** Causes of the error, the nearest first. */
    readonly causes?:
      | readonly { readonly type: string; readonly message: string }[]
      | undefined;
    /** Labels whose patterns match the error or one of its causes. */
    readonly labels?: readonly string[] | undefined;
    /** Stack trace. */
    readonly stack?: string | undefined;
    /** Whether a user must intervene; such an error is not retried. */
    readonly stalled?: boolean | undefined;
  } | undefined;
  /** Ready, Reconciling and Stalled, by the conventions of kstatus. */
  conditions?: Condition[] | undefined;
}

/** Object with a phased reconciler. */
export interface PhasedObject<Spec = unknown> extends KubernetesObject {
  /** Desired state. */
  spec: Spec;
  /** Observed state, written by the reconciler. */
  status?: PhasedStatus<Spec> | undefined;
}

export type RolloutStatus<Spec = unknown> = NonNullable<
  PhasedStatus<Spec>["rollout"]
>;

export type ChosenSpec<Spec = unknown> = NonNullable<
  RolloutStatus<Spec>["target"]
>;

export type RolloutError = NonNullable<PhasedStatus["error"]>;

export type Lifecycle = NonNullable<PhasedStatus["lifecycle"]>;

/** Reason of the error, event and condition for an invalid spec. */
export const INVALID_SPEC = "ValidationError";

/**
 * Computes the lifecycle state of an object: the first that applies, in the
 * order of the Flink operator's lifecycle states. An error that is retried does
 * not change the state. One that needs a user makes it `"Failed"`, unless a
 * change is in progress or only the spec is invalid while the last valid one
 * runs.
 */
export function lifecycleOf(object: PhasedObject): Lifecycle {
  const { rollout, error } = object.status ?? {};
  if (object.metadata.deletionTimestamp !== undefined) return "Deleting";
  if (rollout?.target === undefined) {
    return error?.stalled ? "Failed" : "Created";
  }
  const { phase, running, healthy, target, stable } = rollout;
  if (phase === "Upgrading" || phase === "RollingBack") return phase;
  if (!running) return "Suspended";
  if (error?.stalled && error.reason !== INVALID_SPEC) return "Failed";
  if (phase === "RolledBack") return phase;
  return healthy && sameChoice(target, stable) ? "Stable" : "Deployed";
}

/** Status of Ready, message, and Reconciling or Stalled by lifecycle state. */
const STATE_CONDITIONS: Readonly<
  Record<
    Lifecycle,
    readonly [
      "True" | "False" | "Unknown",
      string,
      ("Reconciling" | "Stalled")?,
    ]
  >
> = {
  Created: ["Unknown", "Nothing is deployed yet", RECONCILING],
  Upgrading: ["False", "A deployment is in progress", RECONCILING],
  RollingBack: ["False", "The last stable spec is being restored", RECONCILING],
  Deployed: ["False", "Deployed, not stable yet", RECONCILING],
  Stable: ["True", "Deployed and stable"],
  Suspended: ["False", "Suspended by the spec"],
  // The desired spec is not deployed until a user changes it.
  RolledBack: [
    "False",
    "The last stable spec runs instead of the current one",
    STALLED,
  ],
  Failed: ["False", "Failed", STALLED],
  Deleting: ["False", "The object is being deleted", RECONCILING],
};

/** Reason why an object is not Ready yet. */
export interface PendingReason {
  /** Machine-readable reason. Defaults to the lifecycle state. */
  readonly reason?: string | undefined;
  /** Human-readable message. */
  readonly message: string;
}

/**
 * Computes the conditions of a lifecycle state, by the conventions of kstatus:
 * Ready always, Reconciling and Stalled only while True. Other conditions are
 * not changed.
 *
 * Ready is True only for a stable object without an error or pending reason. An
 * error that is retried sets Reconciling, one that needs a user sets Stalled.
 */
export function lifecycleConditions(
  conditions: readonly Condition[],
  facts: {
    readonly lifecycle: Lifecycle;
    readonly error: RolloutError | undefined;
    readonly pending: PendingReason | undefined;
    /** Message that replaces that of the lifecycle state. */
    readonly message: string | undefined;
  },
  moment: ConditionMoment,
): Condition[] {
  const { lifecycle, error, pending } = facts;
  const [usual, message, beside] = STATE_CONDITIONS[lifecycle];
  const isPending = error !== undefined || pending !== undefined;
  const isStalled = error?.stalled || beside === STALLED;
  return setReadiness(conditions, {
    status: isPending ? "False" : usual,
    also: isStalled ? STALLED : isPending ? RECONCILING : beside,
    reason: error?.reason ?? pending?.reason ?? lifecycle,
    message: error?.message ?? pending?.message ?? facts.message ?? message,
  }, moment);
}

/** Lifecycle states of an object. */
export const LIFECYCLES: readonly Lifecycle[] = Object.keys(
  STATE_CONDITIONS,
) as Lifecycle[];

export function readyCondition(
  conditions: readonly Condition[] = [],
): Condition | undefined {
  return findCondition(conditions, READY);
}

export function sameChoice(a?: ChosenSpec, b?: ChosenSpec): boolean {
  return a !== undefined && a.generation === b?.generation;
}

/** Revision of a status; 0 if it has none. */
export function revisionOf(status: unknown): number {
  const { rollout } = (status ?? {}) as PhasedStatus;
  const revision: unknown = rollout?.revision;
  return Number.isSafeInteger(revision) ? Math.max(0, Number(revision)) : 0;
}

/** Schema of fields that hold arbitrary objects, such as specs and errors. */
const ANY_OBJECT = {
  type: "object",
  "x-kubernetes-preserve-unknown-fields": true,
} as const;

/**
 * Creates the schema of the status of phased objects, for
 * `defineKind({ status })`; the objects of the kind then have all fields of
 * {@linkcode PhasedStatus}.
 *
 * @param extra Schema of further fields, such as results of `observe`. All of them
 * may be absent.
 *
 * @example A kind of phased objects
 * ```ts
 * import { defineKind } from "@coracle/operator/crd";
 * import { phasedStatus, readyColumns } from "@coracle/operator/workflows";
 * import { z } from "zod";
 *
 * const Database = defineKind({
 *   group: "example.com",
 *   version: "v1",
 *   kind: "Database",
 *   spec: z.object({ engine: z.string(), replicas: z.int() }),
 *   status: phasedStatus(z.object({ primary: z.string() }).partial()),
 *   printerColumns: readyColumns,
 * });
 * ```
 */
export function phasedStatus<Extra extends object = object>(
  extra?: StandardSchema<unknown, Extra>,
): StandardSchema<PhasedStatus & Partial<Extra>> {
  return statusWith(
    {
      ...CONDITIONED_FIELDS,
      rollout: ANY_OBJECT,
      lifecycle: { type: "string" },
      error: ANY_OBJECT,
    },
    extra,
  );
}

/**
 * Transitions of the write-ahead log of a rollout. They change the status in
 * memory; the run writes it.
 */
export class RolloutLog<Spec> {
  readonly status: RolloutStatus<Spec>;
  /** Whether the current attempt was recorded but not deployed. */
  #isNotDeployed = false;

  constructor(
    status: RolloutStatus<Spec>,
    { version, convert }: {
      readonly version: string;
      readonly convert: ((stored: unknown, from?: string) => Spec) | undefined;
    },
  ) {
    this.status = status;
    if (convert === undefined) return;
    for (const which of ["target", "stable"] as const) {
      const choice = status[which];
      if (choice === undefined || choice.version === version) continue;
      const spec = immediate(
        convert(choice.spec, choice.version),
        "convert()",
      );
      status[which] = { ...choice, spec, version };
    }
  }

  get deployed(): ChosenSpec<Spec> | undefined {
    const { phase, stable, target } = this.status;
    return phase === "RolledBack" ? stable : target;
  }

  get isChanging(): boolean {
    const { phase, target } = this.status;
    return target !== undefined &&
      (phase === "Upgrading" || phase === "RollingBack");
  }

  /** Attempt that may or may not have been deployed. */
  get inFlight(): string | undefined {
    const { running, attempt } = this.status;
    return this.isChanging && !running ? attempt : undefined;
  }

  /** Records that the attempt in flight was not deployed. */
  markNotDeployed(desired: ChosenSpec<Spec>): void {
    this.#isNotDeployed = true;
    const { target } = this.status;
    if (target?.first && target.generation !== desired.generation) {
      // Nothing was deployed before, so the desired spec is the first again.
      delete this.status.target;
    }
  }

  markDeployed(): void {
    const { status } = this;
    status.phase = status.phase === "RollingBack" ? "RolledBack" : "Deployed";
    status.running = true;
    status.healthy = false;
    delete status.savepoint;
    if (status.target?.first) {
      const { first: _, ...target } = status.target;
      status.target = target;
    }
  }

  /** Records whether the deployment is stable. */
  recordObservation(healthy: boolean): void {
    const { status } = this;
    status.healthy = healthy;
    if (healthy && status.phase === "Deployed") status.stable = status.target;
  }

  /**
   * Records the next deployment.
   *
   * @returns Whether the log has changed; an attempt that was not deployed is
   * already recorded, and is retried with its id.
   */
  recordDeployment(choice: ChosenSpec<Spec>, now: number): boolean {
    const { status } = this;
    const [generation, counter = "0"] = status.attempt?.split(".") ?? [];
    if (
      this.#isNotDeployed && status.target !== undefined &&
      generation === String(choice.generation)
    ) return false;
    if (status.phase !== "RollingBack") {
      status.phase = "Upgrading";
      status.target = choice;
    }
    status.attempt = `${choice.generation}.${Number(counter) + 1}`;
    status.running = false;
    status.healthy = false;
    status.since = now;
    return true;
  }

  /** Records that the deployment is being suspended before the next one. */
  markSuspending(): void {
    const { status } = this;
    // After a rollback the stable spec is running; it becomes the target.
    if (status.phase === "RolledBack") status.target = status.stable;
    // A rollback that waits for the suspension continues.
    if (status.phase !== "RollingBack") status.phase = "Upgrading";
  }

  markSuspended(savepoint: unknown): void {
    this.status.running = false;
    this.status.healthy = false;
    if (savepoint === undefined) delete this.status.savepoint;
    else this.status.savepoint = savepoint;
  }

  /** Records that the same spec is deployed again. */
  markRecovering(savepoint: unknown): void {
    const { status } = this;
    status.phase = status.phase === "RolledBack" ? "RollingBack" : "Upgrading";
    this.markSuspended(savepoint);
  }

  /** Records that the desired spec is in effect without a deployment. */
  markInForce(choice: ChosenSpec<Spec>): void {
    this.status.phase = "Deployed";
    this.status.target = choice;
    this.status.stable = choice;
  }
}
