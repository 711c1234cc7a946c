import type { KubernetesObject } from "../../core/api/object.ts";
import type { EventSource } from "../../core/controller/event_source.ts";
import type { Context } from "../../core/controller/context.ts";

/** What was done to bring a dependent in line. */
export type Operation = "created" | "updated" | "none";

/** What bringing a dependent in line came to. */
export interface DependentResult<S> {
  /** What was done for it. */
  readonly operation: Operation;
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
 * A dependent does without a workflow, too: register its `sources` with the
 * controller, and call it from `reconcile` and, unless it is garbage collected,
 * from `cleanup`. Its writes are seen at once and cause no further run.
 *
 * @example Called by hand
 * ```ts
 * import { Operator, untyped } from "@coracle/operator";
 * import { ConfigMap } from "@coracle/operator/kinds";
 * import { kubernetesDependent } from "@coracle/operator/workflows";
 *
 * const Page = untyped({ group: "example.com", version: "v1", kind: "Page" });
 * const html = kubernetesDependent<NonNullable<typeof Page.objectType>, ConfigMap>(
 *   ConfigMap,
 *   {
 *     desired: ({ metadata: { name } }) => ({
 *       metadata: { name },
 *       data: { "index.html": "<h1>Hello</h1>" },
 *     }),
 *   },
 * );
 * const operator = new Operator();
 * operator.register(Page, {
 *   async reconcile(page, ctx) {
 *     const { operation } = await html.reconcile(page, ctx);
 *     if (operation !== "none") ctx.events.normal("HtmlWritten", operation);
 *   },
 * }, { sources: html.sources });
 * ```
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

/** A dependent that is brought in line, and that tells of its changes. */
export interface ReconciledDependent<P extends KubernetesObject, S>
  extends Dependent<P, S> {
  /** Where it is read from, and what tells of its changes. */
  readonly sources: readonly EventSource<P>[];
  /** Makes it, or changes it, so that it is as the primary asks for. */
  reconcile(primary: P, ctx: Context<P>): Promise<DependentResult<S>>;
}

/** A dependent in the cluster that is brought in line and can be deleted. */
export interface KeptDependent<P extends KubernetesObject, S>
  extends ReconciledDependent<P, S> {
  /** Deletes it; it is no error if it is gone already. */
  delete(primary: P, ctx: Context<P>): Promise<void>;
}

/** What was done for several together: the most that was done for one. */
export function strongest(...operations: readonly Operation[]): Operation {
  return operations.includes("created")
    ? "created"
    : operations.includes("updated")
    ? "updated"
    : "none";
}
