import type { KubernetesObject } from "../../core/api/object.ts";
import type { OptionRules } from "../../core/api/options.ts";
import type { ResolvedKind } from "../../core/api/kind.ts";
import type { Clock } from "../../core/clock.ts";
import type { Context } from "../../core/controller/context.ts";
import type { MaybePromise } from "../../core/controller/reconciler.ts";
import type { Dependent, Verdict } from "../dependents/dependent.ts";
import { statusOf } from "../kstatus/status_of.ts";
import { WAITING_RULES } from "../kstatus/status_rules.ts";

/**
 * Dependencies and conditions of a workflow node. A condition is evaluated at
 * most once a run.
 */
export interface NodeOptions<P extends KubernetesObject, S> {
  /**
   * Names of the nodes that must be ready before this one.
   *
   * @default {[]}
   */
  readonly dependsOn?: readonly string[] | undefined;
  /**
   * Whether the resource should exist. If not, it is deleted, after everything
   * that depends on it. It is asked when the dependencies are ready: until then
   * an existing resource stays. By default it should exist.
   */
  readonly reconcileWhen?:
    | ((context: {
      /** Primary of the run. */
      readonly primary: P;
      /** Context of the run. */
      readonly ctx: Context<P>;
      /** Current resource of the node; undefined if it does not exist. */
      readonly resource: S | undefined;
    }) => MaybePromise<boolean | Verdict>)
    | undefined;
  /**
   * Whether to skip the node in this run: the resource is neither reconciled nor
   * deleted, and counts as ready. By default it is not skipped.
   */
  readonly skipWhen?: NodeOptions<P, S>["reconcileWhen"];
  /**
   * Whether the resource is ready, so that the nodes which depend on it can
   * start. By default it is ready once it is reconciled.
   */
  readonly readyWhen?: NodeOptions<P, S>["reconcileWhen"];
  /**
   * Whether the deletion of the resource is complete, so that its dependencies
   * can be deleted too. By default a requested deletion is enough.
   */
  readonly deletedWhen?: NodeOptions<P, S>["reconcileWhen"];
  /**
   * Whether the node is active, for kinds that a cluster may not serve: the
   * result of `crdPresent`, or a function. An inactive node is not touched, the
   * nodes that depend on it are deleted, and its event sources are not started.
   * By default it is active.
   */
  readonly activeWhen?:
    | ((
      context: { readonly primary: P; readonly ctx: Context<P> },
    ) => MaybePromise<boolean | Verdict>)
    | { readonly crdOf: ResolvedKind }
    | undefined;
}

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

/** Node of a workflow: a dependent, its dependencies and its conditions. */
export interface WorkflowNode<P extends KubernetesObject, S = unknown> {
  /** Name of the node, unique in the workflow. */
  readonly name: string;
  /** Names of the nodes that must be ready before this one. */
  readonly dependsOn: readonly string[];
  /** Resource that is reconciled. */
  readonly dependent: Dependent<P, S>;
  /** Conditions of the node. */
  readonly when: Omit<NodeOptions<P, S>, "dependsOn">;
}

export type ConditionName = keyof NodeResult["verdicts"];

export type NodeState = NodeResult["state"];

/** Result of a node in a run. */
export interface NodeResult<S = unknown> {
  /**
   * State of the node.
   *
   * - `"reconciled"`: reconciled, and ready.
   * - `"notReady"`: reconciled; `readyWhen` is not met yet.
   * - `"waiting"`: not started, because a dependency is not ready.
   * - `"skipped"`: skipped by `skipWhen`.
   * - `"inactive"`: inactive by `activeWhen`.
   * - `"deleted"`: not desired, and deleted.
   * - `"deleting"`: not desired; it, or a node that depends on it, still exists.
   * - `"failed"`: an error was thrown.
   */
  readonly state:
    | "reconciled"
    | "notReady"
    | "waiting"
    | "skipped"
    | "inactive"
    | "deleted"
    | "deleting"
    | "failed";
  /** Operation that was performed; undefined if the node was not reconciled. */
  readonly operation?: "created" | "updated" | "none" | undefined;
  /** Resource after it was reconciled. */
  readonly resource?: S | undefined;
  /** Error that was thrown, if the node failed. */
  readonly error?: unknown;
  /** Names of the nodes for which the node waits. */
  readonly waitingFor?: readonly string[] | undefined;
  /** Verdicts of the conditions that were evaluated. */
  readonly verdicts: {
    readonly activeWhen?: Verdict;
    readonly skipWhen?: Verdict;
    readonly reconcileWhen?: Verdict;
    readonly readyWhen?: Verdict;
    readonly deletedWhen?: Verdict;
  };
}

export type NodeContext<P extends KubernetesObject, S> = Parameters<
  NonNullable<NodeOptions<P, S>["reconcileWhen"]>
>[0];

/**
 * Condition for `readyWhen`: the resource is Current by {@linkcode statusOf}. A
 * Deployment has rolled out, a custom resource is Ready. A Job has ended
 * successfully, or is suspended; {@linkcode statusOf} says Current while it runs.
 *
 * @example
 * ```ts
 * import { isCurrent } from "@coracle/operator/workflows";
 *
 * const resource = { kind: "ConfigMap", metadata: { name: "html" } };
 * if (!isCurrent({ resource }).met) throw new Error("Unexpected verdict");
 * ```
 */
export function isCurrent(
  { resource, ctx }: {
    readonly resource: KubernetesObject | undefined;
    readonly ctx?: { readonly clock: Clock } | undefined;
  },
): Verdict {
  if (resource === undefined) {
    return { met: false, message: "It does not exist" };
  }
  const now = ctx?.clock.wallTime();
  const { status, message } = statusOf(resource, { now, rules: WAITING_RULES });
  return { met: status === "Current", message, detail: status };
}

/** Condition for `deletedWhen`: the resource no longer exists. */
export function isGone(
  { resource }: { readonly resource: unknown },
): Verdict {
  return { met: resource === undefined };
}

/** Converts the result of a condition to a verdict. */
export function asVerdict(
  answer: unknown,
  { node, condition }: {
    /** Name of the node; absent for a condition of the whole workflow. */
    readonly node?: string;
    readonly condition: ConditionName;
  },
): Verdict {
  if (typeof answer === "boolean") return answer ? MET : NOT_MET;
  if (
    typeof answer === "object" && answer !== null && "met" in answer &&
    typeof answer.met === "boolean"
  ) return answer as Verdict;
  throw new TypeError(
    `Cannot decide on ${
      node === undefined ? "a workflow" : `node "${node}"`
    }: "${condition}" must answer true, false or a verdict: received ${
      answer === null ? "null" : typeof answer
    }`,
  );
}

const MET: Verdict = Object.freeze({ met: true });
const NOT_MET: Verdict = Object.freeze({ met: false });
