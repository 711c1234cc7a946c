import type { KubernetesObject } from "../../core/api/object.ts";
import type { OptionRules } from "../../core/api/option_rules.ts";
import type { Dependent } from "../dependents/dependent.ts";
import type { CrdPresent } from "./crd_presence.ts";
import type { GraphNode } from "./graph.ts";
import type {
  ActiveWhen,
  ConditionName,
  Verdict,
  When,
} from "./node_condition.ts";

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
   * Whether the node takes part at all, for kinds that a cluster may lack:
   * {@linkcode crdPresent}, or a function. If not, it is not touched, what
   * depends on it is deleted, and its event sources are not started.
   *
   * @default {always}
   */
  readonly activeWhen?: ActiveWhen<P> | CrdPresent | undefined;
}

/** What the options of a node must be. */
export const NODE_RULES: OptionRules<
  NodeOptions<KubernetesObject, never>
> = {
  dependsOn: "strings?",
  reconcileWhen: "function?",
  skipWhen: "function?",
  readyWhen: "function?",
  deletedWhen: "function?",
  activeWhen: "any?",
};

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

/** The verdicts of a node's conditions; those that were not asked are absent. */
export type NodeVerdicts = Partial<Record<ConditionName, Verdict>>;

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
  readonly verdicts: Readonly<NodeVerdicts>;
}
