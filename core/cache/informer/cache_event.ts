import type { KubernetesObject } from "../../api/object.ts";
import type { ObjectHeader } from "../../json/object_header.ts";

/** What happened to an object, as the cache sees it. */
export type CacheEventType = "added" | "updated" | "deleted";

/**
 * One change of a cache, already applied to it: a read of the cache from within
 * a handler sees the new state.
 *
 * The event itself, its headers and whatever they hand out lazily are **only
 * valid during the call** of the handler: the next event reuses them. Strings
 * and the decoded `object` and `previous` may be kept; whoever needs the whole
 * event later takes {@linkcode CacheEvent.detach}.
 *
 * Promises
 * - Events of one object come in order, and none comes after the informer was
 *   stopped or the handler was removed.
 * - `added` and `deleted` alternate: an object that was deleted and made again
 *   under the same name gives `deleted` and then `added`, also when the watch
 *   missed the deletion.
 * - An object that the handler's owner made itself is not told as `added`.
 * - Several changes may come as one event, from the oldest state that was told
 *   to the newest.
 *
 * @typeParam T The type of the objects.
 */
export interface CacheEvent<T extends KubernetesObject = KubernetesObject> {
  /** What happened. */
  readonly type: CacheEventType;
  /** The object as text: `namespace/name`, or `name`. */
  readonly key: string;
  /**
   * The metadata of the new state, of a deleted object the last one known, read
   * from its bytes without decoding the object.
   */
  readonly header: ObjectHeader;
  /**
   * The metadata of the state before. Absent for `added`, and where the state
   * before is not known any more; filters let such events pass.
   */
  readonly previousHeader: ObjectHeader | undefined;
  /**
   * Whether the metadata is what it was, but for `resourceVersion` and
   * `managedFields`; false where that is not known without reading
   * `previousHeader`, which takes longer.
   */
  readonly hasSameMetadata: boolean;
  /**
   * The new state, of a deleted object the last one known; decoded when read.
   *
   * @throws {Error} If a bounded cache has kept no more than the key meanwhile.
   */
  readonly object: T;
  /** The state before, decoded when read; absent as `previousHeader` is. */
  readonly previous: T | undefined;
  /**
   * Whether the object was there when the informer began to watch, or when the
   * handler was added.
   */
  readonly initial: boolean;
  /**
   * Whether the change was found by listing again after the watch was lost:
   * changes between may have been missed.
   */
  readonly relist: boolean;
  /**
   * Whether `object` may be older than what was deleted, since the deletion
   * itself was not seen. Of an object of which a bounded cache has kept the key
   * alone, it has the identity only.
   */
  readonly finalStateUnknown: boolean;
  /** A copy that may be kept. It costs a copy of the object's bytes. */
  detach(): CacheEvent<T>;
}

/**
 * Takes the events of an informer, synchronously and in order. What it throws
 * is logged and counted and does not stop the stream. It must be quick: while
 * it runs, nothing else does.
 */
export type InformerHandler<T extends KubernetesObject = KubernetesObject> = (
  event: CacheEvent<T>,
) => void;
