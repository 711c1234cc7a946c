import type { Duration } from "../../core/api/duration.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import type {
  Context,
  MaybePromise,
} from "../../core/controller/reconciler.ts";
import { statusOf } from "../kstatus/status_of.ts";

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
export type When<P extends KubernetesObject, S> = (
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
