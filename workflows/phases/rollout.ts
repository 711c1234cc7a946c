import type { KubernetesObject } from "../../core/api/object.ts";
import type { Condition } from "../conditions/condition.ts";

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
}

/** What is known of an error, in the status. */
export interface RolloutError {
  /** Why, as one word for programs. */
  readonly reason: string;
  /** Why, with its causes, for people. */
  readonly message: string;
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
}

/** The status that phased reconcilers write. */
export interface PhasedStatus<Spec = unknown> {
  /** The write-ahead log. */
  rollout?: RolloutStatus<Spec> | undefined;
  /** Where the object is in its life. */
  lifecycle?: Lifecycle | undefined;
  /** The newest generation that was acted upon. */
  observedGeneration?: number | undefined;
  /** What went wrong last. */
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
 * The order is that of the Flink operator's lifecycle states.
 *
 * @param object The object with its status.
 */
export function lifecycleOf(object: PhasedObject): Lifecycle {
  const { rollout, error } = object.status ?? {};
  if (object.metadata.deletionTimestamp !== undefined) return "Deleting";
  if (rollout?.target === undefined) {
    return error === undefined ? "Created" : "Failed";
  }
  const { phase, running, target, stable } = rollout;
  if (phase === "Upgrading" || phase === "RollingBack") return phase;
  if (!running) return "Suspended";
  if (error !== undefined) return "Failed";
  if (phase === "RolledBack") return phase;
  return sameChoice(target, stable) ? "Stable" : "Deployed";
}

/** Whether two chosen specs are the same choice. */
export function sameChoice(
  a: ChosenSpec | undefined,
  b: ChosenSpec | undefined,
): boolean {
  return a !== undefined && b !== undefined && a.generation === b.generation;
}
