import type { DeepPartial, KubernetesObject } from "../api/object.ts";
import type { Context } from "./context.ts";
import type { CleanupResult, ReconcileResult, StatusPatch } from "./result.ts";

/** Value, or promise of a value. */
export type MaybePromise<T> = T | Promise<T>;

/** Return type of `reconcile` and `onError` for a kind. */
export type ReconcileReturn<P extends KubernetesObject> = MaybePromise<
  ReconcileResult<StatusPatch<P>, DeepPartial<Omit<P, "status">>> | void
>;

/**
 * Code of an operator author that brings the cluster in line with the desired
 * state of an object.
 *
 * The framework calls it with the newest known state of the object, never twice
 * at the same time for one object. It is called again whenever something that it
 * watches has changed, after a failure, and at the latest after the `maxInterval`
 * of the controller. It can be called without a change, and one call can answer
 * several changes, so it must act on the state and not count events.
 *
 * @typeParam P Type of the primary objects.
 *
 * @example Minimal reconciler
 * ```ts
 * import {
 *   noUpdate,
 *   type ObjectOf,
 *   type Reconciler,
 *   untyped,
 * } from "@coracle/operator/core";
 *
 * const Gadget = untyped({ group: "example.com", version: "v1", kind: "Gadget" });
 * const reconciler: Reconciler<ObjectOf<typeof Gadget>> = {
 *   reconcile(gadget, ctx) {
 *     ctx.log.info("Reconciled", { generation: gadget.metadata.generation });
 *     return noUpdate();
 *   },
 * };
 * ```
 */
export interface Reconciler<P extends KubernetesObject> {
  /**
   * Prepares a run before its workflow and before `reconcile` or `cleanup`, for
   * example by setting {@linkcode Context.attributes} that these share.
   *
   * @param primary Copy of the newest known state.
   * @param ctx Context of the run.
   */
  initContext?(primary: P, ctx: Context<P>): MaybePromise<void>;

  /**
   * Reconciles an object.
   *
   * @param primary Copy of the newest known state, which may be changed.
   * @param ctx Context of the run.
   * @returns What to write, and when to run again; nothing means `noUpdate()`.
   * @throws {unknown} Any error fails the run, which is then retried.
   */
  reconcile(primary: P, ctx: Context<P>): ReconcileReturn<P>;

  /**
   * Cleans up after an object before it is deleted. If this method exists, the
   * framework adds a finalizer before the first `reconcile`.
   *
   * @param primary Copy of the newest known state, which has a
   * `deletionTimestamp`.
   * @param ctx Context of the run.
   * @returns Whether the finalizer is removed; nothing means
   * `removeFinalizer()`.
   * @throws {unknown} Any error fails the run, which is then retried.
   */
  cleanup?(primary: P, ctx: Context<P>): MaybePromise<CleanupResult | void>;

  /**
   * Handles an error that `reconcile` has thrown. Errors of `cleanup` are not
   * passed to it.
   *
   * @param primary Copy of the state that the failed run started with.
   * @param error Error that was thrown.
   * @param ctx Context of the failed run. `ctx.retry` says which attempt failed,
   * and whether it was the last one.
   * @returns Status to write. With `.withoutRetry()` or `.rescheduleAfter(…)` the
   * run is not retried; otherwise it is. The run counts as failed, and the failure
   * is logged, whatever is returned.
   */
  onError?(primary: P, error: unknown, ctx: Context<P>): ReconcileReturn<P>;
}
