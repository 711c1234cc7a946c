import type { KubernetesObject } from "../api/object.ts";
import type { Duration } from "../api/duration.ts";
import type { EventSource } from "./event_source.ts";
import type { Context } from "./reconciler.ts";

/** What a workflow did in one run. Workflows refine it. */
export interface WorkflowResult {
  /** Whether every node is reconciled and ready, or deleted. */
  readonly done: boolean;
  /**
   * When the workflow wants to run again if no event comes; undefined leaves it
   * to the reconciler.
   */
  readonly rescheduleAfter?: Duration | undefined;
  /** Its nodes and what became of them, on one line for people. */
  readonly summary?: string | undefined;
}

/**
 * A workflow as a controller runs it: before `reconcile`, and before `cleanup`.
 * The room `workflows` implements it.
 *
 * Expected flow: the controller registers {@linkcode ManagedWorkflow.sources}
 * before it starts; in each run it calls `reconcile` or `cleanup` first and
 * puts the result into `ctx.workflow`. The finalizer is only removed when the
 * result of `cleanup` is done.
 */
export interface ManagedWorkflow<P extends KubernetesObject> {
  /** Whether something must be deleted by hand, so that a finalizer is needed. */
  readonly needsFinalizer: boolean;
  /**
   * Whether the reconciler calls `reconcile` itself, so that the controller must
   * not; so it is with `cleanup` if the reconciler has one.
   *
   * @default {false}
   */
  readonly explicit?: boolean | undefined;
  /** The event sources of its nodes. */
  readonly sources: readonly EventSource<P>[];
  /** Reconciles the nodes; what it throws fails the run. */
  reconcile(primary: P, ctx: Context<P>): Promise<WorkflowResult>;
  /** Deletes what must be deleted by hand; what it throws fails the run. */
  cleanup(primary: P, ctx: Context<P>): Promise<WorkflowResult>;
  /** What it did last in a run, whoever called it; undefined if it did nothing. */
  resultIn(ctx: Context<P>): WorkflowResult | undefined;
  /** Its nodes and their order, as a Mermaid flowchart, for people. */
  toMermaid?(): string;
}
