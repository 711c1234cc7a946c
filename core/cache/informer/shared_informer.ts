import type { KubernetesObject } from "../../api/object.ts";
import type { ObjectKey } from "../../api/object_key.ts";
import type { CacheEvent, InformerHandler } from "./cache_event.ts";
import type { WatchHealth } from "../watch/watch_record.ts";
import type { IndexDefinition } from "../store/object_indexes.ts";
import type { StoreUsage } from "../store/store_usage.ts";

/**
 * Reader of a cache. Objects are frozen and shared: copy one to change it.
 *
 * @typeParam T The type of the objects.
 */
export interface CacheReader<T extends KubernetesObject = KubernetesObject> {
  /** Number of cached objects. */
  readonly size: number;
  /**
   * Cached object, decoded when first read; undefined if absent.
   *
   * @throws {Error} If a bounded cache keeps only its key: `read` fetches it.
   */
  get(key: ObjectKey | string): T | undefined;
  /** Whether an object with this key is cached; decodes nothing. */
  has(key: ObjectKey | string): boolean;
  /** Keys of all objects, as `namespace/name` or `name`. */
  keys(): Iterable<string>;
  /**
   * All objects, or those of one namespace, decoded when first read.
   *
   * @throws {Error} If a bounded cache keeps only the key of one.
   */
  list(namespace?: string): readonly T[];
  /**
   * Objects for which an index has this value.
   *
   * @throws {RangeError} If there is no index of this name.
   */
  byIndex(index: string, value: string): readonly T[];
  /**
   * Cached object. If a bounded cache keeps only its key, the current state is
   * fetched from the server; it may be newer than the last event.
   *
   * @throws {Error} If it cannot be fetched.
   */
  read(key: ObjectKey | string): Promise<T | undefined>;
  /** All objects, or those of one namespace; fetched if only keys are kept. */
  readList(namespace?: string): Promise<readonly T[]>;
  /** Objects for which an index has this value; fetched if only keys are kept. */
  readByIndex(index: string, value: string): Promise<readonly T[]>;
}

/** Whether an informer has its cache, and the state of each of its watches. */
export interface InformerHealth {
  /** Kind as text, such as `apps/v1 Deployment`. */
  readonly kind: string;
  /** Whether every watch works, or has only just begun to reconnect. */
  readonly healthy: boolean;
  /** Whether the cache has been complete once. */
  readonly synced: boolean;
  /** Health of each watch. */
  readonly watches: readonly WatchHealth[];
}

/** What has arrived of a cache that is not complete. */
export interface SyncProgress {
  /** Name of the cluster, for a controller of many; absent for the operator's own. */
  readonly cluster?: string | undefined;
  /** Kind as text, such as `apps/v1 Deployment`. */
  readonly kind: string;
  /** Namespace of the watch; undefined for all namespaces. */
  readonly namespace: string | undefined;
  /** Number of objects that have arrived. */
  readonly objects: number;
  /** Memory that they take, in bytes. */
  readonly bytes: number;
  /** Number of objects that the server has; undefined if it did not say. */
  readonly expected: number | undefined;
  /** Estimate of the time that is left, in milliseconds; undefined without one. */
  readonly remaining: number | undefined;
}

/** Registration of a handler of an informer. */
export interface HandlerRegistration<
  T extends KubernetesObject = KubernetesObject,
> {
  /** Whether the objects that existed before were delivered to the handler. */
  readonly hasSynced: boolean;
  /**
   * Promise that is fulfilled when the initial objects were delivered to the
   * handler, and rejected if the handler is removed or the informer stopped
   * before.
   */
  readonly synced: Promise<void>;
  /**
   * Begins an own write of the owner of this handler. Until it has ended, events
   * of the object are held back for this handler, since they may be the echo of
   * the write.
   */
  beginWrite(key: ObjectKey | string): OwnWrite<T>;
  /** Removes the handler immediately: it is not called again. Safe to repeat. */
  remove(): void;
}

/**
 * Own write under way: a write by the owner of a handler. Exactly one of its
 * methods must be called, once; later calls do nothing.
 *
 * Guarantees
 * - After `succeed`, every read of the cache sees the written state or a newer
 *   one; other handlers get its event immediately.
 * - The echo of the write gives the handler of its author no event.
 * - A change by another client, at any time, always gives it an event.
 */
export interface OwnWrite<T extends KubernetesObject = KubernetesObject> {
  /**
   * Ends a write that the server stored.
   *
   * @param object Response of the server, or its JSON.
   */
  succeed(object: T | Uint8Array, options?: {
    /**
     * ResourceVersion that the write required, if any: a response with the same
     * version means that nothing changed.
     */
    readonly base?: string | undefined;
    /**
     * Body of the write, where it is a part of the object: an apply configuration or
     * a merge patch. It distinguishes a response that contains a change by another
     * client; without it, and without `base`, the whole response counts as the
     * result of this write.
     */
    readonly sent?: unknown;
    /**
     * Whether the write was to a subresource, which cannot change the generation:
     * a different generation means that another client changed the object.
     *
     * @default {false}
     */
    readonly subresource?: boolean | undefined;
    /**
     * Whether the handler of the author gets the event of the write, as others do.
     *
     * @default {false}
     */
    readonly delivered?: boolean | undefined;
  }): void;
  /** Ends a write that failed, or whose result is unknown. */
  fail(): void;
}

/** Details of a write that was stored. */
export type OwnWriteResult = NonNullable<Parameters<OwnWrite["succeed"]>[1]>;

/** Options of {@linkcode SharedInformer.addHandler}. */
export interface AddHandlerOptions {
  /**
   * Name of the handler, for logs and metrics.
   *
   * @default {"handler"}
   */
  readonly name?: string | undefined;
}

/**
 * Shared part of an informer: reads, handlers and own writes. Only its owner
 * starts and stops it.
 *
 * @typeParam T The type of the objects.
 */
export interface SharedInformer<T extends KubernetesObject = KubernetesObject>
  extends CacheReader<T> {
  /** Whether the cache has been complete once. */
  readonly hasSynced: boolean;
  /**
   * Promise that is fulfilled when the cache is complete, and rejected if the
   * informer is stopped before.
   */
  readonly synced: Promise<void>;
  /**
   * Adds a handler. It first gets `added` with `initial` for every cached object,
   * in short time slices, then every change.
   */
  addHandler(
    handler: InformerHandler<T>,
    options?: AddHandlerOptions,
  ): HandlerRegistration<T>;
  /**
   * Adds an index over all objects, present and future.
   *
   * @param name Name for {@linkcode CacheReader.byIndex}.
   * @param definition Values under which an object is found.
   * @throws {RangeError} If there is an index of this name.
   */
  addIndex(name: string, definition: IndexDefinition<T>): void;
  /**
   * Events for a `for await` loop. A slow loop misses no object: events of the same
   * object are merged while they wait, so that at most two wait for each.
   */
  events(
    options?: { readonly signal?: AbortSignal | undefined },
  ): AsyncIterableIterator<CacheEvent<T>>;
  /** Health of the informer. */
  health(): InformerHealth;
  /** Memory that the cache uses, by tier. */
  usage(): StoreUsage;
}
