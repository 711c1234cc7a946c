import type { StandardSchema } from "../../core/crd/standard_schema.ts";
import { CONDITIONED_FIELDS, statusWith } from "../conditions/status_schema.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import type { Condition } from "../conditions/condition.ts";
import type { ErrorReport } from "./error_report.ts";

/** The fields of what is stored as it is: specs, and what went wrong. */
const ANYTHING = {
  type: "object",
  "x-kubernetes-preserve-unknown-fields": true,
} as const;

/**
 * The schema of the status of phased objects, for `defineKind({ status })`; with
 * it the type of the kind's objects has all of {@linkcode PhasedStatus}.
 *
 * @param extra The fields of the status that are the user's own: `observe` may
 * keep in them what it learns. All of them may be absent.
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
      rollout: ANYTHING,
      lifecycle: { type: "string" },
      error: ANYTHING,
    },
    extra,
  );
}

/**
 * Where a rollout is.
 *
 * - `"Upgrading"`: on the way to the target.
 * - `"Deployed"`: the target was deployed.
 * - `"RollingBack"`: on the way back to the last stable spec.
 * - `"RolledBack"`: the last stable spec was deployed instead of the target.
 */
export type RolloutPhase =
  | "Upgrading"
  | "Deployed"
  | "RollingBack"
  | "RolledBack";

/** A spec that was chosen, and of which generation it is. */
export interface ChosenSpec<Spec = unknown> {
  /** The spec as it was then. */
  readonly spec: Spec;
  /** The generation of the object that it is from. */
  readonly generation: number;
  /** Whether nothing was ever deployed before it. */
  readonly first?: boolean | undefined;
  /** The version of the kind that it is written in, such as `v1`. */
  readonly version?: string | undefined;
}

/**
 * The write-ahead log of a rollout, in `status.rollout`: whatever is about to be
 * done is written here first, so that a crash at any moment loses nothing and
 * repeats nothing that must not be repeated.
 */
export interface RolloutStatus<Spec = unknown> {
  /** Where it is. */
  phase: RolloutPhase;
  /** Whether something runs, as far as was observed. */
  running: boolean;
  /** Whether it did its work when it was last looked at. */
  healthy?: boolean | undefined;
  /** What should run; absent before the first deployment. */
  target?: ChosenSpec<Spec> | undefined;
  /** What has last run well. */
  stable?: ChosenSpec<Spec> | undefined;
  /** Stamps the present attempt: `<generation>.<counter>`. */
  attempt?: string | undefined;
  /** What a suspension handed over to the deployment after it. */
  carry?: unknown;
  /** When the present attempt began, in milliseconds since the Unix epoch. */
  since?: number | undefined;
  /**
   * How often the status was written. It tells the newer status of another
   * replica from one that somebody has changed by hand.
   */
  revision?: number | undefined;
}

/** What went wrong, in the status. */
export interface RolloutError extends ErrorReport {
  /** Whether it needs somebody's help: it is not tried again by itself. */
  readonly stalled?: boolean | undefined;
}

/** The reason of the error, event and condition that an invalid spec is. */
export const INVALID_SPEC = "ValidationError";

/** The status that phased reconcilers write. */
export interface PhasedStatus<Spec = unknown> {
  /** The write-ahead log. */
  rollout?: RolloutStatus<Spec> | undefined;
  /** Where the object is in its life. */
  lifecycle?: Lifecycle | undefined;
  /** The newest generation that was brought to an end, good or bad. */
  observedGeneration?: number | undefined;
  /** What went wrong last, until it is right again. */
  error?: RolloutError | undefined;
  /** Ready, Reconciling and Stalled, as kstatus wants them. */
  conditions?: Condition[] | undefined;
}

/** An object whose reconciler works in phases. */
export interface PhasedObject<Spec = unknown> extends KubernetesObject {
  /** What somebody asks for. */
  spec: Spec;
  /** What the reconciler says. */
  status?: PhasedStatus<Spec> | undefined;
}

/** Where an object is in its life, for people and metrics. */
export type Lifecycle =
  | "Created"
  | "Upgrading"
  | "RollingBack"
  | "Suspended"
  | "Failed"
  | "RolledBack"
  | "Stable"
  | "Deployed"
  | "Deleting";

/**
 * Where an object is in its life: whichever of these fits first.
 *
 * The order is that of the Flink operator's lifecycle states. An error that is
 * tried again does not change where an object is; one that needs somebody's help
 * makes it `"Failed"`, unless a change is under way or only the spec is invalid
 * while the last valid one runs.
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

/** Whether two chosen specs are the same choice. */
export function sameChoice(
  a: ChosenSpec | undefined,
  b: ChosenSpec | undefined,
): boolean {
  return a !== undefined && b !== undefined && a.generation === b.generation;
}

const PHASES: readonly RolloutPhase[] = [
  "Upgrading",
  "Deployed",
  "RollingBack",
  "RolledBack",
];

/**
 * What is wrong with a write-ahead log, or undefined: somebody may have edited
 * it while nobody looked, and acting upon rubbish could lose state.
 *
 * @param rollout What stands in the status.
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
