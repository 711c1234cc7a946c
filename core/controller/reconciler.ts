import type { Kind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { ObjectKey } from "../api/object_key.ts";
import type { Client } from "../client/client.ts";
import type { Logger } from "../logger.ts";
import type { RunCause } from "./cause.ts";
import type { ContextWrites } from "./context_writes.ts";
import type { EventOptions } from "./event_recorder.ts";
import type { EventSource, PrimaryCache } from "./event_source.ts";
import type { WorkflowResult } from "./managed_workflow.ts";
import type {
  CleanupResult,
  ReconcileResult,
  ResourcePatch,
  StatusPatch,
} from "./result.ts";
import type { SourceRegistry } from "./source_registry.ts";

/** A value, or a promise of it. */
export type MaybePromise<T> = T | Promise<T>;

/** What `reconcile` and `onError` may return for a kind. */
export type ReconcileReturn<P extends KubernetesObject> = MaybePromise<
  ReconcileResult<StatusPatch<P>, ResourcePatch<P>> | void
>;

/**
 * Brings the world in line with what an object asks for.
 *
 * The framework calls it with the object's newest known state, never twice at
 * once for one object, and again whenever something it watches changes, after
 * failures, and after at most the maximal interval. It may be called for no
 * reason, and not for every change: it must look at the state and never count
 * events.
 *
 * @typeParam P The type of the primary objects.
 *
 * @example The least that works
 * ```ts
 * import { noUpdate, type Reconciler, untyped } from "@coracle/operator/core";
 *
 * const Gadget = untyped({ group: "example.com", version: "v1", kind: "Gadget" });
 * const reconciler: Reconciler<NonNullable<typeof Gadget.objectType>> = {
 *   reconcile(gadget, ctx) {
 *     ctx.log.info("Seen", { generation: gadget.metadata.generation });
 *     return noUpdate();
 *   },
 * };
 * if (typeof reconciler.reconcile !== "function") throw new Error("Unexpected");
 * ```
 */
export interface Reconciler<P extends KubernetesObject> {
  /**
   * Prepares a run, before its workflow and before `reconcile` or `cleanup`: for
   * what several of them need, in {@linkcode Context.attributes}.
   *
   * @param primary A copy of its newest known state.
   * @param ctx What the run may use.
   */
  initContext?(primary: P, ctx: Context<P>): MaybePromise<void>;

  /**
   * Brings the world in line with the object.
   *
   * @param primary A copy of its newest known state; it may be changed freely.
   * @param ctx What the run may use.
   * @returns What to write and when to come back; nothing means `noUpdate()`.
   * Whatever is thrown fails the run, which is then retried.
   */
  reconcile(primary: P, ctx: Context<P>): ReconcileReturn<P>;

  /**
   * Undoes what the object asked for, before it may vanish. Its presence turns
   * finalizers on: the framework adds one before the first `reconcile`.
   *
   * @param primary A copy of its newest known state, marked for deletion.
   * @param ctx What the run may use.
   * @returns Whether the finalizer goes; nothing means `removeFinalizer()`.
   */
  cleanup?(
    primary: P,
    ctx: Context<P>,
  ): MaybePromise<CleanupResult | void>;

  /**
   * Called when `reconcile` has thrown, not when `cleanup` has.
   *
   * @param primary A copy of the state that the failed run was given.
   * @param error What was thrown.
   * @param ctx The context of the failed run; `ctx.retry` tells which attempt
   * failed and whether it was the last.
   * @returns A status to write; with `.withoutRetry()` or `.rescheduleAfter(…)`
   * the run is not retried. `noUpdate()` says that the error was dealt with and
   * is retried; nothing means that it was not.
   */
  onError?(primary: P, error: unknown, ctx: Context<P>): ReconcileReturn<P>;
}

/** Where a run stands in a series of attempts. */
export interface RetryInfo {
  /** Zero for a run that is no retry, then one, two … */
  readonly attempt: number;
  /** Whether no further attempt follows if this one fails. */
  readonly last: boolean;
}

/** Writes Kubernetes Events about the primary, best effort. */
export interface PrimaryEvents {
  /** Something went as it should. Repetitions are counted, not repeated. */
  normal(reason: string, message: string, options?: EventOptions): void;
  /** Something a person should look at. */
  warning(reason: string, message: string, options?: EventOptions): void;
}

/**
 * What one run may use.
 *
 * Reads are answered by the caches of the controller's event sources where one
 * has the kind, and by the API server where none has. Objects from a cache are
 * frozen. How writes are made is told by {@linkcode ContextWrites}.
 */
export interface Context<P extends KubernetesObject> extends ContextWrites {
  /**
   * Fires when the run should end: its time is over, the primary is being
   * deleted, leadership was lost or the operator stops. Its `reason` tells. Hand
   * it to whatever waits: a run that does not heed it keeps its place for as
   * long as it goes on, and warnings tell of it.
   */
  readonly signal: AbortSignal;
  /**
   * Fires when an event asks for another run of the object while this one is
   * under way: a run that only waits, for the health of what it applied, may
   * stop waiting. Its `reason` is a {@linkcode RunInterruptedError}, which names
   * the cause. Nothing ends by itself, and the next run comes anyway.
   */
  readonly interrupted: AbortSignal;
  /**
   * Talks to the API server as it is told, past the caches: what it writes comes
   * back as an event, like a change of somebody else's.
   */
  readonly client: Client;
  /** Logs with the controller and the object among the fields. */
  readonly log: Logger;
  /** Where the run stands in a series of attempts. */
  readonly retry: RetryInfo;
  /** Why the run happens. */
  readonly cause: RunCause;
  /** The controller that runs. */
  readonly controller: string;
  /** Whose fields the writes of the controller are. */
  readonly fieldManager: string;
  /** Which object the run is about. */
  readonly key: ObjectKey;
  /** The primary as it is now in the cache, frozen; it may have changed. */
  readonly current: P | undefined;
  /**
   * Whether an event waits already, so that another run follows at once: what
   * this one would write may be pointless.
   */
  readonly nextImminent: boolean;
  /** Whether the primary is gone; only in all-events mode. */
  readonly deleted: boolean;
  /** Whether the last state before the deletion was missed; see `deleted`. */
  readonly finalStateUnknown: boolean;
  /** For the parts of one run to hand things to each other. */
  readonly attributes: Map<unknown, unknown>;
  /** What the workflow of the controller did in this run, if it has one. */
  readonly workflow: WorkflowResult | undefined;
  /** Kubernetes Events about the primary. */
  readonly events: PrimaryEvents;
  /** The primaries that the controller knows, and its indexes over them. */
  readonly primaries: PrimaryCache<P>;
  /** The event sources of the controller. */
  readonly sources: SourceRegistry<P>;

  /**
   * One object, or undefined if there is none.
   *
   * @param kind Its kind.
   * @param name Its name; by default that of the primary.
   * @param namespace Its namespace; by default that of the primary.
   */
  get<T extends KubernetesObject>(
    kind: Kind<T>,
    name?: string,
    namespace?: string,
  ): Promise<T | undefined>;
  /**
   * All objects of a kind in a namespace.
   *
   * @param kind Their kind.
   * @param namespace By default that of the primary; `"*"` for all.
   */
  list<T extends KubernetesObject>(
    kind: Kind<T>,
    namespace?: string,
  ): Promise<readonly T[]>;
  /**
   * The one secondary of a kind or source, or undefined if there is none.
   *
   * @throws {RangeError} If there is more than one.
   * @throws {TypeError} If no event source has the kind.
   */
  secondary<T extends KubernetesObject>(
    kind: Kind<T>,
  ): Promise<T | undefined>;
  /** The one secondary of a source, or undefined if there is none. */
  secondary<T>(source: EventSource<P, T>): Promise<T | undefined>;
  /**
   * All secondaries of the primary of a kind, from every event source that has
   * it, each once and in its newest state; or those of one source.
   *
   * @throws {TypeError} If no event source has the kind.
   */
  secondaries<T extends KubernetesObject>(
    kind: Kind<T>,
  ): Promise<readonly T[]>;
  /** All secondaries of the primary that one source knows. */
  secondaries<T>(source: EventSource<P, T>): Promise<readonly T[]>;
}
