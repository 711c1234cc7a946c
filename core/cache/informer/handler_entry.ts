import type { KubernetesObject } from "../../api/object.ts";
import { keyText, type ObjectKey } from "../../api/object_key.ts";
import type { ObjectHeader } from "../../json/object_header.ts";
import type { InformerHandler } from "./cache_event.ts";
import {
  type CurrentEvent,
  type EventFacts,
  keyTextOf,
} from "./current_event.ts";
import { isExplainedBy } from "./explained_change.ts";
import { OwnWriteWindow, type Release } from "./own_write_window.ts";
import type {
  HandlerRegistration,
  OwnWrite,
  OwnWriteResult,
} from "./shared_informer.ts";
import type { KnownEvent, OwnWriteOutcome } from "./store_feed.ts";

/** An object in the cache, and where it is among all of them. */
export interface PlacedObject {
  readonly place: number;
  readonly header: ObjectHeader;
}

/** What a {@linkcode HandlerEntry} asks of its informer. */
export interface HandlerHost<T extends KubernetesObject> {
  /** How many objects the cache holds. */
  readonly size: number;
  /** The first object at a place or behind it, its header to keep. */
  next(place: number): PlacedObject | undefined;
  /** An event of its own, which the next change does not overwrite. */
  event(facts: EventFacts): CurrentEvent<T>;
  /** The header of a cached object, to keep. */
  header(key: string): ObjectHeader | undefined;
  /** The object that a header describes, as reads give it. */
  decode(header: ObjectHeader): T;
  /** The header of the answer to a write, in the form that the cache keeps. */
  scan(answer: T): ObjectHeader;
  /**
   * Brings the answer to a write into the cache and tells all other handlers.
   *
   * @param writer Who is not told, if anybody.
   * @returns Undefined if the object does not belong into the cache.
   */
  store(
    answer: ObjectHeader,
    writer: HandlerEntry<T> | undefined,
  ): OwnWriteOutcome | undefined;
  /** Takes the entry away. */
  remove(entry: HandlerEntry<T>): void;
  /** A handler threw. */
  onError(entry: HandlerEntry<T>, error: unknown): void;
}

/** An own write that was stored. */
interface EndedWrite<T extends KubernetesObject> {
  /** Of which object. */
  readonly key: string;
  /** Its number in its window. */
  readonly write: number;
  readonly object: T;
  readonly result: OwnWriteResult;
  /** What the cache had when it began. */
  readonly before: ObjectHeader | undefined;
}

/**
 * One handler of an informer, with the windows of its owner's writes.
 *
 * While it is shown what was there when it was added, it remembers how far that
 * has come, by place. A change of an object behind that place is told, one of an
 * object before it comes in time: as what is there, or not at all if it is gone.
 *
 * @typeParam T The type of the objects.
 */
export class HandlerEntry<T extends KubernetesObject>
  implements HandlerRegistration<T> {
  /** For logs and metrics. */
  readonly name: string;
  readonly #handler: InformerHandler<T>;
  readonly #host: HandlerHost<T>;
  /** Of objects that we are writing, or whose echo has not come yet. */
  readonly #windows: Map<string, OwnWriteWindow<ObjectHeader>> = new Map();
  /** From which place on it has to be shown what is there. */
  #unseen: number;
  /** Objects before that place that it knows already, since they changed. */
  readonly #told: Set<string> = new Set();
  #removed = false;
  #hasSynced = false;
  readonly #sync: PromiseWithResolvers<void> = Promise.withResolvers();

  constructor(
    handler: InformerHandler<T>,
    parts: { readonly name: string; readonly host: HandlerHost<T> },
  ) {
    this.#handler = handler;
    this.name = parts.name;
    this.#host = parts.host;
    this.#unseen = this.#host.size === 0 ? Infinity : 0;
    // Nobody has to wait for it.
    this.#sync.promise.catch(() => {});
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  get synced(): Promise<void> {
    return this.#sync.promise;
  }

  /** Whether it has seen all that was there when it was added. */
  get isReplayed(): boolean {
    return this.#unseen === Infinity;
  }

  remove(): void {
    if (this.#removed) return;
    this.#removed = true;
    this.#windows.clear();
    this.#endReplay();
    this.#sync.reject(new Error("Cannot sync: the handler was removed"));
    this.#host.remove(this);
  }

  /** The informer and the handler have both seen everything. */
  settle(): void {
    if (this.#removed || this.#hasSynced) return;
    this.#hasSynced = true;
    this.#sync.resolve();
  }

  /** The cache changed. */
  changed(event: CurrentEvent<T>): void {
    if (this.#removed) return;
    const told = event.place < this.#unseen ? event : this.#firstSight(event);
    if (told === undefined) return;
    const window = this.#windows.size === 0
      ? undefined
      : this.#windows.get(event.key);
    if (window === undefined) return this.#call(told);
    if (told.type === "deleted") {
      window.deleted(told.header.resourceVersion);
      this.#closeIfDone(event.key, window);
      return this.#call(told);
    }
    const release = window.event({
      type: told.type,
      resourceVersion: told.header.resourceVersion,
      // What a list shows may hide changes, the first one as any later.
      relist: told.relist || told.initial,
      previous: told.previousHeader?.copy(),
    });
    this.#release(event.key, window, release);
  }

  /** An event changed nothing in the cache. */
  known(event: KnownEvent): void {
    const window = this.#windows.get(event.key);
    if (window === undefined) return;
    const release = event.stale || event.listed
      ? window.stale({ ...event, relist: event.listed })
      : (window.progress(event.resourceVersion), undefined);
    this.#release(event.key, window, release);
  }

  /** The stream has told everything up to a state, in the given objects. */
  progressed(resourceVersion: string, covers: (key: string) => boolean): void {
    for (const [key, window] of this.#windows) {
      if (!covers(key)) continue;
      window.progress(resourceVersion);
      this.#closeIfDone(key, window);
    }
  }

  /** The versions of the given objects mean other states from now on. */
  restarted(covers: (key: string) => boolean): void {
    for (const [key, window] of this.#windows) {
      if (!covers(key)) continue;
      window.restart();
      this.#closeIfDone(key, window);
    }
  }

  /** Forgets what was told of objects that are not watched any more. */
  leave(left: (key: string) => boolean): void {
    for (const [key, window] of this.#windows) {
      if (!left(key)) continue;
      window.leave();
      this.#closeIfDone(key, window);
    }
  }

  /**
   * Shows the next object that was there when the handler was added.
   *
   * @returns Whether there may be more.
   */
  showNext(): boolean {
    if (this.isReplayed) return false;
    const next = this.#host.next(this.#unseen);
    if (next === undefined) {
      this.#endReplay();
      return false;
    }
    const { place, header } = next;
    this.#unseen = place + 1;
    if (this.#told.size === 0 || !this.#told.has(keyTextOf(header))) {
      this.#call(this.#host.event({ type: "added", header, initial: true }));
    }
    return true;
  }

  #endReplay(): void {
    this.#unseen = Infinity;
    this.#told.clear();
  }

  beginWrite(key: ObjectKey | string): OwnWrite<T> {
    const text = typeof key === "string" ? key : keyText(key);
    const window = this.#windows.get(text) ?? new OwnWriteWindow();
    if (!this.#removed) this.#windows.set(text, window);
    const write = window.begin();
    const before = this.#host.header(text);
    let ended = false;
    const once = (end: () => Release<ObjectHeader>) => {
      if (ended) return;
      ended = true;
      const release = end();
      this.#release(text, window, release);
    };
    return {
      succeed: (object, result = {}) =>
        once(() =>
          this.#end(window, { key: text, write, object, result, before })
        ),
      fail: () => once(() => window.fail(write)),
    };
  }

  /** An own write was stored. */
  #end(
    window: OwnWriteWindow<ObjectHeader>,
    ended: EndedWrite<T>,
  ): Release<ObjectHeader> {
    let answer: ObjectHeader;
    try {
      answer = this.#host.scan(ended.object);
    } catch (error) {
      // An answer that is no object must not leave the window open: everything
      // that happens to the object would be held back, for ever.
      this.#release(ended.key, window, window.fail(ended.write));
      throw error;
    }
    const { resourceVersion } = answer;
    const isOurs = this.#isOurs(answer, ended);
    // A state that is not ours alone is news to this handler, too. It is held,
    // as this write is still under way, and decided when it fails.
    const outcome = this.#host.store(answer, isOurs ? this : undefined);
    return outcome !== undefined && isOurs
      ? window.succeed(ended.write, { resourceVersion, ...outcome })
      : window.fail(ended.write);
  }

  /** Whether a write made the state that it was answered with. */
  #isOurs(answer: ObjectHeader, ended: EndedWrite<T>): boolean {
    const { before, result } = ended;
    const { base, sent, subresource } = result;
    const { resourceVersion } = answer;
    if (resourceVersion === "") return false;
    if (base !== undefined) return resourceVersion !== base;
    if (before === undefined) return true;
    if (resourceVersion === before.resourceVersion) return false;
    if (subresource === true && answer.generation !== before.generation) {
      return false;
    }
    const { decode } = this.#host;
    return sent === undefined ||
      // Where the state before is not known, the change may be anybody's.
      (!before.isPartial &&
        isExplainedBy(sent, decode(before), decode(answer)));
  }

  /** What a live change means for a handler that has not seen the object yet. */
  #firstSight(event: CurrentEvent<T>): CurrentEvent<T> | undefined {
    const { key, type, header } = event;
    if (this.#told.has(key)) {
      if (type === "deleted") this.#told.delete(key);
      return event;
    }
    if (type === "deleted") return undefined;
    this.#told.add(key);
    return type === "added"
      ? event
      : this.#host.event({ type: "added", header, initial: true });
  }

  #release(
    key: string,
    window: OwnWriteWindow<ObjectHeader>,
    release: Release<ObjectHeader>,
  ): void {
    this.#closeIfDone(key, window);
    if (release === undefined || this.#removed) return;
    const header = this.#host.header(key);
    if (header === undefined) return;
    this.#call(this.#host.event({ ...release, header }));
  }

  #closeIfDone(key: string, window: OwnWriteWindow<ObjectHeader>): void {
    if (!window.isOpen) this.#windows.delete(key);
  }

  #await(result: Promise<unknown>): void {
    result.catch((error) => this.#host.onError(this, error));
  }

  #call(event: CurrentEvent<T>): void {
    try {
      const result: unknown = this.#handler(event);
      if (result instanceof Promise) this.#await(result);
    } catch (error) {
      this.#host.onError(this, error);
    }
  }
}
