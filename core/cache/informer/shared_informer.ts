import type { KubernetesObject } from "../../api/object.ts";
import type { ObjectKey } from "../../api/object_key.ts";
import type { CacheEvent, InformerHandler } from "./cache_event.ts";
import type { InformerHealth } from "./informer_options.ts";
import type { IndexDefinition } from "../store/object_store.ts";
import type { StoreUsage } from "../store/store_usage.ts";

/**
 * Reads a cache. What comes out is frozen and shared: copy before you change.
 *
 * @typeParam T The type of the objects.
 */
export interface CacheReader<T extends KubernetesObject = KubernetesObject> {
  /** How many objects the cache holds. */
  readonly size: number;
  /**
   * One object, decoded when first read.
   *
   * @throws {Error} If a bounded cache keeps only its key: `read` fetches it.
   */
  get(key: ObjectKey | string): T | undefined;
  /** Whether there is such an object; decodes nothing. */
  has(key: ObjectKey | string): boolean;
  /** The keys of all objects, as `namespace/name` or `name`. */
  keys(): Iterable<string>;
  /** All objects, or those of one namespace; else as `get`. */
  list(namespace?: string): readonly T[];
  /**
   * The objects for which an index gave this value.
   *
   * @throws {RangeError} If there is no such index.
   */
  byIndex(index: string, value: string): readonly T[];
  /**
   * One object, fetched where a bounded cache keeps only its key: then in the
   * state that the server has now, of which no event may have told yet.
   *
   * @throws {Error} If it cannot be fetched.
   */
  read(key: ObjectKey | string): Promise<T | undefined>;
  /** All objects, or those of one namespace; else as `read`. */
  readList(namespace?: string): Promise<readonly T[]>;
  /** As `byIndex`, with objects as `read` gives them. */
  readByIndex(index: string, value: string): Promise<readonly T[]>;
}

/** A handler that was added to an informer. */
export interface HandlerRegistration<
  T extends KubernetesObject = KubernetesObject,
> {
  /** Whether the handler has seen every object that was there at first. */
  readonly hasSynced: boolean;
  /**
   * Resolves when the handler has seen every object that was there at first;
   * rejects when the handler is removed or the informer stopped before.
   */
  readonly synced: Promise<void>;
  /**
   * Tells that the owner of this handler is about to write an object. Until the
   * write has ended, events of that object are held back for this handler, since
   * they may turn out to be the write's own echo.
   */
  beginWrite(key: ObjectKey | string): OwnWrite<T>;
  /** Takes the handler away at once: it is not called again. Safe to repeat. */
  remove(): void;
}

/**
 * One write of ours that is under way. Exactly one of its methods must be
 * called, once; later calls do nothing.
 *
 * Guarantees
 * - After `succeed`, every read of the cache sees the written state or a newer
 *   one; other handlers are told of it at once.
 * - The echo of the write gives the writer's handler no event.
 * - A change by somebody else, before, between or after, always gives one.
 */
export interface OwnWrite<T extends KubernetesObject = KubernetesObject> {
  /**
   * The server stored the write.
   *
   * @param object What the server answered.
   */
  succeed(object: T, options?: OwnWriteResult): void;
  /** The write failed, or nobody knows whether it was stored. */
  fail(): void;
}

/** What is known of a write that was stored. */
export interface OwnWriteResult {
  /**
   * The resourceVersion on which the write was conditional, if it was: then an
   * answer with the same one means that nothing changed.
   */
  readonly base?: string | undefined;
  /**
   * What was sent, where it is a part of the object: an apply configuration or
   * a merge patch. It tells an answer that shows somebody else's change from our
   * own; without it, and without `base`, the answer is taken for our own.
   */
  readonly sent?: unknown;
  /**
   * Whether the write went to a subresource, which cannot change the
   * generation: if it differs all the same, somebody else changed the object.
   *
   * @default {false}
   */
  readonly subresource?: boolean | undefined;
}

/** How a handler is added. */
export interface AddHandlerOptions {
  /**
   * For logs and metrics.
   *
   * @default {"handler"}
   */
  readonly name?: string | undefined;
}

/**
 * What users of an informer do with it: read, listen, write through. Who owns
 * it also starts and stops it.
 *
 * @typeParam T The type of the objects.
 */
export interface SharedInformer<T extends KubernetesObject = KubernetesObject>
  extends CacheReader<T> {
  /** Whether the cache has once been complete. */
  readonly hasSynced: boolean;
  /** Resolves when the cache is complete; rejects when stopped before. */
  readonly synced: Promise<void>;
  /**
   * Adds a handler. It first sees `added` with `initial` for every object that
   * is there, a slice at a time, then every change.
   */
  addHandler(
    handler: InformerHandler<T>,
    options?: AddHandlerOptions,
  ): HandlerRegistration<T>;
  /**
   * Adds an index over all objects, present and future.
   *
   * @param name How {@linkcode CacheReader.byIndex} asks for it.
   * @param definition Under which values an object is found.
   * @throws {RangeError} If there is an index of that name.
   */
  addIndex(name: string, definition: IndexDefinition<T>): void;
  /**
   * Events as a loop takes them. A slow reader misses no object: events of the
   * same object are merged while they wait, so that at most two wait for each.
   */
  events(
    options?: { readonly signal?: AbortSignal | undefined },
  ): AsyncIterableIterator<CacheEvent<T>>;
  /** Whether and how it works. */
  health(): InformerHealth;
  /** How much memory the cache uses, by tier. */
  usage(): StoreUsage;
}
