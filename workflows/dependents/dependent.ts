/**
 * Dependents: resources that belong to a primary, in the cluster or outside,
 * with the operations that reconcile and delete them ({@linkcode Dependent}).
 *
 * An object in the cluster is compared with its desired state before it is
 * written, so that an object that matches costs no request. The folder must not
 * import `graph` or `phases`.
 *
 * @module
 */

import type { KubernetesObject } from "../../core/api/object.ts";
import type { EventSource } from "../../core/controller/event_source.ts";
import type { Context } from "../../core/controller/context.ts";

/**
 * Resource that belongs to a primary, with the operations that reconcile it: an
 * object in the cluster, several of them, or something outside the cluster.
 *
 * A workflow calls `reconcile` when all dependencies are ready, and `delete`
 * when the resource is no longer desired. A dependent without `reconcile` is
 * only read; one without `delete` is left to its owner.
 *
 * A dependent also works without a workflow: register its `sources` with the
 * controller, and call it from `reconcile` and, unless it is garbage collected,
 * from `cleanup`. Its writes are visible immediately and cause no further run.
 *
 * @typeParam P The type of the primaries.
 * @typeParam S The type of the resource; a map or list for several.
 *
 * @example Without a workflow
 * ```ts
 * import { type ObjectOf, Operator, untyped } from "@coracle/operator";
 * import { ConfigMap } from "@coracle/operator/kinds";
 * import { kubernetesDependent } from "@coracle/operator/workflows";
 *
 * const Page = untyped({ group: "example.com", version: "v1", kind: "Page" });
 * const html = kubernetesDependent<ObjectOf<typeof Page>, ConfigMap>(
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
 */
export interface Dependent<P extends KubernetesObject, S = unknown> {
  /** Event sources that the resource is read from and that report its changes. */
  readonly sources?: readonly EventSource<P>[] | undefined;
  /**
   * Whether Kubernetes' garbage collector deletes the resource with its primary,
   * so that no cleanup is needed.
   *
   * @default {false}
   */
  readonly garbageCollected?: boolean | undefined;
  /** Reads the resource from the caches. */
  read(primary: P, ctx: Context<P>): S | undefined | Promise<S | undefined>;
  /** Creates or updates the resource to match the desired state. */
  reconcile?(primary: P, ctx: Context<P>): Promise<{
    /** Operation that was performed. */
    readonly operation: "created" | "updated" | "none";
    /** Current state of the resource; undefined if it does not exist. */
    readonly resource: S | undefined;
  }>;
  /** Deletes the resource; a missing resource is no error. */
  delete?(primary: P, ctx: Context<P>): Promise<void>;
}

export type DependentResult<S> = Awaited<
  ReturnType<NonNullable<Dependent<KubernetesObject, S>["reconcile"]>>
>;

/** Dependent in the cluster, which is reconciled and can be deleted. */
export interface KubernetesDependent<P extends KubernetesObject, S>
  extends Dependent<P, S> {
  /** Event sources that the resource is read from and that report its changes. */
  readonly sources: readonly EventSource<P>[];
  /** Creates or updates the resource to match the desired state. */
  reconcile(
    primary: P,
    ctx: Context<P>,
  ): ReturnType<NonNullable<Dependent<P, S>["reconcile"]>>;
  /** Deletes the resource; a missing resource is no error. */
  delete(primary: P, ctx: Context<P>): Promise<void>;
}

/**
 * Reconciles several resources, one after the other.
 *
 * @returns The resources that exist, by key, and the combined operation.
 */
export async function reconcileAll<D, S>(
  desired: ReadonlyMap<string, D>,
  reconcile: (one: D, key: string) => Promise<DependentResult<S>>,
): Promise<DependentResult<ReadonlyMap<string, S>>> {
  const resource = new Map<string, S>();
  const operations = new Set<DependentResult<S>["operation"]>();
  for (const [key, one] of desired) {
    const result = await reconcile(one, key);
    operations.add(result.operation);
    if (result.resource !== undefined) resource.set(key, result.resource);
  }
  const operation = (["created", "updated"] as const)
    .find((one) => operations.has(one));
  return { operation: operation ?? "none", resource };
}
