import type { KubernetesObject } from "../../api/object.ts";
import type { ObjectKey } from "../../api/object_key.ts";
import { EventScanner } from "../../json/event_scanner.ts";
import { ObjectHeader } from "../../json/object_header.ts";
import type { ByteRange } from "../../json/byte_range.ts";
import { hasSameMetadata } from "../../json/same_metadata.ts";
import type { CacheEvent, CacheEventType } from "./cache_event.ts";

/** How an event finds what it does not hold. */
export interface EventSource<T extends KubernetesObject> {
  /**
   * The object that the cache holds under the name of a header, frozen;
   * undefined if it holds none, or only the key.
   */
  current(header: ObjectHeader): T | undefined;
  /** Decodes and freezes the object that a header describes. */
  decode(header: ObjectHeader): T;
}

/** What is known of one change. */
export interface EventFacts {
  readonly type: CacheEventType;
  /** Of the new state, of a deleted object the last one. */
  readonly header: ObjectHeader;
  /** The state before: as a header, or as bytes that nobody scanned yet. */
  readonly previous?: ObjectHeader | ByteRange | undefined;
  readonly initial?: boolean | undefined;
  readonly relist?: boolean | undefined;
  readonly finalStateUnknown?: boolean | undefined;
  /** Whether the bytes of the state before have `metadata` but once. */
  readonly isRegular?: boolean | undefined;
  /**
   * Where the object is, or was, among all of the informer; absent for an event
   * of one handler alone.
   */
  readonly place?: number | undefined;
}

/**
 * The event that an informer hands out. There is one of it, set anew for each
 * change, so that a change that nobody looks into makes no garbage.
 *
 * What is known of the states may be partial, where only keys are kept: of the
 * state before it then tells nothing, since a filter must let such an event
 * pass, and the new state cannot be had at once.
 */
export class CurrentEvent<T extends KubernetesObject> implements CacheEvent<T> {
  readonly #source: EventSource<T>;
  #previousScanner: EventScanner | undefined;
  #facts: EventFacts;
  #previousHeader: ObjectHeader | undefined;
  #hasSameMetadata: boolean | undefined;
  #object: T | undefined;
  #previousObject: T | undefined;

  constructor(source: EventSource<T>, facts?: EventFacts) {
    this.#source = source;
    // One without facts is set before it is handed out.
    this.#facts = facts as EventFacts;
  }

  /** Makes this the event of another change. */
  set(facts: EventFacts): this {
    this.#facts = facts;
    this.#previousHeader = undefined;
    this.#hasSameMetadata = undefined;
    this.#object = undefined;
    this.#previousObject = undefined;
    return this;
  }

  get type(): CacheEventType {
    return this.#facts.type;
  }

  get key(): string {
    return keyTextOf(this.#facts.header);
  }

  get header(): ObjectHeader {
    return this.#facts.header;
  }

  get previousHeader(): ObjectHeader | undefined {
    const { previous } = this.#facts;
    if (previous === undefined) return undefined;
    if (previous instanceof ObjectHeader) {
      return previous.isPartial ? undefined : previous;
    }
    this.#previousScanner ??= new EventScanner();
    this.#previousHeader ??= this.#previousScanner.scanObject(previous);
    return this.#previousHeader;
  }

  get hasSameMetadata(): boolean {
    const { header, previous, isRegular } = this.#facts;
    if (previous === undefined || previous instanceof ObjectHeader) {
      return false;
    }
    this.#hasSameMetadata ??= isRegular === true &&
      hasSameMetadata(header, previous);
    return this.#hasSameMetadata;
  }

  get object(): T {
    const { type, header } = this.#facts;
    if (type === "deleted") this.#object ??= this.#source.decode(header);
    // What the cache holds is decoded once for all who read it.
    this.#object ??= this.#source.current(header) ?? this.#decodeWhole(header);
    return this.#object;
  }

  get previous(): T | undefined {
    const header = this.previousHeader;
    if (header === undefined) return undefined;
    this.#previousObject ??= this.#source.decode(header);
    return this.#previousObject;
  }

  /** Where the object is, or was, among all of the informer; -1 if untold. */
  get place(): number {
    return this.#facts.place ?? -1;
  }

  get initial(): boolean {
    return this.#facts.initial === true;
  }

  get relist(): boolean {
    return this.#facts.relist === true;
  }

  get finalStateUnknown(): boolean {
    return this.#facts.finalStateUnknown === true;
  }

  detach(): CacheEvent<T> {
    // The cache may hold a later state by the time that it is read.
    const source: EventSource<T> = {
      current: () => undefined,
      decode: (header) => this.#source.decode(header),
    };
    return new CurrentEvent(source, {
      ...this.#facts,
      header: this.#facts.header.copy(),
      previous: this.previousHeader?.copy(),
    });
  }

  #decodeWhole(header: ObjectHeader): T {
    if (!header.isPartial) return this.#source.decode(header);
    throw new Error(
      `Cannot read the object of an event at once: only its key is kept, and read() of the cache would fetch it: received ${this.key}`,
    );
  }
}

/** The key of the object that a header describes. */
export function keyOfHeader({ namespace, name }: ObjectHeader): ObjectKey {
  return namespace === "" ? { name } : { namespace, name };
}

/** The key of the object that a header describes, as text. */
export function keyTextOf(header: ObjectHeader): string {
  const { namespace, name } = header;
  return namespace === "" ? name : `${namespace}/${name}`;
}
