import type { KubernetesObject } from "../../api/object.ts";
import { keyText, type ObjectKey, parseKey } from "../../api/object_key.ts";
import type { Clock } from "../../clock.ts";
import type { ObjectHeader } from "../../json/object_header.ts";
import { SlotMap } from "../../slot_map.ts";
import type { ObjectStore } from "../store/object_store.ts";
import type { WatchSnapshot } from "../snapshot/watch_snapshot.ts";
import { TimeSlice } from "../watch/receive.ts";
import { CurrentEvent, type EventFacts } from "./cache_event.ts";
import { isExplainedBy, statusExplainedBy } from "./explained_change.ts";
import {
  type HeldEvent,
  OwnWriteWindow,
  type Release,
} from "./own_write_window.ts";
import type {
  HandlerRegistration,
  OwnWrite,
  OwnWriteResult,
} from "./shared_informer.ts";

/** Maximum number of closed windows that are kept, and of the bytes of each. */
const MAX_KEPT = { windows: 16, bytes: 16 * 1024 };

/** Handler of a subscription; every `InformerHandler` is one. */
export type EventHandler<T extends KubernetesObject> = (
  event: CurrentEvent<T>,
) => unknown;

/** Event that did not change the cache. */
export interface KnownEvent {
  readonly key: string;
  readonly type: "added" | "updated";
  readonly resourceVersion: string;
  /**
   * Whether the event is from a list, so that changes before it may be missing.
   */
  readonly listed: boolean;
  /** Whether the cache has a later state than the event. */
  readonly stale: boolean;
}

/** Effect of an own write on the cache. */
export interface OwnWriteOutcome {
  /** Version that the stream has reached: echoes up to it have arrived. */
  readonly seen: string;
  /** State that the write replaced, if there was one. */
  readonly before: ObjectHeader | undefined;
}

export interface SubscriptionDeps<T extends KubernetesObject> {
  /** Name of the handler, for logs and metrics. */
  readonly name: string;
  readonly store: ObjectStore<T>;
  /** Snapshot of the store; undefined if it has none. */
  readonly snapshot?: WatchSnapshot | undefined;
  /** Writer that stores the responses to own writes. */
  readonly writer: {
    /** Header of the response to a write, in the form that the cache keeps. */
    scan(response: T | Uint8Array): ObjectHeader;
    /**
     * Writes a response into the cache and delivers the change to all
     * subscriptions except its author.
     *
     * @param author Subscription that gets no event.
     * @param ended Key of the write, and the cached state when it began.
     * @returns Undefined if the object does not belong in the cache.
     */
    ownWrite(
      response: ObjectHeader,
      author: Subscription<T> | undefined,
      ended: Pick<EndedWrite<T>, "before" | "key">,
    ): OwnWriteOutcome | undefined;
  };
  /** Callback for the removal of the subscription. */
  readonly onRemove: (subscription: Subscription<T>) => void;
  /** Callback for the exceptions of the handler. */
  readonly onError: (handler: string, error: unknown) => void;
  /** Slices of the work that calls the handler. */
  readonly slice: TimeSlice;
  readonly clock: Clock;
  /**
   * Callback for a handler whose calls take long: their number, and their time in
   * milliseconds.
   */
  readonly onSlow: (handler: string, calls: number, time: number) => void;
}

/** Time of the calls of a handler at which it is first called slow. */
const SLOW_HANDLER_MS = 1_000;
/** Time of a call, in the mean, below which a handler is not called slow. */
const QUICK_CALL_MS = 0.5;

/** Own write that was stored. */
export interface EndedWrite<T extends KubernetesObject> {
  readonly key: string;
  /** Number of the write in its own-write window. */
  readonly write: number;
  /** Response of the server, or its JSON. */
  readonly object: T | Uint8Array;
  readonly result: OwnWriteResult;
  /** Cached state when the write began. */
  readonly before: ObjectHeader | undefined;
}

/**
 * Subscription of one handler to a namespace informer (client-go's
 * `processorListener`), with the own-write windows of its owner.
 *
 * The objects that existed before are replayed slot by slot. During the replay,
 * events of replayed objects are delivered unchanged; changes of other objects are
 * delivered as `added`, and their deletions are dropped.
 */
export class Subscription<T extends KubernetesObject>
  implements HandlerRegistration<T> {
  readonly #handler: EventHandler<T>;
  readonly #deps: SubscriptionDeps<T>;
  /** Own-write windows by object key, until the echo has arrived. */
  readonly #windows: SlotMap<string, OwnWriteWindow<ObjectHeader>> =
    new SlotMap();
  /** Closed windows to use again. */
  readonly #closed: OwnWriteWindow<ObjectHeader>[] = [];
  /** First slot that is not replayed so far; infinite after the replay. */
  #nextSlot: number;
  /** Keys of objects that an event has delivered before their replay. */
  readonly #delivered: Set<string> = new Set();
  #removed = false;
  #hasSynced = false;
  readonly #sync: PromiseWithResolvers<void> = Promise.withResolvers();
  /** Calls that were measured, once the work around them was slow. */
  #measured: { calls: number; time: number; reportAt: number } | undefined;
  /** Whether the store had no change since a restore when this was added. */
  readonly #isEarly: boolean;

  constructor(handler: EventHandler<T>, deps: SubscriptionDeps<T>) {
    this.#handler = handler;
    this.#deps = deps;
    this.#isEarly = !deps.snapshot?.isRestored || deps.snapshot.news === 0;
    this.#nextSlot = deps.store.size === 0 ? Infinity : 0;
    this.#sync.promise.catch(() => {}); // it may not be awaited
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  get synced(): Promise<void> {
    return this.#sync.promise;
  }

  /** Whether every change since a snapshot was delivered; false without one. */
  get isResumed(): boolean {
    return this.#isEarly && this.#deps.snapshot?.isRestored === true;
  }

  /**
   * Whether the objects that existed before the handler was added are replayed.
   */
  get isReplayed(): boolean {
    return this.#nextSlot === Infinity;
  }

  remove(): void {
    if (this.#removed) return;
    this.#removed = true;
    this.#endReplay();
    this.#sync.reject(new Error("Cannot sync: the handler was removed"));
    this.#deps.onRemove(this);
  }

  /** Fulfills `synced`, as the cache is complete and every object was replayed. */
  settle(): void {
    if (this.#removed) return;
    this.#hasSynced = true;
    this.#sync.resolve();
  }

  /** Oldest event of an object that is held back because of an own write. */
  held(key: string): HeldEvent<ObjectHeader> | undefined {
    return this.#windows.get(key)?.oldest;
  }

  /** Handles a change of the cache. */
  changed(event: CurrentEvent<T>): void {
    if (this.#removed) return;
    const due = event.slot < this.#nextSlot ? event : this.#firstEvent(event);
    if (due === undefined) return;
    const window = this.#windows.size === 0
      ? undefined
      : this.#windows.get(event.key);
    if (window === undefined) return this.#call(due);
    if (due.type === "deleted") {
      window.deleted(due.header.resourceVersion);
      this.#closeIfDone(event.key, window);
      return this.#call(due);
    }
    const release = window.event({
      type: due.type,
      resourceVersion: due.header.resourceVersion,
      // A list may hide changes, the first one like any later one.
      relist: due.relist || due.initial,
      previous: due.keepPrevious(window.before),
    });
    this.#release(event.key, window, release);
  }

  /** Handles an event that did not change the cache. */
  known(event: KnownEvent): void {
    const window = this.#windows.get(event.key);
    if (window === undefined) return;
    const release = event.stale || event.listed
      ? window.stale({ ...event, relist: event.listed })
      : (window.progress(event.resourceVersion), undefined);
    this.#release(event.key, window, release);
  }

  /** Notes that the stream has delivered everything up to a version. */
  progressed(resourceVersion: string): void {
    for (const [key, window] of this.#windows) {
      window.progress(resourceVersion);
      this.#closeIfDone(key, window);
    }
  }

  /** Handles a restart of the server's history, which invalidates versions. */
  restarted(): void {
    for (const [key, window] of this.#windows) {
      window.restart();
      this.#closeIfDone(key, window);
    }
  }

  /**
   * Replays the next object that existed when the handler was added.
   *
   * @returns Whether there may be more.
   */
  replayNext(): boolean {
    if (this.isReplayed) return false;
    const { store } = this.#deps;
    const slot = store.nextSlot(this.#nextSlot);
    if (slot < 0) {
      this.#endReplay();
      return false;
    }
    this.#nextSlot = slot + 1;
    const header = store.headerAt(slot).copy();
    if (
      this.#delivered.size === 0 || !this.#delivered.has(header.keyText)
    ) {
      const snapshot = this.#deps.snapshot?.ofRestored(slot);
      const facts = { type: "added", header, initial: true, slot } as const;
      this.#call(this.#event({ ...facts, snapshot }));
    }
    return true;
  }

  #endReplay(): void {
    this.#nextSlot = Infinity;
    this.#delivered.clear();
  }

  beginWrite(key: ObjectKey | string): OwnWrite<T> {
    const text = typeof key === "string" ? key : keyText(key);
    const window = this.#windows.get(text) ?? this.#closed.pop() ??
      new OwnWriteWindow();
    if (!this.#removed) this.#windows.set(text, window);
    const found = typeof key === "string" ? parseKey(key) : key;
    const cached = this.#deps.store.header(found);
    const isFirst = !window.isOpen;
    const before = cached?.copy(isFirst ? window.before : undefined);
    if (isFirst && before !== undefined) window.before = before;
    const write = window.begin();
    let ended = false;
    const end = (object?: T | Uint8Array, result: OwnWriteResult = {}) => {
      if (ended) return;
      ended = true;
      const release = object === undefined
        ? window.fail(write)
        : this.#succeed(window, { key: text, write, object, result, before });
      this.#release(text, window, release);
    };
    return { succeed: end, fail: () => end() };
  }

  #succeed(
    window: OwnWriteWindow<ObjectHeader>,
    ended: EndedWrite<T>,
  ): Release<ObjectHeader> {
    const { writer } = this.#deps;
    try {
      const response = writer.scan(ended.object);
      const { resourceVersion } = response;
      const isOurs = this.#isOurs(response, ended);
      // A state with changes by others is delivered to this handler, too. It is
      // held, as this write is still under way, and decided when it fails.
      const author = isOurs ? this : undefined;
      const outcome = writer.ownWrite(response, author, ended);
      return outcome !== undefined && isOurs
        ? window.succeed(ended.write, { resourceVersion, ...outcome })
        : window.fail(ended.write);
    } catch (error) {
      // A malformed response must not leave the window open: all events of the
      // object would be held back indefinitely.
      this.#release(ended.key, window, window.fail(ended.write));
      throw error;
    }
  }

  /** Whether the write alone led to the state in its response. */
  #isOurs(response: ObjectHeader, ended: EndedWrite<T>): boolean {
    const { before, result } = ended;
    const { base, sent, subresource, delivered } = result;
    const { resourceVersion } = response;
    if (resourceVersion === "" || delivered) return false;
    if (base !== undefined) return resourceVersion !== base;
    if (before === undefined) return true;
    if (resourceVersion === before.resourceVersion) return false;
    if (subresource === true && response.generation !== before.generation) {
      return false;
    }
    const { store } = this.#deps;
    return sent === undefined ||
      // If the state before is not known, others may have made the change.
      (!before.isPartial &&
        (statusExplainedBy(sent, before, response) ??
          isExplainedBy(sent, store.parse(before), store.parse(response))));
  }

  /** Event to deliver for a live change of an object that was not replayed. */
  #firstEvent(event: CurrentEvent<T>): CurrentEvent<T> | undefined {
    const { key, type, header, slot } = event;
    if (this.#delivered.has(key)) {
      if (type === "deleted") this.#delivered.delete(key);
      return event;
    }
    if (type === "deleted") return undefined;
    this.#delivered.add(key);
    return type === "added"
      ? event
      : this.#event({ type: "added", header, initial: true, slot });
  }

  #release(
    key: string,
    window: OwnWriteWindow<ObjectHeader>,
    release: Release<ObjectHeader>,
  ): void {
    this.#closeIfDone(key, window);
    if (release !== undefined && !this.#removed) {
      const header = this.#deps.store.header(parseKey(key))?.copy();
      if (header !== undefined) this.#call(this.#event({ ...release, header }));
    }
    // After the call, as the released event may contain its memory.
    if (window.isOpen || this.#closed.length >= MAX_KEPT.windows) return;
    const { length } = window.before?.bytes ?? [];
    if (length <= MAX_KEPT.bytes) this.#closed.push(window);
  }

  #closeIfDone(key: string, window: OwnWriteWindow<ObjectHeader>): void {
    if (!window.isOpen) this.#windows.delete(key);
  }

  /** Creates an event that the next change does not overwrite. */
  #event(facts: EventFacts): CurrentEvent<T> {
    return new CurrentEvent(this.#deps.store, facts);
  }

  /** Begins to measure the calls of the handler. */
  measure(): void {
    this.#measured ??= { calls: 0, time: 0, reportAt: SLOW_HANDLER_MS };
  }

  #call(event: CurrentEvent<T>): void {
    if (this.#deps.slice.isSlow) this.measure();
    const measured = this.#measured;
    if (measured === undefined) return this.#deliver(event);
    const { clock, name, onSlow } = this.#deps;
    const began = clock.now();
    this.#deliver(event);
    measured.calls++;
    measured.time += clock.now() - began;
    const { calls, time, reportAt } = measured;
    if (time < reportAt || time / calls < QUICK_CALL_MS) return;
    // The next report is at ten times as much.
    measured.reportAt = time * 10;
    onSlow(name, calls, time);
  }

  #deliver(event: CurrentEvent<T>): void {
    const { name, onError } = this.#deps;
    try {
      const result = this.#handler(event);
      if (result instanceof Promise) {
        result.catch((error) => onError(name, error));
      }
    } catch (error) {
      onError(name, error);
    }
  }
}

/**
 * Subscriptions of a namespace informer (client-go's `sharedProcessor`), in the
 * order in which they were added.
 */
export class Subscriptions<T extends KubernetesObject> {
  readonly #clock: Clock;
  /** All subscriptions, copied on each change: a handler may add or remove one. */
  all: readonly Subscription<T>[] = [];
  #synced = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Adds a subscription and begins to replay the cached objects to it. */
  add(subscription: Subscription<T>): void {
    this.all = [...this.all, subscription];
    void this.#replay(subscription);
  }

  delete(subscription: Subscription<T>): void {
    this.all = this.all.filter((other) => other !== subscription);
  }

  /** Removes all subscriptions; none is called again. */
  clear(): void {
    for (const subscription of this.all) subscription.remove();
  }

  /** Delivers a change to all subscriptions except that of its author. */
  changed(event: CurrentEvent<T>, author?: Subscription<T>): void {
    for (const subscription of this.all) {
      if (subscription !== author) subscription.changed(event);
    }
  }

  /** Notes that the cache is complete. */
  settle(): void {
    this.#synced = true;
    for (const subscription of this.all) {
      if (subscription.isReplayed) subscription.settle();
    }
  }

  async #replay(subscription: Subscription<T>): Promise<void> {
    const slice = new TimeSlice(this.#clock);
    // Not within the call that adds it: the caller is not ready so far.
    await slice.pause();
    while (subscription.replayNext()) {
      if (!slice.step(0)) continue;
      if (slice.isSlow) subscription.measure();
      await slice.pause();
    }
    if (this.#synced) subscription.settle();
  }
}
