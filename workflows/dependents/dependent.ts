import type { KubernetesObject } from "../../core/api/object.ts";
import type { EventSource } from "../../core/controller/event_source.ts";
import type { Context } from "../../core/controller/reconciler.ts";

/** What bringing a dependent in line came to. */
export interface DependentResult<S> {
  /** What was done for it. */
  readonly operation: "created" | "updated" | "none";
  /** The resource as it is now; undefined if there is none. */
  readonly resource: S | undefined;
}

/**
 * A resource that belongs to a primary, and how to bring it in line: an object
 * in the cluster, many of them, or something outside.
 *
 * A workflow calls `reconcile` when what it depends on is ready, and `delete`
 * when it is not wanted any more. Without `reconcile` a dependent is only read;
 * without `delete` it cannot be deleted and is left to its owner.
 *
 * @typeParam P The type of the primaries.
 * @typeParam S The type of the resource; a map or list for several.
 */
export interface Dependent<P extends KubernetesObject, S = unknown> {
  /** Where it is read from, and what tells of its changes. */
  readonly sources?: readonly EventSource<P>[] | undefined;
  /**
   * Whether Kubernetes' garbage collector deletes it with its primary, so that
   * cleanup need not.
   *
   * @default {false}
   */
  readonly garbageCollected?: boolean | undefined;
  /** The resource as the caches know it. */
  read(primary: P, ctx: Context<P>): S | undefined | Promise<S | undefined>;
  /** Makes it, or changes it, so that it is as the primary asks for. */
  reconcile?(primary: P, ctx: Context<P>): Promise<DependentResult<S>>;
  /** Deletes it; it is no error if it is gone already. */
  delete?(primary: P, ctx: Context<P>): Promise<void>;
}
