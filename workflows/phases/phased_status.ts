import type { KubernetesObject } from "../../core/api/object.ts";
import type { StandardSchema } from "../../core/crd/standard_schema.ts";
import type { Condition } from "../conditions/condition.ts";
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
      /** The spec as it was when it was chosen. */
      readonly spec: Spec;
      /** Generation of the object with this spec. */
      readonly generation: number;
      /** Whether nothing was deployed before it. */
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
    /** Whether a user must intervene: it is not retried. */
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

/** Write-ahead log of a rollout, in `status.rollout`. */
export type RolloutStatus<Spec = unknown> = NonNullable<
  PhasedStatus<Spec>["rollout"]
>;

/** Spec that was chosen for deployment, with its generation. */
export type ChosenSpec<Spec = unknown> = NonNullable<
  RolloutStatus<Spec>["target"]
>;

/** Error in the status of a phased object. */
export type RolloutError = NonNullable<PhasedStatus["error"]>;

/** Lifecycle state of an object, for users and metrics. */
export type Lifecycle = NonNullable<PhasedStatus["lifecycle"]>;

/** Reason of the error, event and condition for an invalid spec. */
export const INVALID_SPEC = "ValidationError";

/**
 * Computes the lifecycle state of an object: the first that applies, in the
 * order of the Flink operator's lifecycle states. An error that is retried does
 * not change the state. One that needs a user makes it `"Failed"`, unless a
 * change is in progress or only the spec is invalid while the last valid one
 * runs.
 *
 * @param object The object with its status.
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

/** Whether two chosen specs are of the same generation. */
export function sameChoice(
  a: ChosenSpec | undefined,
  b: ChosenSpec | undefined,
): boolean {
  return a !== undefined && b !== undefined && a.generation === b.generation;
}

const PHASES: readonly RolloutStatus["phase"][] = [
  "Upgrading",
  "Deployed",
  "RollingBack",
  "RolledBack",
];

/**
 * Checks a write-ahead log: a user may have edited it while no replica was
 * running, and acting on an invalid one could lose state.
 *
 * @param rollout The log in the status.
 * @returns The problem; undefined if it is valid.
 */
export function rolloutIssue(rollout: RolloutStatus): string | undefined {
  const { phase, running, target, stable, attempt, since } = rollout;
  if (!PHASES.includes(phase)) return `phase is ${JSON.stringify(phase)}`;
  if (typeof running !== "boolean") return "running is neither true nor false";
  if (!isChoice(target)) return "target is no spec with its generation";
  if (!isChoice(stable)) return "stable is no spec with its generation";
  if (attempt !== undefined && !/^\d+\.\d+$/.test(attempt)) {
    return `attempt is ${JSON.stringify(attempt)}`;
  }
  if (target !== undefined && attempt === undefined && running) {
    return "something runs without an attempt";
  }
  return since === undefined || Number.isFinite(since)
    ? undefined
    : "since is no time";
}

function isChoice(choice: ChosenSpec | undefined): boolean {
  return choice === undefined ||
    choice !== null && typeof choice === "object" &&
      Number.isInteger(choice.generation) && choice.spec !== undefined;
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
 * @param extra Schema of further fields, in which `observe` may store its
 * results. All of them may be absent.
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
 * if (Database.plural !== "databases") throw new Error("Unexpected plural");
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
