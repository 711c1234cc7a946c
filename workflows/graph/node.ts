import type { KubernetesObject } from "../../core/api/object.ts";
import type {
  Context,
  MaybePromise,
} from "../../core/controller/reconciler.ts";
import type { Dependent } from "../dependents/dependent.ts";
import type { GraphNode } from "./graph.ts";

/** What a condition of a node decides on. */
export interface NodeContext<P extends KubernetesObject, S> {
  /** The primary, as the run was given it. */
  readonly primary: P;
  /** The context of the run. */
  readonly ctx: Context<P>;
  /** The resource of the node as it is now; undefined if there is none. */
  readonly resource: S | undefined;
}

/** A verdict with what it was reached on, readable from the result. */
export interface Verdict {
  /** Whether the condition holds. */
  readonly met: boolean;
  /** Anything that says why. */
  readonly detail?: unknown;
}

/** Decides something about a node; asked at most once a run. */
export type When<P extends KubernetesObject, S> = (
  context: NodeContext<P, S>,
) => MaybePromise<boolean | Verdict>;

/** When a node does what, and after which others. */
export interface NodeOptions<P extends KubernetesObject, S> {
  /**
   * The nodes that must be ready before this one.
   *
   * @default {[]}
   */
  readonly dependsOn?: readonly string[] | undefined;
  /**
   * Whether the resource should exist. If not, it is deleted, and before it
   * everything that depends on it.
   *
   * @default {always}
   */
  readonly reconcileWhen?: When<P, S> | undefined;
  /**
   * Whether to leave the resource alone in this run: it is neither brought in
   * line nor deleted, and counts as ready.
   *
   * @default {never}
   */
  readonly skipWhen?: When<P, S> | undefined;
  /**
   * Whether the resource does its work, so that what depends on it can start.
   *
   * @default {as soon as it is reconciled}
   */
  readonly readyWhen?: When<P, S> | undefined;
  /**
   * Whether the resource is gone after it was deleted, so that what it depends
   * on can be deleted too.
   *
   * @default {as soon as its deletion was asked for}
   */
  readonly deletedWhen?: When<P, S> | undefined;
  /**
   * Whether the node takes part at all, for kinds that a cluster may lack. If
   * not, it is not touched, and what depends on it is deleted.
   *
   * @default {always}
   */
  readonly activeWhen?: When<P, S> | undefined;
}

/** Which of its conditions a node was asked. */
export type ConditionName =
  | "activeWhen"
  | "skipWhen"
  | "reconcileWhen"
  | "readyWhen"
  | "deletedWhen";

/** One dependent in a workflow. */
export interface WorkflowNode<P extends KubernetesObject, S = unknown>
  extends GraphNode {
  /** What is brought in line. */
  readonly dependent: Dependent<P, S>;
  /** Its conditions. */
  readonly when: Omit<NodeOptions<P, S>, "dependsOn">;
}

/**
 * What became of a node in a run.
 *
 * - `"reconciled"`: brought in line, and ready.
 * - `"notReady"`: brought in line; `readyWhen` does not hold yet.
 * - `"waiting"`: not started, since something it depends on is not ready.
 * - `"skipped"`: left alone, as `skipWhen` says.
 * - `"inactive"`: takes no part, as `activeWhen` says.
 * - `"deleted"`: not wanted, and deleted.
 * - `"deleting"`: not wanted; it, or what depends on it, is not gone yet.
 * - `"failed"`: an error was thrown.
 */
export type NodeState =
  | "reconciled"
  | "notReady"
  | "waiting"
  | "skipped"
  | "inactive"
  | "deleted"
  | "deleting"
  | "failed";

/** What became of a node in a run, and why. */
export interface NodeResult<S = unknown> {
  /** What became of it. */
  readonly state: NodeState;
  /** What was done for it; undefined if it was not reconciled. */
  readonly operation?: "created" | "updated" | "none" | undefined;
  /** The resource after it was reconciled. */
  readonly resource?: S | undefined;
  /** What was thrown, if it failed. */
  readonly error?: unknown;
  /** The nodes that it waits for. */
  readonly waitingFor?: readonly string[] | undefined;
  /** The verdicts of the conditions that were asked. */
  readonly verdicts: Readonly<Partial<Record<ConditionName, Verdict>>>;
}
