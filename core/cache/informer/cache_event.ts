import type { KubernetesObject } from "../../api/object.ts";
import { keyText, type ObjectKey } from "../../api/object_key.ts";
import { type ByteRange, equalRanges } from "../../json/byte_range.ts";
import { EventScanner } from "../../json/event_scanner.ts";
import {
  type EventHeader,
  hasSameMetadata,
  ObjectHeader,
} from "../../json/object_header.ts";
import { MAX_SLOTS } from "../store/key_table.ts";
import type { ObjectStore } from "../store/object_store.ts";

/** Maximum size of the memory of a header that the next one reuses. */
const MAX_KEPT_BYTES = 64 * 1024;

/** Type of a change of the cache. */
export type CacheEventType = "added" | "updated" | "deleted";

/**
 * Change of a cache, already applied to it: a handler that reads the cache sees
 * the new state.
 *
 * The event, its headers and everything that they give lazily are **valid only
 * during the call** of the handler: the next event reuses them. Strings and the
 * decoded `object` and `previous` may be kept; {@linkcode CacheEvent.detach}
 * copies the whole event.
 *
 * Guarantees
 * - Events of one object are delivered in order, and none after the informer was
 *   stopped or the handler was removed.
 * - `added` and `deleted` alternate: an object that was deleted and created again
 *   under the same name gives `deleted` and then `added`, even if the watch
 *   missed the deletion.
 * - An object that the owner of the handler created itself gives no `added`.
 * - Several changes may be merged into one event, from the oldest state that was
 *   delivered to the newest.
 *
 * @typeParam T The type of the objects.
 */
export interface CacheEvent<T extends KubernetesObject = KubernetesObject> {
  /** Type of the change. */
  readonly type: "added" | "updated" | "deleted";
  /** Key of the object: `namespace/name`, or `name`. */
  readonly key: string;
  /**
   * Metadata of the new state, or of the last known state of a deleted object;
   * read from its bytes without decoding the object.
   */
  readonly header: EventHeader;
  /**
   * Metadata of the previous state. Undefined for `added`, and where the previous
   * state is no longer known; filters accept events without it.
   */
  readonly previousHeader: EventHeader | undefined;
  /**
   * Whether the metadata is unchanged, except for `resourceVersion` and
   * `managedFields`; false if finding out requires reading `previousHeader`, which
   * takes longer.
   */
  readonly hasSameMetadata: boolean;
  /**
   * New state of the object, or the last known state of a deleted one; decoded
   * when read.
   *
   * @throws {Error} If a bounded cache has evicted everything but the key since.
   */
  readonly object: T;
  /**
   * Previous state of the object, decoded when read; undefined if `previousHeader`
   * is undefined.
   */
  readonly previous: T | undefined;
  /**
   * Whether the object existed when the informer began to watch, or when the
   * handler was added. A first state whose reading broke is read again: an object
   * that changed in between is reported as updated, and changes in between are missing.
   */
  readonly initial: boolean;
  /**
   * Whether the change was found by a relist after the watch was lost: changes in
   * between may be missing.
   */
  readonly relist: boolean;
  /**
   * Whether `object` may be older than the deleted state, since the deletion
   * itself was not seen. If a bounded cache kept only the key of the object,
   * `object` contains only the identity.
   */
  readonly finalStateUnknown: boolean;
  /** Copies the event, with the bytes of the object, so that it can be kept. */
  detach(): CacheEvent<T>;
}

/**
 * Handler of the events of an informer, called synchronously and in order. An
 * exception is logged and counted and does not stop the stream. It must be fast:
 * it blocks everything else.
 */
export type InformerHandler<T extends KubernetesObject = KubernetesObject> = (
  event: CacheEvent<T>,
) => void;

export type EventReader<T extends KubernetesObject> = Pick<
  ObjectStore<T>,
  "decode" | "find" | "headerAt" | "keyAt" | "number"
>;

/** Data of an event: one change of the cache. */
export interface EventFacts {
  readonly type: "added" | "updated" | "deleted";
  /**
   * Header of the new state, or of the last state of a deleted object; undefined for
   * the object in the slot, whose header is read on demand.
   */
  readonly header: ObjectHeader | undefined;
  /** Previous state, as a header or as unscanned bytes. */
  readonly previous?: ObjectHeader | ByteRange | undefined;
  readonly initial?: boolean | undefined;
  readonly relist?: boolean | undefined;
  readonly finalStateUnknown?: boolean | undefined;
  /** Whether the JSON of the previous state has `metadata` only once. */
  readonly isRegular?: boolean | undefined;
  /** Slot of the object in the store; undefined for events of a single handler. */
  readonly slot?: number | undefined;
  /** Whether the event was copied; the cache may have changed since. */
  readonly isDetached?: boolean | undefined;
  /** Snapshot that the state is from, if it has not changed since. */
  readonly snapshot?: IdleObjects | undefined;
}

/** What a snapshot says of the objects that it has. */
export interface IdleObjects {
  /** Whether a controller knew the object, and had nothing left to do for it. */
  wasIdle(controller: string, key: string): boolean;
}

/**
 * Event that an informer delivers. One instance is reused for all changes, so that
 * a change that no handler inspects creates no garbage.
 *
 * If a bounded cache keeps only the key of an object, its states are partial: the
 * previous state is undefined, since filters accept such an event, and reading the
 * new state throws.
 */
export class CurrentEvent<T extends KubernetesObject> implements CacheEvent<T> {
  readonly #reader: EventReader<T>;
  #previousScanner: EventScanner | undefined;
  #facts: EventFacts;
  #previousHeader: ObjectHeader | undefined;
  #hasSameMetadata: boolean | undefined;
  #object: T | undefined;
  #previousObject: T | undefined;
  /** Copy of the header in the slot, once it was read; and its memory. */
  #header: ObjectHeader | undefined;
  #headerMemory: ObjectHeader | undefined;

  constructor(reader: EventReader<T>, facts: EventFacts) {
    this.#reader = reader;
    this.#facts = facts;
  }

  /** Reuses the event for another change. */
  set(facts: EventFacts): this {
    this.#facts = facts;
    this.#previousHeader = undefined;
    this.#hasSameMetadata = undefined;
    this.#object = undefined;
    this.#previousObject = undefined;
    this.#header = undefined;
    const { length } = this.#headerMemory?.bytes ?? [];
    if (length > MAX_KEPT_BYTES) this.#headerMemory = undefined;
    return this;
  }

  get type(): "added" | "updated" | "deleted" {
    return this.#facts.type;
  }

  get key(): string {
    const { header = this.#header, slot = -1 } = this.#facts;
    const key = header === undefined ? this.#reader.keyAt(slot) : undefined;
    return key === undefined ? this.header.keyText : keyText(key);
  }

  get header(): ObjectHeader {
    const { header, slot = -1 } = this.#facts;
    if (header !== undefined) return header;
    // Of the store: its next call would change it.
    return this.#header ??= this.#headerMemory = this.#reader.headerAt(slot)
      .copy(this.#headerMemory);
  }

  /** Previous state; undefined, too, if its page cannot be read. */
  get #previous(): ObjectHeader | ByteRange | undefined {
    const { previous } = this.#facts;
    if (previous === undefined || previous instanceof ObjectHeader) {
      return previous;
    }
    try {
      return previous.start >= 0 ? previous : undefined; // opens the page
    } catch {
      return undefined; // pages of snapshots are taken over unread
    }
  }

  get previousHeader(): ObjectHeader | undefined {
    const previous = this.#previous;
    if (previous === undefined) return undefined;
    if (previous instanceof ObjectHeader) {
      return previous.isPartial ? undefined : previous;
    }
    this.#previousScanner ??= new EventScanner();
    this.#previousHeader ??= this.#previousScanner.scanObject(previous);
    return this.#previousHeader;
  }

  /**
   * Header of the previous state, which stays valid.
   *
   * @param known Header of a state that may be the same; it is returned then.
   */
  keepPrevious(known: ObjectHeader | undefined): ObjectHeader | undefined {
    const previous = this.#previous;
    const isSame = previous !== undefined && known?.isPartial === false &&
      equalRanges(known, previous);
    return isSame ? known : this.previousHeader?.copy();
  }

  get hasSameMetadata(): boolean {
    const previous = this.#facts.isRegular === true
      ? this.#previous
      : undefined;
    if (previous === undefined || previous instanceof ObjectHeader) {
      return false;
    }
    this.#hasSameMetadata ??= hasSameMetadata(this.header, previous);
    return this.#hasSameMetadata;
  }

  get object(): T {
    const { header } = this;
    const { type, isDetached } = this.#facts;
    if (type === "deleted") this.#object ??= this.#reader.decode(header);
    // A cached object is decoded once for all readers.
    else if (!isDetached) this.#object ??= this.#reader.find(header);
    if (this.#object === undefined && header.isPartial) {
      throw new Error(
        `Cannot read the object ${this.key} of an event: only its key is kept, and read() of the cache would fetch it`,
      );
    }
    return this.#object ??= this.#reader.decode(header);
  }

  get previous(): T | undefined {
    const header = this.previousHeader;
    if (header === undefined) return undefined;
    this.#previousObject ??= this.#reader.decode(header);
    return this.#previousObject;
  }

  /** Slot of the object in the store; -1 for an event of a single handler. */
  get slot(): number {
    return this.#facts.slot ?? -1;
  }

  /** Place of the object, as for `placeOf` of an informer; -1 if it is not known. */
  get place(): number {
    const { slot = -1 } = this.#facts;
    return slot < 0 ? -1 : placeIn(this.#reader, slot);
  }

  get initial(): boolean {
    return this.#facts.initial === true;
  }

  /** Snapshot that the state is from, if it has not changed since. */
  get snapshot(): IdleObjects | undefined {
    return this.#facts.snapshot;
  }

  get relist(): boolean {
    return this.#facts.relist === true;
  }

  get finalStateUnknown(): boolean {
    return this.#facts.finalStateUnknown === true;
  }

  detach(): CurrentEvent<T> {
    return new CurrentEvent(this.#reader, {
      ...this.#facts,
      header: this.header.copy(),
      previous: this.previousHeader?.copy(),
      isDetached: true,
    });
  }

  /** Merges this detached event with a later event of the same object. */
  mergedWith(later: CurrentEvent<T>): CurrentEvent<T> {
    return new CurrentEvent(this.#reader, {
      type: later.type === "deleted" ? "deleted" : this.type,
      header: later.header.copy(),
      previous: this.previousHeader,
      initial: this.initial && later.initial,
      relist: this.relist || later.relist,
      finalStateUnknown: later.finalStateUnknown,
      isDetached: true,
    });
  }
}

/**
 * Place of an object in all caches of the process: a number that is its own as
 * long as it stays in its store.
 */
export function placeIn(
  store: { readonly number: number },
  slot: number,
): number {
  return store.number * (MAX_SLOTS + 1) + slot;
}

/** Number of the store, and slot, of a place. */
export function storeAndSlot(place: number): readonly [number, number] {
  return [Math.floor(place / (MAX_SLOTS + 1)), place % (MAX_SLOTS + 1)];
}

/**
 * Event of a deletion that was not received.
 *
 * @param last Last known state; it must outlive the event.
 */
export function missingEvent<T extends KubernetesObject>(
  reader: EventReader<T>,
  last: ObjectHeader,
  facts: Pick<EventFacts, "relist" | "slot"> = {},
): CurrentEvent<T> {
  return new CurrentEvent(reader, {
    type: "deleted",
    header: last,
    previous: last,
    finalStateUnknown: true,
    ...facts,
  });
}

/** Key of the object that a header describes. */
export function keyOfHeader({ namespace, name }: EventHeader): ObjectKey {
  return namespace === "" ? { name } : { namespace, name };
}
