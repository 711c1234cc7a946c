import { type Kind, kindText } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import {
  keyOf,
  keyText,
  type ObjectKey,
  parseKey,
} from "../../api/object_key.ts";
import type { ByteRange } from "../../json/byte_range.ts";
import { checkOptions } from "../../api/options.ts";
import { compareResourceVersions } from "../../api/resource_version.ts";
import { checkIndex, type IndexDefinition } from "../store/object_indexes.ts";
import type { ObjectStore } from "../store/object_store.ts";
import { type StoreUsage, sumOfUsages } from "../store/store_usage.ts";
import {
  type CacheEvent,
  type InformerHandler,
  missingEvent,
  placeIn,
  storeAndSlot,
} from "./cache_event.ts";
import { EventBuffer } from "./event_buffer.ts";
import type { NamespaceInformer } from "./namespace_informer.ts";
import { MultiNamespaceRegistration } from "./multi_namespace_registration.ts";
import type {
  AddHandlerOptions,
  HandlerRegistration,
  InformerHealth,
  SharedInformer,
} from "./shared_informer.ts";
import type { EventHandler } from "./subscriptions.ts";

/** Name of the member of an informer that watches all namespaces. */
const ALL = "";
/** Number of consecutive failures at which a watch counts as broken. */
const BROKEN_AFTER_FAILURES = 3;

/** Lease of the informer of a namespace, which may be shared. */
export interface NamespaceLease<T extends KubernetesObject> {
  readonly informer: NamespaceInformer<T>;
  /**
   * Stops the watch of the namespace; the last state stays readable until `close`
   * is called.
   */
  stop(): Promise<void>;
  /** Ends the lease; the end of the last lease frees the memory. */
  close(): Promise<void>;
}

export interface MultiNamespaceInformerDeps<T extends KubernetesObject> {
  readonly kind: Kind<T>;
  /** Function that leases the informer of a namespace, or of all if undefined. */
  readonly open: (namespace: string | undefined) => NamespaceLease<T>;
  /** Prefix of the index names, which separates users of a shared informer. */
  readonly indexPrefix: string;
}

/** Callbacks for the objects of namespaces that are no longer watched. */
export interface KeepCallbacks {
  /** Called for each object that is no longer covered. */
  readonly onLeft?: (key: string, place: number) => void;
  /** Called for each object that another watch covers, with its new place. */
  readonly onMoved?: (from: number, to: number) => void;
}

/** Member of a multi-namespace informer: one namespace, or all. */
interface Member<T extends KubernetesObject> extends NamespaceLease<T> {
  readonly name: string;
  /** Whether events are delivered and reads see the objects. */
  isAttached: boolean;
  readonly synced: PromiseWithResolvers<void>;
}

/**
 * Informer of several namespaces, or of all: a decorator that reads the informers
 * of single namespaces as one cache and delivers their events to one handler
 * (controller-runtime's `multiNamespaceCache`).
 *
 * Namespaces are changed immediately by {@linkcode changeNamespaces}, or handed
 * over in three steps, so that reads and events have no gap: {@linkcode open}
 * fills the new caches, {@linkcode attach} delivers their events except those that
 * an attached watch has delivered, and {@linkcode keep} closes the others.
 *
 * @typeParam T The type of the objects.
 */
export class MultiNamespaceInformer<T extends KubernetesObject>
  implements SharedInformer<T> {
  /** Kind of the objects. */
  readonly kind: Kind<T>;
  readonly #deps: MultiNamespaceInformerDeps<T>;
  readonly #members: Map<string, Member<T>> = new Map();
  /** Stores of the members by their numbers. */
  readonly #stores: Map<number, ObjectStore<T>> = new Map();
  readonly #indexes: Map<string, IndexDefinition<T>> = new Map();
  readonly #registrations: Set<MultiNamespaceRegistration<T>> = new Set();
  readonly #loops: Set<EventBuffer<T>> = new Set();
  /** Keys of objects that wait for a run, by controller. */
  readonly #pending: Map<string, () => Iterable<string>> = new Map();
  #state: "new" | "started" | "stopped" = "new";
  #sync: PromiseWithResolvers<void> = pendingSync();
  #isSyncSettled = false;
  #stopping: Promise<void> | undefined;

  /**
   * Creates an informer.
   *
   * @param deps Kind of the objects, and access to their informers.
   * @param namespaces Initial namespaces, possibly an empty list; undefined for
   * all.
   * @internal
   */
  constructor(
    deps: MultiNamespaceInformerDeps<T>,
    namespaces: readonly string[] | undefined,
  ) {
    this.#deps = deps;
    this.kind = deps.kind;
    this.#watch(namespaces);
  }

  /** Number of cached objects. */
  get size(): number {
    if (this.#overlaps) return [...this.keys()].length;
    let size = 0;
    for (const { informer } of this.#inNamespace()) size += informer.store.size;
    return size;
  }

  /** Whether the cache is complete. */
  get hasSynced(): boolean {
    const attached = this.#attached;
    return attached.length > 0 &&
      attached.every(({ informer }) => informer.hasSynced);
  }

  /** Promise that is fulfilled when the cache is complete. */
  get synced(): Promise<void> {
    return this.#sync.promise;
  }

  /**
   * Promise that is fulfilled when each watch has read its first state, or has failed
   * to.
   *
   * @internal
   */
  get attempted(): Promise<unknown> {
    const members = [...this.#members.values()];
    return Promise.all(members.map(({ informer }) => informer.attempted));
  }

  /** Namespaces whose events are delivered; undefined for all namespaces. */
  get namespaces(): readonly string[] | undefined {
    const names = this.#attached.map(({ name }) => name);
    return names.includes(ALL) ? undefined : names;
  }

  /**
   * Starts to list and watch; await `synced` for the cache. Safe to repeat.
   *
   * @throws {Error} If the informer was stopped.
   */
  start(): this {
    this.#checkNotStopped("start");
    this.#state = "started";
    for (const { informer } of this.#members.values()) informer.start();
    this.#settle();
    return this;
  }

  /**
   * Stops the informer: no event is delivered after the call, and no request,
   * timer or socket is left when the promise resolves. Reads still give the last
   * state. Safe to repeat, in any state.
   */
  stop(): Promise<void> {
    return this.#stopping ??= this.#stop();
  }

  async #stop(): Promise<void> {
    this.#state = "stopped";
    for (const registration of this.#registrations) registration.remove();
    for (const loop of this.#loops) void loop.return();
    const reason = new Error(
      `Cannot sync ${kindText(this.kind)}: the informer was stopped`,
    );
    this.#sync.reject(reason);
    await Promise.all(
      [...this.#members.values()].map((member) => {
        member.synced.reject(reason);
        return member.stop();
      }),
    );
  }

  /** Stops the informer and frees its memory; the cache is empty afterwards. */
  async close(): Promise<void> {
    const stopped = this.stop();
    await this.keep([]);
    this.#indexes.clear();
    await stopped;
  }

  /**
   * Changes the watched namespaces. Objects of removed namespaces leave the cache
   * without events; those of new ones are delivered as `initial`.
   *
   * @param namespaces New namespaces; undefined for all.
   * @returns A promise that resolves when the new namespaces have synced.
   * @throws {RangeError} If the list is empty or contains an empty name.
   */
  async changeNamespaces(
    namespaces: readonly string[] | undefined,
  ): Promise<void> {
    checkNamespaces(this.kind, namespaces);
    const closed = this.keep(namespaces);
    this.#watch(namespaces);
    this.#settle();
    await closed;
    if (this.#state === "started") await this.synced;
  }

  /**
   * Starts to watch namespaces without delivering events. Reads see their objects
   * when the caches are complete, unless an attached watch covers the objects.
   *
   * @param namespaces Namespaces; undefined for all.
   * @returns A promise that is fulfilled when their caches are complete, and
   * rejected if one is closed before.
   * @throws {Error} If the informer was stopped.
   */
  async open(namespaces: readonly string[] | undefined): Promise<void> {
    this.#checkNotStopped("open a namespace of");
    const opened = toNames(namespaces).map((name) => {
      const member = this.#members.get(name) ?? this.#add(name);
      return member.synced.promise;
    });
    await Promise.all(opened);
  }

  /**
   * Delivers the events of open namespaces: first the objects whose state no
   * attached watch has delivered, then every change.
   *
   * @param namespaces Namespaces; undefined for all.
   * @returns A promise that resolves when the cached objects were delivered.
   */
  async attach(namespaces: readonly string[] | undefined): Promise<void> {
    const replays: Promise<void>[] = [];
    for (const name of toNames(namespaces)) {
      const member = this.#members.get(name);
      if (member === undefined || member.isAttached) continue;
      const former = this.#attached.filter((other) =>
        other.name === ALL || name === ALL
      ).map(({ informer }) => informer);
      member.isAttached = true;
      for (const registration of this.#registrations) {
        replays.push(registration.attach(member.informer, former));
      }
    }
    await Promise.all(replays);
  }

  /**
   * Closes all watches except those of the given namespaces. Objects that an
   * attached watch still covers, but does not have, are delivered as deleted.
   *
   * @param namespaces Namespaces; undefined for all.
   */
  async keep(
    namespaces: readonly string[] | undefined,
    { onLeft, onMoved }: KeepCallbacks = {},
  ): Promise<void> {
    const names = toNames(namespaces);
    const left = [...this.#members.values()].filter(({ name }) =>
      !names.includes(name)
    );
    for (const member of left) {
      this.#members.delete(member.name);
      this.#stores.delete(member.informer.store.number);
      for (const registration of this.#registrations) {
        registration.detach(member.informer);
      }
      member.synced.reject(
        new Error(
          `Cannot sync ${kindText(this.kind)}: the namespace was removed`,
        ),
      );
    }
    for (const { informer: { store }, isAttached } of left) {
      if (!isAttached) continue;
      for (
        let slot = store.nextSlot(0);
        slot >= 0;
        slot = store.nextSlot(slot + 1)
      ) {
        const key = store.keyAt(slot) as ObjectKey;
        const member = this.#memberOf(key);
        if (member === undefined) onLeft?.(keyText(key), placeIn(store, slot));
        else {
          this.#handOver(key, slot, store, member.informer);
          onMoved?.(placeIn(store, slot), this.placeOf(key));
        }
      }
    }
    this.#settle();
    const indexes = [...this.#indexes.keys()];
    await Promise.all(left.map(async ({ informer: { store }, close }) => {
      // A snapshot has the values of the indexes, too.
      await close();
      for (const name of indexes) {
        store.removeIndex(this.#deps.indexPrefix + name);
      }
    }));
  }

  /**
   * Delivers each object as deleted, since its kind is no longer served or wanted.
   *
   * @internal
   */
  deliverAllDeleted(): void {
    for (const { informer } of this.#attached) {
      const { store } = informer;
      for (
        let slot = store.nextSlot(0);
        slot >= 0;
        slot = store.nextSlot(slot + 1)
      ) {
        const last = store.headerAt(slot).copy();
        const event = missingEvent(store, last, { slot });
        for (const registration of this.#registrations) {
          registration.deliver(event, informer);
        }
      }
    }
  }

  /**
   * Cached object, frozen; undefined if absent.
   *
   * @throws {Error} If a bounded cache keeps only its key: `read` fetches it.
   */
  get(key: ObjectKey | string): T | undefined {
    const found = toKey(key);
    return this.#memberOf(found)?.informer.store.get(found);
  }

  /** Whether an object with this key is cached. */
  has(key: ObjectKey | string): boolean {
    const found = toKey(key);
    return this.#memberOf(found)?.informer.store.has(found) ?? false;
  }

  /** ResourceVersion of an object, without decoding; undefined if absent. */
  resourceVersion(key: ObjectKey | string): string | undefined {
    const found = toKey(key);
    return this.#memberOf(found)?.informer.store.resourceVersion(found);
  }

  /**
   * Bytes of a cached object, borrowed; undefined if it is absent, has another
   * version, or only its key is kept.
   *
   * @internal
   */
  bodyOf(key: ObjectKey | string, version?: string): ByteRange | undefined {
    const found = toKey(key);
    const store = this.#memberOf(found)?.informer.store;
    const slot = store?.slotOf(found) ?? -1;
    return slot < 0 || store?.resourceVersion(found) !== version
      ? undefined
      : store?.bodyAt(slot);
  }

  /**
   * Place of an object: a number that no other object has, and that is its own
   * until it is deleted or another watch covers it; -1 if it is not cached.
   */
  placeOf(key: ObjectKey | string): number {
    const found = toKey(key);
    const store = this.#memberOf(found)?.informer.store;
    const slot = store?.slotOf(found) ?? -1;
    return store === undefined || slot < 0 ? -1 : placeIn(store, slot);
  }

  /**
   * Object at a place, as {@linkcode get} returns it.
   *
   * @param by `read` by who neither changes the object nor hands it out: it is not
   * kept decoded, and perhaps not frozen.
   */
  getAt(place: number, by?: "get" | "read"): T | undefined {
    const [number, slot] = storeAndSlot(place);
    return this.#stores.get(number)?.getAt(slot, by);
  }

  /** Key of the object at a place; undefined if none exists. */
  keyAt(place: number): string | undefined {
    const [number, slot] = storeAndSlot(place);
    const key = this.#stores.get(number)?.keyAt(slot);
    return key && keyText(key);
  }

  /** Keys of all objects, as `namespace/name` or `name`. */
  *keys(): Generator<string, void, undefined> {
    for (const member of this.#inNamespace()) {
      for (const key of member.informer.store.keys()) {
        if (!this.#overlaps || this.#memberOf(key) === member) {
          yield keyText(key);
        }
      }
    }
  }

  /** All objects, or those of one namespace, frozen. */
  list(namespace?: string): readonly T[] {
    const members = this.#inNamespace(namespace);
    const lists = members.map(({ informer }) => informer.store.list(namespace));
    return this.#joined(members, lists);
  }

  /** Objects for which an index has this value, frozen. */
  byIndex(index: string, value: string): readonly T[] {
    const name = this.#indexName(index);
    const members = this.#inNamespace();
    const lists = members.map(({ informer }) =>
      informer.store.byIndex(name, value)
    );
    return this.#joined(members, lists);
  }

  /**
   * Cached object, frozen; fetched if a bounded cache keeps only its key.
   *
   * @throws {Error} If it cannot be fetched.
   */
  read(key: ObjectKey | string): Promise<T | undefined> {
    const found = toKey(key);
    return this.#memberOf(found)?.informer.store.read(found) ??
      Promise.resolve(undefined);
  }

  /** All objects, or those of one namespace; fetched if only keys are kept. */
  async readList(namespace?: string): Promise<readonly T[]> {
    const members = this.#inNamespace(namespace);
    const lists = await Promise.all(
      members.map(({ informer }) => informer.store.readList(namespace)),
    );
    return this.#joined(members, lists);
  }

  /** Objects for which an index has this value; fetched if only keys are kept. */
  async readByIndex(index: string, value: string): Promise<readonly T[]> {
    const name = this.#indexName(index);
    const members = this.#inNamespace();
    const lists = await Promise.all(
      members.map(({ informer }) => informer.store.readByIndex(name, value)),
    );
    return this.#joined(members, lists);
  }

  /**
   * Adds an index over all objects, present and future.
   *
   * @throws {RangeError} If there is an index of this name.
   * @throws {TypeError} If the definition is invalid.
   */
  addIndex(name: string, definition: IndexDefinition<T>): void {
    this.#checkNotStopped("add an index to");
    checkIndex(name, definition);
    if (this.#indexes.has(name)) {
      throw new RangeError(
        `Cannot add an index: its name must be new: received "${name}"`,
      );
    }
    for (const { informer } of this.#members.values()) {
      informer.store.addIndex(this.#deps.indexPrefix + name, definition);
    }
    this.#indexes.set(name, definition);
  }

  /**
   * Whether a handler has heard of every change since the snapshot with which the
   * cache began; false if it began with a list.
   *
   * @internal
   */
  isResumed(registration: HandlerRegistration<T>): boolean {
    return registration instanceof MultiNamespaceRegistration &&
      registration.isResumed;
  }

  /**
   * Whether a controller had nothing to do for an object when each snapshot was
   * written with which the cache began.
   *
   * @param key Key of the object, which may be of another kind.
   * @internal
   */
  wasIdle(controller: string, key: string): boolean {
    for (const { informer: { snapshot } } of this.#members.values()) {
      if (!snapshot?.wasIdle(controller, key)) return false;
    }
    return true;
  }

  /**
   * Notes in the snapshots of the cache which objects of a controller wait for a
   * run, so that they run after a restart.
   *
   * @internal
   */
  notePending(controller: string, keys: () => Iterable<string>): void {
    this.#pending.set(controller, keys);
    for (const { informer } of this.#members.values()) {
      informer.snapshot?.addPending(controller, keys);
    }
  }

  /** Removes an index if it exists. */
  removeIndex(name: string): void {
    if (!this.#indexes.delete(name)) return;
    for (const { informer } of this.#members.values()) {
      informer.store.removeIndex(this.#deps.indexPrefix + name);
    }
  }

  /**
   * Adds a handler.
   *
   * @throws {Error} If the informer was stopped.
   */
  addHandler(
    handler: InformerHandler<T>,
    options: AddHandlerOptions = {},
  ): HandlerRegistration<T> {
    checkOptions(options, { name: "string?" }, "addHandler()");
    return this.#subscribe(handler, options.name ?? "handler");
  }

  /** Events for a `for await` loop; waiting events of an object are merged. */
  events(
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): AsyncIterableIterator<CacheEvent<T>> {
    checkOptions(options, { signal: "signal?" }, "events()");
    const { signal } = options;
    const loop = new EventBuffer<T>();
    const end = () => void loop.return();
    if (signal?.aborted || this.#state === "stopped") {
      end();
      return loop;
    }
    const registration = this.#subscribe((event) => loop.push(event), "events");
    this.#loops.add(loop);
    signal?.addEventListener("abort", end, { once: true });
    loop.onEnd = () => {
      signal?.removeEventListener("abort", end);
      registration.remove();
      this.#loops.delete(loop);
    };
    return loop;
  }

  /** Iterates over all events, as {@linkcode events} does. */
  [Symbol.asyncIterator](): AsyncIterableIterator<CacheEvent<T>> {
    return this.events();
  }

  /** Health of the informer, with one entry for each watch. */
  health(): InformerHealth {
    const watches = Array.from(
      this.#members.values(),
      ({ informer }) => informer.health(),
    );
    return {
      kind: kindText(this.kind),
      healthy: this.#state === "started" &&
        watches.every(({ state, consecutiveFailures }) =>
          state === "watching" || consecutiveFailures < BROKEN_AFTER_FAILURES
        ),
      synced: this.hasSynced,
      watches,
    };
  }

  /** Memory that the cache uses, by tier. */
  usage(): StoreUsage {
    return sumOfUsages(
      Array.from(
        this.#members.values(),
        ({ informer }) => informer.store.usage(),
      ),
    );
  }

  /**
   * Hands over the last state of an object from a closed watch to another one,
   * which may not have reached that state: reads must not return an older one.
   */
  #handOver(
    key: ObjectKey,
    slot: number,
    former: ObjectStore<T>,
    informer: NamespaceInformer<T>,
  ): void {
    const version = former.resourceVersion(key) ?? "";
    const known = informer.store.resourceVersion(key);
    if (
      known !== undefined && compareResourceVersions(version, known) <= 0
    ) return;
    const last = former.header(key)?.copy();
    if (last === undefined || informer.takeOver(last)) return;
    if (informer.store.has(key)) return;
    const event = missingEvent(former, last, { slot });
    for (const registration of this.#registrations) {
      registration.deliver(event, informer);
    }
  }

  /** Opens and attaches namespaces in one step. */
  #watch(namespaces: readonly string[] | undefined): void {
    // Either promise rejects if the namespaces are changed again before.
    this.open(namespaces).catch(() => {});
    this.attach(namespaces).catch(() => {});
  }

  #add(name: string): Member<T> {
    const lease = this.#deps.open(name === ALL ? undefined : name);
    const synced = pendingSync();
    const member: Member<T> = { ...lease, name, isAttached: false, synced };
    const { indexPrefix } = this.#deps;
    for (const [index, definition] of this.#indexes) {
      lease.informer.store.addIndex(indexPrefix + index, definition);
    }
    this.#members.set(name, member);
    for (const [controller, keys] of this.#pending) {
      lease.informer.snapshot?.addPending(controller, keys);
    }
    const { store } = lease.informer;
    this.#stores.set(store.number, store);
    if (this.#state === "started") lease.informer.start();
    lease.informer.synced.then(() => {
      synced.resolve();
      this.#settle();
    }, synced.reject);
    return member;
  }

  #settle(): void {
    if (this.#state !== "started") return;
    if (!this.hasSynced) {
      if (this.#isSyncSettled) this.#sync = pendingSync();
      this.#isSyncSettled = false;
      return;
    }
    this.#sync.resolve();
    this.#isSyncSettled = true;
    for (const registration of this.#registrations) registration.settle();
  }

  #subscribe(
    handler: EventHandler<T>,
    name: string,
  ): MultiNamespaceRegistration<T> {
    this.#checkNotStopped("add a handler to");
    const registration = new MultiNamespaceRegistration(handler, {
      name,
      informer: this,
      onRemove: (removed) => this.#registrations.delete(removed),
    });
    this.#registrations.add(registration);
    for (const { informer } of this.#attached) {
      void registration.attach(informer, []);
    }
    return registration;
  }

  /**
   * Member that an object is read from: during a hand-over, the member with the
   * newer state, so that reads see everything that was delivered.
   */
  #memberOf(key: ObjectKey): Member<T> | undefined {
    const all = this.#readable(ALL);
    const own = this.#readable(key.namespace ?? ALL);
    if (all === undefined || own === undefined) return own ?? all;
    const inAll = all.informer.store.resourceVersion(key) ?? "";
    const inOwn = own.informer.store.resourceVersion(key) ?? "";
    return compareResourceVersions(inAll, inOwn) < 0 ? own : all;
  }

  /**
   * Member of a namespace, if reads use it: it is attached, or it is complete and
   * no other watch covers its objects.
   */
  #readable(name: string): Member<T> | undefined {
    const member = this.#members.get(name);
    const isSeen = member?.isAttached || (member?.informer.hasSynced &&
      (this.#members.size === 1 || !this.#members.has(ALL)));
    return isSeen ? member : undefined;
  }

  get #attached(): Member<T>[] {
    return [...this.#members.values()].filter(({ isAttached }) => isAttached);
  }

  /** Whether reads combine a watch of all namespaces with others. */
  get #overlaps(): boolean {
    return this.#members.size > 1 && this.#readable(ALL) !== undefined;
  }

  /** Members that reads of one namespace, or of all namespaces, use. */
  #inNamespace(namespace?: string): Member<T>[] {
    return [...this.#members.keys()]
      .filter((name) => name === ALL || (namespace ?? name) === name)
      .map((name) => this.#readable(name))
      .filter((member) => member !== undefined);
  }

  /** Joins the lists of several members, with each object once. */
  #joined(
    members: readonly Member<T>[],
    lists: readonly (readonly T[])[],
  ): readonly T[] {
    if (lists.length === 1) return lists[0] as readonly T[];
    if (!this.#overlaps) return lists.flat();
    return lists.flatMap((list, i) =>
      list.filter((object) => this.#memberOf(keyOf(object)) === members[i])
    );
  }

  #indexName(index: string): string {
    if (this.#indexes.has(index)) return this.#deps.indexPrefix + index;
    throw new RangeError(
      `Cannot read by an index: it must be added first: received "${index}"`,
    );
  }

  #checkNotStopped(action: string): void {
    if (this.#state !== "stopped") return;
    throw new Error(
      `Cannot ${action} an informer of ${
        kindText(this.kind)
      }: it was stopped, create a new one`,
    );
  }
}

/**
 * Checks the namespaces of an informer.
 *
 * @throws {RangeError} If the list is empty or contains an empty name.
 */
export function checkNamespaces(
  kind: Kind,
  namespaces: readonly string[] | undefined,
): void {
  if (namespaces?.length !== 0 && !namespaces?.includes("")) return;
  throw new RangeError(
    `Cannot watch ${
      kindText(kind)
    }: "namespaces" must name at least one, or be absent for all: received ${
      JSON.stringify(namespaces)
    }`,
  );
}

function toNames(namespaces: readonly string[] | undefined): string[] {
  return [...new Set(namespaces ?? [ALL])];
}

function toKey(key: ObjectKey | string): ObjectKey {
  return typeof key === "string" ? parseKey(key) : key;
}

function pendingSync(): PromiseWithResolvers<void> {
  const sync = Promise.withResolvers<void>();
  sync.promise.catch(() => {}); // it may not be awaited
  return sync;
}
