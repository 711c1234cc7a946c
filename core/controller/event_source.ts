import type { Kind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { ObjectKey } from "../api/object_key.ts";
import type { InformerPool } from "../cache/informer/informer_pool.ts";
import type {
  CacheReader,
  OwnWrite,
} from "../cache/informer/shared_informer.ts";
import type { Client } from "../client/client.ts";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { Metrics } from "../metrics.ts";

/** Resolved namespaces that a controller or an event source watches. */
export type NamespaceSet = "all" | readonly string[];

/** What an event source says of itself, shown in the health of its controller. */
export interface SourceHealth {
  /** Status; `"unknown"` for sources without health check. */
  readonly status: "healthy" | "unhealthy" | "unknown";
  /** Description of the problem. */
  readonly message?: string | undefined;
}

/** Event of a source that triggers a run. */
export interface SourceEvent {
  /** Kind of the object that changed. */
  readonly kind?: string | undefined;
  /** Key of the object that changed. */
  readonly object?: ObjectKey | undefined;
  /**
   * Whether the event reports an existing object, at start or after a relist. Its
   * run has a lower priority than those of live changes.
   *
   * @default {false}
   */
  readonly initial?: boolean | undefined;
}

/** Cache of the primaries of a controller. */
export type PrimaryCache<P extends KubernetesObject> = Omit<
  CacheReader<P>,
  "size" | "readByIndex"
>;

/** Context that a controller passes to an event source when it starts. */
export interface SourceContext<P extends KubernetesObject = KubernetesObject> {
  /** Name of the controller. */
  readonly controller: string;
  /** Kind that the controller reconciles. */
  readonly primaryKind: Kind<P>;
  /** Cache of the primaries. */
  readonly primaries: PrimaryCache<P>;
  /** Current namespaces of the controller. */
  readonly namespaces: NamespaceSet;
  /** Client of the operator: what it writes is only sent by the replica that leads. */
  readonly client: Client;
  /**
   * Client whose writes need no lease, for a source that takes something in on each
   * replica and writes it down.
   */
  readonly unfenced: Client;
  /** Pool of the informers that the event sources of the operator share. */
  readonly informers: InformerPool;
  /**
   * Field managers of all controllers of the operator, sorted.
   */
  readonly fieldManagers: readonly string[];
  /** Field managers whose fields become the controller's. */
  readonly takeOver: readonly string[];
  /** Clock for timers and the current time. */
  readonly clock: Clock;
  /** Logger with the controller among its fields. */
  readonly log: Logger;
  /** Metrics of the operator. */
  readonly metrics: Metrics;
  /**
   * Reads one object as `ctx.get` of a run does: from the caches of the controller
   * if a source watches the kind, and from the API server otherwise.
   *
   * @returns The object; undefined if it does not exist.
   */
  get<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
  ): Promise<T | undefined>;
  /**
   * Reads all objects of a kind, from the caches or the API server like `get`.
   *
   * @param kind Kind of the objects.
   * @param namespace Namespace. Defaults to all.
   */
  list<T extends KubernetesObject>(
    kind: Kind<T>,
    namespace?: string,
  ): Promise<readonly T[]>;
  /**
   * Triggers a run of a primary. Calls are cheap; several calls before the run
   * lead to one run. A primary that does not exist is ignored.
   *
   * @param key Key of the primary.
   * @param event Event for `ctx.cause`.
   * @returns Whether this replica runs the primary.
   */
  trigger(key: ObjectKey | string, event?: SourceEvent): boolean;
  /**
   * Repeats failed runs before their retry is due, spread over the initial pause
   * of the retry policy: for sources whose external system works again.
   *
   * @param key Key of the primary, as `namespace/name` or `name`; by default all
   * primaries whose last run has failed.
   */
  retryFailed(key?: string): void;
}

/** Event of a primary, for event sources that follow the primaries. */
export interface PrimaryEvent<P extends KubernetesObject> {
  /** Type of the event; `deleted` also if the primary is no longer watched. */
  readonly type: "added" | "modified" | "deleted";
  /** Key of the primary. */
  readonly key: ObjectKey;
  /** Newest or last known state of the primary, frozen; decoded on access. */
  readonly object: P | undefined;
}

/**
 * Event source of a controller: it triggers runs of primaries when secondary
 * resources change, and may give access to these resources.
 *
 * Expected flow: the controller calls `start` once and waits for its promise
 * before the first run, so that every run sees complete caches. The source then
 * calls `context.trigger` after each change. `stop` is called once and releases
 * everything; after that the source may be started again, as one with `leaderOnly`
 * is each time that its replica begins to lead.
 *
 * Sources with the start priority `"loader"` are started first, and the others
 * start when they have synced.
 *
 * @typeParam P Type of the primaries.
 * @typeParam S Type of the secondary resources, which need not be Kubernetes
 * objects.
 */
export interface EventSource<
  P extends KubernetesObject = KubernetesObject,
  S = unknown,
> {
  /** Name for logs, metrics and `ctx.cause`, unique within the controller. */
  readonly name: string;
  /** Kind of the secondaries if they are Kubernetes objects. */
  readonly kind?: Kind | undefined;
  /**
   * Whether the reconciler never writes objects of this kind, so that the operator
   * only needs the permissions to read them.
   *
   * @default {false}
   */
  readonly readOnly?: boolean | undefined;
  /**
   * Start priority: loaders start before all other sources.
   *
   * @default {"default"}
   */
  readonly startPriority?: "loader" | "default" | undefined;
  /**
   * Whether the source only runs on the replica that leads: it starts, and has
   * synced, before the first run there, and stops when the replica no longer
   * leads. With sharding, or without leader election, each replica runs it.
   *
   * @default {false}
   */
  readonly leaderOnly?: boolean | undefined;
  /**
   * Where the source is called from outside, so that the manifests of its operator
   * lead there.
   */
  readonly listens?:
    | {
      /** Port; 0 for any free one, to which nothing leads. */
      readonly port: number;
      /** Address; only the own pod reaches a loopback address. */
      readonly host: string;
    }
    | undefined;
  /**
   * Starts the source.
   *
   * @returns Fulfilled when the source has synced; rejected if it cannot start.
   */
  start(context: SourceContext<P>): Promise<void>;
  /**
   * Stops the source and releases its resources.
   *
   * @returns Fulfilled when the source triggers no further runs.
   */
  stop(): Promise<void>;
  /** Health of the source; unknown without this method. */
  health?(): SourceHealth;
  /** Reads the secondaries of a primary; those from a cache are frozen. */
  secondaries?(primary: P): readonly S[] | Promise<readonly S[]>;
  /** Reads one secondary by its key, for sources of Kubernetes objects. */
  get?(key: ObjectKey): S | undefined | Promise<S | undefined>;
  /** Reads all secondaries in a namespace, for sources of Kubernetes objects. */
  list?(namespace?: string): readonly S[] | Promise<readonly S[]>;
  /**
   * Announces a write of the controller to an object of the kind. The object that
   * the server answers with then goes into the cache, and the event of the write
   * does not trigger a run, while changes of other clients do.
   */
  beginWrite?(key: ObjectKey): OwnWrite;
  /**
   * Called for each event of a primary, before its run, whatever the filters of
   * the controller say, and after each write of a run to it; it must not wait. By
   * default the source does not follow the primaries.
   */
  onPrimary?(event: PrimaryEvent<P>): void;
  /**
   * Called when this replica begins to run primaries that another one may have
   * run: what that one has written outside the cluster is not known here.
   */
  onLead?(): void;
  /**
   * Changes the namespaces of the source to those of the controller. Without this
   * method the source keeps its namespaces.
   *
   * @returns Fulfilled when the source has synced again.
   */
  changeNamespaces?(namespaces: NamespaceSet): Promise<void>;
}

/** Event sources of a controller, which can be added and removed while it runs. */
export interface SourceRegistry<P extends KubernetesObject = KubernetesObject> {
  /** Returns the source with a name; undefined if absent. */
  named(name: string): EventSource<P> | undefined;
  /**
   * Adds a source and starts it.
   *
   * @returns The source of this name, which may have existed before; fulfilled
   * when it has synced.
   */
  add(source: EventSource<P>): Promise<EventSource<P>>;
  /** Removes a source and stops it. */
  remove(name: string): Promise<void>;
}
