import type { KubernetesObject } from "../../core/api/object.ts";
import type { OptionRules } from "../../core/api/options.ts";
import type { Dependent } from "../dependents/dependent.ts";
import type { CrdPresent } from "./crd_presence.ts";
import type { GraphNode } from "./graph.ts";
import type { Duration } from "../../core/api/duration.ts";
import type { Context } from "../../core/controller/context.ts";
import type { MaybePromise } from "../../core/controller/reconciler.ts";
import { statusOf } from "../kstatus/status_of.ts";

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
  readonly reconcileWhen?: NodeCondition<P, S> | undefined;
  /**
   * Whether to leave the resource alone in this run: it is neither brought in
   * line nor deleted, and counts as ready.
   *
   * @default {never}
   */
  readonly skipWhen?: NodeCondition<P, S> | undefined;
  /**
   * Whether the resource does its work, so that what depends on it can start.
   *
   * @default {as soon as it is reconciled}
   */
  readonly readyWhen?: NodeCondition<P, S> | undefined;
  /**
   * Whether the resource is gone after it was deleted, so that what it depends
   * on can be deleted too.
   *
   * @default {as soon as its deletion was asked for}
   */
  readonly deletedWhen?: NodeCondition<P, S> | undefined;
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

/** Which of its conditions a node was asked. */
export type ConditionName =
  | "activeWhen"
  | "skipWhen"
  | "reconcileWhen"
  | "readyWhen"
  | "deletedWhen";

/** The conditions that a node can have. */
export const CONDITION_NAMES: readonly ConditionName[] = [
  "activeWhen",
  "skipWhen",
  "reconcileWhen",
  "readyWhen",
  "deletedWhen",
];

/** What `activeWhen` decides on: the resource may be of a kind that is missing. */
export interface ActiveContext<P extends KubernetesObject> {
  /** The primary, as the run was given it. */
  readonly primary: P;
  /** The context of the run. */
  readonly ctx: Context<P>;
}

/** What the other conditions of a node decide on. */
export interface NodeContext<P extends KubernetesObject, S>
  extends ActiveContext<P> {
  /** The resource of the node as it is now; undefined if there is none. */
  readonly resource: S | undefined;
}

/** A verdict with what it was reached on, readable from the result. */
export interface Verdict {
  /** Whether the condition holds. */
  readonly met: boolean;
  /** Why, for people: it goes into the condition of the whole workflow. */
  readonly message?: string | undefined;
  /** Anything else, for programs. */
  readonly detail?: unknown;
  /**
   * When to ask again if no event comes before, for what no event tells of.
   *
   * @default {at the next event}
   */
  readonly recheckAfter?: Duration | undefined;
}

/** Decides something about a node; asked at most once a run. */
export type NodeCondition<P extends KubernetesObject, S> = (
  context: NodeContext<P, S>,
) => MaybePromise<boolean | Verdict>;

/** Decides whether a node takes part; asked at most once a run. */
export type ActiveWhen<P extends KubernetesObject> = (
  context: ActiveContext<P>,
) => MaybePromise<boolean | Verdict>;

/**
 * For `readyWhen`: the resource has reached what it asks for, by
 * {@linkcode statusOf}; a Deployment has rolled out, a Job has ended, a custom
 * resource says that it is Ready.
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
  { resource }: { readonly resource: KubernetesObject | undefined },
): Verdict {
  if (resource === undefined) {
    return { met: false, message: "It does not exist" };
  }
  const { status, message } = statusOf(resource);
  return { met: status === "Current", message, detail: status };
}

/** For `deletedWhen`: the resource is gone, with all its finalizers. */
export function isGone(
  { resource }: { readonly resource: unknown },
): Verdict {
  return { met: resource === undefined };
}

/**
 * What a condition has answered, as a verdict.
 *
 * @throws {TypeError} If it is none.
 */
export function asVerdict(
  answer: unknown,
  asked: { readonly node: string; readonly condition: ConditionName },
): Verdict {
  if (typeof answer === "boolean") return answer ? MET : NOT_MET;
  if (
    typeof answer === "object" && answer !== null && "met" in answer &&
    typeof answer.met === "boolean"
  ) return answer as Verdict;
  throw new TypeError(
    `Cannot decide on node "${asked.node}": "${asked.condition}" must answer true, false or a verdict: received ${
      answer === null ? "null" : typeof answer
    }`,
  );
}

const MET: Verdict = Object.freeze({ met: true });
const NOT_MET: Verdict = Object.freeze({ met: false });
