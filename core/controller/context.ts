import type { Kind } from "../api/kind.ts";
import type {
  ApplyObject,
  DeepPartial,
  KubernetesObject,
  NewObject,
  WrittenAs,
} from "../api/object.ts";
import type { Duration } from "../api/duration.ts";
import type { ObjectKey } from "../api/object_key.ts";
import type { Client } from "../client/client.ts";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { JsonPatchOperation } from "../patch/json_patch.ts";
import type { RunCause } from "./cause.ts";
import type { EventOptions } from "./event_recorder.ts";
import type {
  EventSource,
  PrimaryCache,
  SourceRegistry,
} from "./event_source.ts";

/** Position of a run in a series of retries. */
export interface RetryInfo {
  /** Number of this, the planned or the last retry: 0 if the last run has succeeded. */
  readonly attempt: number;
  /**
   * Whether no further retry follows if this run fails; `false` if the number
   * of retries is unlimited.
   */
  readonly last: boolean;
}

/** Result of a workflow in one run. */
export interface ManagedWorkflowResult {
  /** Whether every node is reconciled and ready, or deleted. */
  readonly done: boolean;
  /**
   * Delay until the next run unless an event causes an earlier one. If it is
   * undefined, the reconciler decides.
   */
  readonly rescheduleAfter?: Duration | undefined;
  /** Nodes and their results on one line, for logs and `coracle why`. */
  readonly summary?: string | undefined;
  /**
   * Throws the errors of nodes that the workflow has not thrown itself. They fail
   * the run once its result is written, unless that says when to run again.
   */
  throwIfFailed?(): void;
}

/**
 * Recorder of Kubernetes Events about the primary.
 *
 * Events are written in the background. A failure is logged, and never fails a
 * run. A repeated event increases the count of the existing Event.
 */
export interface PrimaryEvents {
  /**
   * Records an event of type `Normal`.
   *
   * @param reason Machine-readable reason in UpperCamelCase, at most 128
   * characters.
   * @param message Text for people, at most 1,024 characters.
   */
  normal(reason: string, message: string, options?: EventOptions): void;
  /**
   * Records an event of type `Warning`.
   *
   * @param reason Machine-readable reason in UpperCamelCase, at most 128
   * characters.
   * @param message Text for people, at most 1,024 characters.
   */
  warning(reason: string, message: string, options?: EventOptions): void;
}

/** Options of the writes of a {@linkcode Context}. */
export interface ContextWriteOptions {
  /**
   * Whether the event of this write triggers a run, as a change by another
   * client does.
   *
   * @default {false}
   */
  readonly trigger?: boolean | undefined;
  /** Signal that aborts the request. Defaults to the signal of the run. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Whether the request is skipped if the cache shows that it would change
   * nothing. Objects that no cache of the controller holds are always written.
   *
   * @default {true}
   */
  readonly match?: boolean | undefined;
  /** Subresource to write. By default the object without its status is written. */
  readonly subresource?: "status" | undefined;
  /**
   * Whether the primary becomes the controlling owner of the object, which is
   * then garbage collected with it. For a primary that is neither in the same
   * namespace nor cluster-scoped, the object gets annotations that name the
   * primary by default, and `true` is an error. An object of another controller
   * is refused. Defaults to false if only the status is written, and in `apply`
   * of a kind that is only in `watches`, by a mapper other than `byOwner`.
   */
  readonly owned?: boolean | undefined;
}

/**
 * Context of one run: everything that a reconciler needs besides the primary.
 *
 * Reads come from the caches of the controller if one of its event sources
 * watches the kind, and from the API server otherwise. Objects from a cache are
 * frozen.
 *
 * Writes with the methods of the context
 * - are skipped if the caches show that they would change nothing,
 * - are in the caches before their promise is fulfilled, so that every later
 *   read and run sees them,
 * - do not trigger a run, except one of another primary that they change, while
 *   changes that other clients make at the same time always do,
 * - check a status against the schema of its kind before it is sent.
 *
 * After a deletion the object stays in the cache until the event of the server
 * arrives, which triggers a run.
 *
 * Writes with {@linkcode Context.client} have none of these properties.
 *
 * Compared with the Java Operator SDK: writes use its matching and event
 * filtering by default, `match: false` corresponds to its forced filter, and
 * `replace` uses optimistic locking.
 *
 * @typeParam P Type of the primary.
 *
 * @example Reconcile a secondary object
 * ```ts
 * import type { Context } from "@coracle/operator/core";
 * import { ConfigMap } from "@coracle/operator/kinds";
 *
 * async function reconcile(page: ConfigMap, ctx: Context<ConfigMap>) {
 *   const { name } = page.metadata;
 *   await ctx.apply(ConfigMap, {
 *     metadata: { name: `${name}-copy` },
 *     data: { ...page.data },
 *   });
 *   ctx.log.info("Copied", { attempt: ctx.retry.attempt });
 *   ctx.events.normal("Copied", `Copied ${name}`);
 * }
 * ```
 */
export interface Context<P extends KubernetesObject> {
  /**
   * Signal that is aborted when the run should end: its timeout has passed, the
   * primary is being deleted, leadership was lost, or the operator stops. Its
   * `reason` is a {@linkcode RunAbortedError} with the cause.
   *
   * Pass it to everything that waits. A run that ignores it keeps occupying its
   * object and one of the `concurrency` runs of the controller until it ends, and
   * warnings are logged from ten seconds after the abort.
   */
  readonly signal: AbortSignal;
  /**
   * Signal that is aborted when an event requests another run of the object
   * during this one. A run that only waits, for example for the health of what it
   * applied, can then stop waiting. Its `reason` is a
   * {@linkcode RunInterruptedError} with the cause of the next run, which follows
   * in any case.
   */
  readonly interrupted: AbortSignal;
  /**
   * Client for requests that bypass the caches. Its writes cause events like
   * changes by other clients.
   */
  readonly client: Client;
  /** Logger with the controller and the object among its fields. */
  readonly log: Logger;
  /**
   * Clock of the operator, which a test can advance: `ctx.clock.wallTime()` is
   * the time of day in milliseconds since 1970.
   */
  readonly clock: Clock;
  /** Position of the run in a series of retries. */
  readonly retry: RetryInfo;
  /** Cause of the run. */
  readonly cause: RunCause;
  /** Name of the controller. */
  readonly controller: string;
  /**
   * Name of the cluster of the primary, of those of the option `clusters`; undefined
   * for the operator's own.
   */
  readonly cluster?: string | undefined;
  /** Field manager of the writes of the controller. */
  readonly fieldManager: string;
  /** Key of the primary. */
  readonly key: ObjectKey;
  /**
   * Current state of the primary in the cache, frozen; undefined if it was
   * deleted. It may be newer than the state that the run was started with.
   */
  readonly current: P | undefined;
  /**
   * Whether an event is already waiting, so that another run follows immediately
   * and writes of this one may be pointless.
   */
  readonly nextImminent: boolean;
  /** Whether the primary is deleted; true only with the option `allEvents`. */
  readonly deleted: boolean;
  /** Whether the primary was deleted and its last state was missed. */
  readonly finalStateUnknown: boolean;
  /** Values that the parts of a run share, such as those of `initContext`. */
  readonly attributes: Map<unknown, unknown>;
  /** Result of the workflow in this run; undefined if there is no workflow. */
  readonly workflow: ManagedWorkflowResult | undefined;
  /** Recorder of Kubernetes Events about the primary. */
  readonly events: PrimaryEvents;
  /** Cache of the primaries of the controller, with its indexes. */
  readonly primaries: PrimaryCache<P>;
  /** Event sources of the controller. */
  readonly sources: SourceRegistry<P>;

  /**
   * Reads the object with the name and namespace of the primary; undefined if
   * it does not exist, as with `client.find` (`client.get` throws).
   */
  get<T extends KubernetesObject>(kind: Kind<T>): Promise<T | undefined>;
  /**
   * Reads one object; undefined if it does not exist.
   *
   * @param kind Kind of the object.
   * @param name Name of the object.
   * @param namespace Namespace of the object. Defaults to that of the primary.
   * @returns The object; undefined if it does not exist.
   * @throws {TypeError} If the name is undefined, as an optional field may be.
   */
  get<T extends KubernetesObject>(
    kind: Kind<T>,
    name: string,
    namespace?: string,
  ): Promise<T | undefined>;
  /**
   * Reads all objects of a kind in a namespace, as an array (`client.list`
   * returns one page as `{ items, metadata }`).
   *
   * @param kind Kind of the objects.
   * @param namespace Namespace, or `"*"` for all. Defaults to that of the
   * primary; of a cluster-scoped kind all are read.
   */
  list<T extends KubernetesObject>(
    kind: Kind<T>,
    namespace?: string,
  ): Promise<readonly T[]>;
  /**
   * Reads the only secondary of a kind: an object that the primary owns, or
   * that an event source relates to the primary.
   *
   * @returns The object; undefined if absent.
   * @throws {RangeError} If there is more than one.
   * @throws {TypeError} If no event source watches the kind.
   */
  secondary<T extends KubernetesObject>(kind: Kind<T>): Promise<T | undefined>;
  /**
   * Reads the only resource of an event source that belongs to the primary.
   *
   * @returns The resource; undefined if absent.
   * @throws {RangeError} If there is more than one.
   */
  secondary<T>(source: EventSource<P, T>): Promise<T | undefined>;
  /**
   * Reads the secondaries of a kind, which are the objects that belong to the
   * primary, from every event source that watches the kind: each object once
   * and in its newest state.
   *
   * @throws {TypeError} If no event source watches the kind.
   */
  secondaries<T extends KubernetesObject>(kind: Kind<T>): Promise<readonly T[]>;
  /** Reads the resources of an event source that belong to the primary. */
  secondaries<T>(source: EventSource<P, T>): Promise<readonly T[]>;

  /**
   * Creates or changes an object by server-side apply. The fields given are all
   * that the controller wants to own: a field that it applied before and leaves
   * out now is removed. By default the primary becomes the owner of the object.
   * Applied to the primary itself, the finalizer of the controller is kept, and
   * the primary does not own itself.
   *
   * @param kind Kind of the object.
   * @param object Apply configuration. Its namespace defaults to that of the
   * primary.
   * @returns The stored object.
   * @throws {TypeError | RangeError} If an option is unknown or invalid.
   * @throws {ApiError} If the server refuses the request.
   * @throws {Error} If another controller owns the object, or the selectors of
   * the option `owns` exclude it.
   */
  apply<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options?: ContextWriteOptions,
  ): Promise<T>;
  /**
   * Computes the object that {@linkcode Context.apply} would send, with its
   * namespace and owner references, without sending it.
   */
  intent<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options?: Pick<ContextWriteOptions, "owned">,
  ): Promise<ApplyObject<T>>;
  /**
   * Creates an object. By default the primary becomes its owner.
   *
   * @returns The stored object.
   * @throws {ApiError} `isAlreadyExists` if the object exists.
   */
  create<T extends KubernetesObject, W extends KubernetesObject = T>(
    kind: Kind<T> & WrittenAs<W>,
    object: NewObject<W>,
    options?: Pick<ContextWriteOptions, "owned" | "signal" | "trigger">,
  ): Promise<T>;
  /**
   * Patches an object.
   *
   * @param kind Kind of the object.
   * @param key Key of the object, or its name in the namespace of the primary.
   * @param body Merge patch or strategic merge patch, or the operations of a JSON
   * Patch.
   * @param options Options; `type` defaults to `"merge"`, and `fieldManager` to
   * that of the controller. A strategic merge patch is always sent, since its
   * effect is only known to the server.
   * @returns The stored object.
   * @throws {ApiError} `isNotFound` if the object does not exist.
   */
  patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: string | ObjectKey,
    body: DeepPartial<T> | readonly JsonPatchOperation[],
    options?: Omit<ContextWriteOptions, "owned"> & {
      readonly type?: "merge" | "json" | "strategic" | undefined;
      readonly fieldManager?: string | undefined;
    },
  ): Promise<T>;
  /**
   * Replaces an object, with optimistic locking.
   *
   * @param kind Kind of the object.
   * @param object Complete object with the `metadata.resourceVersion` that it was
   * read with.
   * @returns The stored object.
   * @throws {TypeError} If the `resourceVersion` is missing, or a field is
   * missing because the cache does not keep it.
   * @throws {RangeError} If the object has an integer beyond 2^53 − 1, which
   * reading rounds.
   * @throws {ApiError} `isConflict` if the object was changed in the meantime.
   */
  replace<T extends KubernetesObject>(
    kind: Kind<T>,
    object: T,
    options?: Omit<ContextWriteOptions, "owned">,
  ): Promise<T>;
  /**
   * Reads an object from the API server, changes it and sends the difference.
   * Repeats all steps after a conflict, with at most ten attempts.
   *
   * @param kind Kind of the object.
   * @param key Key of the object, or its name in the namespace of the primary.
   * @param change Changes a copy of the object in place.
   * @returns The stored object; undefined if it does not exist.
   * @throws {TypeError} If `change` returns a promise or another object.
   * @throws {RangeError} If a part that it changes has an integer beyond 2^53 − 1.
   * @throws {ApiError} `isConflict` if other clients changed the object during
   * every attempt.
   */
  modify<T extends KubernetesObject>(
    kind: Kind<T>,
    key: string | ObjectKey,
    change: (object: T) => void,
    options?: Omit<ContextWriteOptions, "owned">,
  ): Promise<T | undefined>;
  /**
   * Deletes an object; succeeds if it does not exist.
   *
   * With the `metadata` of an object that was read, only that state of it is deleted:
   * if it has changed since, or another object has its name, the deletion fails with
   * a conflict, and the next run decides again.
   *
   * @param kind Kind of the object.
   * @param key Metadata of the object, its key, or its name in the namespace of the
   * primary.
   * @param options Options: `signal` aborts the request and defaults to that of
   * the run; `propagationPolicy` says what happens to the dependents of the
   * object and defaults to `"Background"`; with `uid`, only the object of this
   * UID is deleted; with `live`, the object is read from the API server first, and
   * only the state that it has then is deleted.
   */
  delete(
    kind: Kind,
    key: string | ObjectKey,
    options?: {
      readonly signal?: AbortSignal | undefined;
      readonly propagationPolicy?:
        | "Background"
        | "Foreground"
        | "Orphan"
        | undefined;
      readonly uid?: string | undefined;
      readonly live?: boolean | undefined;
    },
  ): Promise<void>;
  /**
   * Adds a finalizer to the primary, for reconcilers that decide themselves which
   * objects need one. Reconcilers with a `cleanup` get theirs automatically.
   *
   * @param finalizer Name of the finalizer. Defaults to that of the controller.
   */
  addFinalizer(finalizer?: string): Promise<void>;
  /**
   * Removes a finalizer from the primary; repeats the request after a conflict.
   *
   * @param finalizer Name of the finalizer. Defaults to that of the controller.
   */
  removeFinalizer(finalizer?: string): Promise<void>;
}
