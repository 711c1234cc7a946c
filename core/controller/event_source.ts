import type { Kind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { ObjectKey } from "../api/object_key.ts";
import type { InformerPool } from "../cache/informer/informer_pool.ts";
import type { OwnWrite } from "../cache/informer/shared_informer.ts";
import type { Client } from "../client/client.ts";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { Metrics } from "../metrics.ts";

/** Which namespaces a controller or a source watches. */
export type NamespaceSet = "all" | readonly string[];

/** Whether a source does its work. */
export interface SourceHealth {
  /** `"unknown"` for sources that cannot tell. */
  readonly status: "healthy" | "unhealthy" | "unknown";
  /** What is wrong, for a person. */
  readonly message?: string | undefined;
}

/** What triggered a run, as far as the source can tell. */
export interface SourceEvent {
  /** The kind of the object that changed. */
  readonly kind?: string | undefined;
  /** The object that changed. */
  readonly object?: ObjectKey | undefined;
  /**
   * Whether the event only tells what was there already, at start or in a
   * relist: such runs wait behind live changes.
   *
   * @default {false}
   */
  readonly initial?: boolean | undefined;
}

/** Reads the primaries that the controller knows. */
export interface PrimaryCache<P extends KubernetesObject> {
  /**
   * One primary, frozen.
   *
   * @throws {Error} If a bounded cache keeps only its key: `read` fetches it.
   */
  get(key: ObjectKey | string): P | undefined;
  /** Whether there is such a primary; decodes nothing. */
  has(key: ObjectKey | string): boolean;
  /** The keys of all primaries, as `namespace/name` or `name`. */
  keys(): Iterable<string>;
  /** All primaries of a namespace, or of all; else as `get`. */
  list(namespace?: string): readonly P[];
  /**
   * The primaries for which an index of the controller has this value.
   *
   * @throws {RangeError} If there is no such index.
   */
  byIndex(index: string, value: string): readonly P[];
  /** One primary, fetched where a bounded cache keeps only its key. */
  read(key: ObjectKey | string): Promise<P | undefined>;
  /** All primaries of a namespace, or of all; else as `read`. */
  readList(namespace?: string): Promise<readonly P[]>;
}

/** What a controller gives an event source when it starts it. */
export interface SourceContext<P extends KubernetesObject = KubernetesObject> {
  /** The name of the controller. */
  readonly controller: string;
  /** The kind of the primaries. */
  readonly primaryKind: Kind<P>;
  /** The primaries that the controller knows. */
  readonly primaries: PrimaryCache<P>;
  /** The namespaces of the controller at this moment. */
  readonly namespaces: NamespaceSet;
  /** Talks to the API server. */
  readonly client: Client;
  /** Shares informers with everybody who watches the same. */
  readonly informers: InformerPool;
  /**
   * Under which names the controllers of the operator write: each once, sorted.
   */
  readonly fieldManagers: readonly string[];
  /** Where time comes from. */
  readonly clock: Clock;
  /** Where the source logs. */
  readonly log: Logger;
  /** Where the source counts. */
  readonly metrics: Metrics;
  /**
   * Asks for a run of a primary. Cheap; many calls before the run make one run.
   * A primary that the controller does not know is ignored.
   *
   * @param key The primary.
   * @param event Why, for `ctx.cause`.
   */
  trigger(key: ObjectKey | string, event?: SourceEvent): void;
}

/** What happened to a primary, told to sources that follow them. */
export interface PrimaryEvent<P extends KubernetesObject> {
  /** What happened; `deleted` also where it is not watched any more. */
  readonly type: "added" | "modified" | "deleted";
  /** To which primary. */
  readonly key: ObjectKey;
  /** The newest state, or the last one known; read lazily, frozen. */
  readonly object: P | undefined;
}

/**
 * Tells a controller which primaries to run, and knows the secondary resources
 * that belong to them.
 *
 * Expected flow: the controller calls `start` once and waits for its promise
 * before the first run, so that every run sees complete caches; then the source
 * calls `context.trigger` whenever something changed; `stop` is called once and
 * frees everything. After `stop` the source may be started again.
 *
 * Sources of priority `"loader"` are started, and have synced, before the
 * others start.
 *
 * @typeParam P The type of the primaries.
 * @typeParam S The type of the secondary resources, Kubernetes objects or not.
 */
export interface EventSource<
  P extends KubernetesObject = KubernetesObject,
  S = unknown,
> {
  /** Unique within the controller; seen in logs, metrics and `ctx.cause`. */
  readonly name: string;
  /** The kind of the secondaries, where they are Kubernetes objects. */
  readonly kind?: Kind | undefined;
  /**
   * Whether the reconciler never writes its objects, so that the operator needs
   * the right to watch them and no other.
   *
   * @default {false}
   */
  readonly readOnly?: boolean | undefined;
  /**
   * When it is started.
   *
   * @default {"default"}
   */
  readonly startPriority?: "loader" | "default" | undefined;
  /**
   * Begins to watch.
   *
   * @returns Fulfilled when the source has synced; rejected when it cannot
   * start at all.
   */
  start(context: SourceContext<P>): Promise<void>;
  /** Frees everything. No trigger comes after it is fulfilled. */
  stop(): Promise<void>;
  /**
   * Whether it does its work.
   *
   * @default {unknown}
   */
  health?(): SourceHealth;
  /** The secondaries of a primary, frozen where they come from a cache. */
  secondaries?(primary: P): readonly S[] | Promise<readonly S[]>;
  /** One secondary by its key, for sources of Kubernetes objects. */
  get?(key: ObjectKey): S | undefined | Promise<S | undefined>;
  /** All secondaries in a namespace, for sources of Kubernetes objects. */
  list?(namespace?: string): readonly S[] | Promise<readonly S[]>;
  /**
   * Told before the controller writes an object of the source's kind. The answer
   * then goes into the cache, and the event of the write does not trigger; what
   * others write meanwhile does.
   */
  beginWrite?(key: ObjectKey): OwnWrite;
  /** Follows the life of the primaries. */
  onPrimary?(event: PrimaryEvent<P>): void;
  /**
   * Follows a change of the controller's namespaces; fulfilled when it has
   * synced again. Sources without it keep watching what they did.
   */
  changeNamespaces?(namespaces: NamespaceSet): Promise<void>;
}
