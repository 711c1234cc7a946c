import type { KubernetesObject } from "../api/object.ts";
import type { Context, ManagedWorkflowResult } from "./context.ts";
import type { EventSource } from "./event_source.ts";

/**
 * Workflow that a controller runs before `reconcile` and `cleanup`. The class
 * `Workflow` of the entry point `workflows` implements it.
 *
 * Expected flow: the controller starts the event sources of the workflow with its
 * own. Each run calls `reconcile` or `cleanup` first and makes the result
 * available as `ctx.workflow`. The finalizer is removed only when the result of
 * `cleanup` is done.
 *
 * @typeParam P Type of the primary.
 */
export interface ManagedWorkflow<P extends KubernetesObject> {
  /** Whether a node must be deleted explicitly, so that a finalizer is needed. */
  readonly needsFinalizer: boolean;
  /**
   * Whether the reconciler calls `reconcile` itself, and `cleanup` if it has a
   * cleanup of its own, so that the controller does not.
   *
   * @default {false}
   */
  readonly explicit?: boolean | undefined;
  /** Event sources of the nodes. */
  readonly sources: readonly EventSource<P>[];
  /**
   * Reconciles the nodes.
   *
   * @throws {unknown} Any error fails the run.
   */
  reconcile(primary: P, ctx: Context<P>): Promise<ManagedWorkflowResult>;
  /**
   * Deletes the nodes that must be deleted explicitly.
   *
   * @throws {unknown} Any error fails the run.
   */
  cleanup(primary: P, ctx: Context<P>): Promise<ManagedWorkflowResult>;
  /** Latest result in a run; undefined if the workflow was not called. */
  resultIn(ctx: Context<P>): ManagedWorkflowResult | undefined;
  /** Mermaid flowchart of the nodes and their order. */
  toMermaid?(): string;
}
