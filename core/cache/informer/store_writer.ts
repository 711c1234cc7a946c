import type { Kind } from "../../api/kind.ts";
import {
  type LabelRequirement,
  matchesLabels,
} from "../../api/label_selector.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { keyText, type ObjectKey, parseKey } from "../../api/object_key.ts";
import { compareResourceVersions } from "../../api/resource_version.ts";
import { inShard, type ParsedShardSelector } from "../../api/shard_selector.ts";
import { headerOf } from "../../client/response.ts";
import { ObjectHeader } from "../../json/object_header.ts";
import type { ObjectStore, StoreChange } from "../store/object_store.ts";
import { MetadataReducer } from "../watch/metadata_reducer.ts";
import type { WatchSnapshot } from "../snapshot/watch_snapshot.ts";
import type { TimeSlice } from "../watch/receive.ts";
import { type ReflectorSink, VersionMark } from "../watch/reflector.ts";
import { ConnectionFault } from "../watch/watch_failure.ts";
import type { InformerMetrics } from "../watch/watch_record.ts";
import {
  type CacheEventType,
  CurrentEvent,
  type EventFacts,
  keyOfHeader,
  missingEvent,
} from "./cache_event.ts";
import type {
  EndedWrite,
  KnownEvent,
  OwnWriteOutcome,
  Subscription,
  Subscriptions,
} from "./subscriptions.ts";

/** Options of a delete that returns the deleted state. */
const KEEP_PREVIOUS = Object.freeze({ keepPrevious: true });

export interface StoreWriterDeps<T extends KubernetesObject> {
  readonly kind: Kind<T>;
  readonly store: ObjectStore<T>;
  readonly subscriptions: Subscriptions<T>;
  /** Limits of the time per event-loop turn, shared with the reflector. */
  readonly slice: TimeSlice;
  readonly metrics: InformerMetrics;
  /** Snapshot of the store; undefined if it has none. */
  readonly snapshot?: WatchSnapshot | undefined;
  /** Whether only the metadata is kept. */
  readonly metadataOnly: boolean;
  /** Label selector of the informer, applied to responses of own writes. */
  readonly labels: readonly LabelRequirement[];
  /** Whether a field selector applies; the writer cannot evaluate it. */
  readonly selectsFields: boolean;
  /** Shard selector, applied to all objects; some servers ignore it. */
  readonly shard: ParsedShardSelector | undefined;
}

/**
 * Writer of a store: stores the events of a reflector, and the responses to own
 * writes, and delivers every change once to the subscriptions (client-go's
 * `HandleDeltas`, kube-rs' `reflector::store::Writer`).
 *
 * The server sends changes in the order of their resourceVersions, so that
 * everything up to the last one is known. An own write is ahead of that order; it
 * is *pending* until the stream has passed it. Until then, older states do not
 * replace it, and an older list does not remove it.
 */
export class StoreWriter<T extends KubernetesObject> implements ReflectorSink {
  readonly #deps: StoreWriterDeps<T>;
  readonly #store: ObjectStore<T>;
  readonly #subscriptions: Subscriptions<T>;
  readonly #reducer: MetadataReducer | undefined;
  /** Event of the last change by the reflector, reused for the next one. */
  readonly #event: CurrentEvent<T>;
  readonly #facts: { -readonly [Fact in keyof EventFacts]: EventFacts[Fact] };
  /** Options of the current put, reused. */
  readonly #putOptions = {
    force: false,
    rewrite: false,
    repair: false,
    keepPrevious: false,
  };
  /** ResourceVersions of pending own writes, by key. */
  readonly #pending: Map<string, string> = new Map();
  /** Keys of pending own writes that the current list has not shown so far. */
  readonly #unlisted: Set<string> = new Set();
  /** Version that the stream has reached; empty before the first state. */
  readonly #seen: VersionMark = new VersionMark();
  /**
   * Version of the last deletion while a whole state is read; empty when that is
   * complete. In a stream, changes follow the objects, so everything up to this
   * version is known. It does not count as seen, since the state may be read
   * again, and be older then.
   */
  readonly #deleted: VersionMark = new VersionMark();
  readonly #sync: PromiseWithResolvers<void> = Promise.withResolvers();
  #listing = false;
  /**
   * Whether the server's history restarted, for instance after a backup was
   * restored: until a whole state of the new history was read, known versions may
   * mean other states.
   */
  #restarted = false;
  #complete = false;
  #stopped = false;

  constructor(deps: StoreWriterDeps<T>) {
    const { store, subscriptions, metadataOnly, kind } = deps;
    this.#deps = deps;
    this.#store = store;
    this.#subscriptions = subscriptions;
    this.#reducer = metadataOnly ? new MetadataReducer(kind) : undefined;
    this.#facts = { type: "added", header: new ObjectHeader() };
    this.#event = new CurrentEvent(store, this.#facts);
    this.#sync.promise.catch(() => {}); // it may not be awaited
  }

  /**
   * Header of the response to a write as the store keeps objects. No scanner is
   * shared, since a write may end during a call for another one.
   */
  scan(response: T | Uint8Array): ObjectHeader {
    const { kind, metadataOnly } = this.#deps;
    const header = headerOf(
      response instanceof Uint8Array ? response : JSON.stringify(response),
    );
    return metadataOnly ? new MetadataReducer(kind).reduce(header) : header;
  }

  /** Whether the store has been complete once. */
  get hasSynced(): boolean {
    return this.#complete;
  }

  get synced(): Promise<void> {
    return this.#sync.promise;
  }

  /** Ignores later own writes, and rejects `synced` if it is pending. */
  stop(reason: Error): void {
    this.#stopped = true;
    this.#sync.reject(reason);
  }

  init(): void {
    this.#listing = true;
    this.#putOptions.repair = this.#deps.snapshot?.isDamaged === true;
    this.#unlisted.clear();
    this.#store.beginRelist();
  }

  initApply(header: ObjectHeader): void {
    if (this.#selects(header)) this.#put(header);
  }

  initRestored(slot: number): void {
    // The header is read only if a handler wants it.
    this.#changed("added", undefined, { slot, previous: undefined });
  }

  apply(header: ObjectHeader): void {
    if (this.#selects(header)) this.#put(header);
    this.#seen.moveTo(header);
  }

  delete(header: ObjectHeader): void {
    if (this.#selects(header)) this.#remove(header);
    (this.#listing ? this.#deleted : this.#seen).moveTo(header);
  }

  bookmark(resourceVersion: string): void {
    this.#seen.text = resourceVersion;
    for (const [key, pending] of this.#pending) {
      if (compareResourceVersions(pending, resourceVersion) <= 0) {
        this.#pending.delete(key);
      }
    }
    for (const subscription of this.#subscriptions.all) {
      subscription.progressed(resourceVersion);
    }
  }

  /**
   * Version up to which the store has all changes; empty while a whole state is
   * read.
   */
  get wholeVersion(): string {
    return this.#listing ? "" : this.#seen.text;
  }

  restored(resourceVersion: string): void {
    this.#seen.text = resourceVersion;
    this.#listing = false;
    this.#unlisted.clear();
  }

  caughtUp(): void {
    this.#complete = true;
    this.#sync.resolve();
    this.#subscriptions.settle();
  }

  async initDone(resourceVersion: string): Promise<void> {
    const isOlder =
      compareResourceVersions(resourceVersion, this.#seen.text) < 0;
    if (isOlder && !this.#restarted) this.#forgetHistory();
    // After a restart, nothing of the old history is valid.
    const newest = isOlder ? this.#seen.text : resourceVersion;
    // From here on, an older response to an own write is ignored.
    this.#seen.text = resourceVersion;
    for (const key of this.#unlisted) {
      const pending = this.#pending.get(key) ?? "";
      if (compareResourceVersions(pending, resourceVersion) <= 0) {
        this.#removeMissing(parseKey(key));
      }
    }
    const { slice } = this.#deps;
    for (const key of this.#store.unseen(newest)) {
      this.#removeMissing(key);
      if (slice.step(0)) await slice.pause();
    }
    this.#listing = this.#restarted = false;
    if (this.#putOptions.repair) this.#deps.snapshot?.repaired();
    this.#putOptions.repair = false;
    this.#deleted.text = "";
    this.bookmark(resourceVersion);
    this.caughtUp();
  }

  flush(): void {
    this.#deps.metrics.flush();
  }

  /**
   * Writes the response to an own write into the store and delivers the change
   * to all subscriptions but that of its author.
   *
   * @param ended Key of the write, and the state that was in the cache when it
   * began.
   * @returns Undefined if the object is not selected, or nothing is watched.
   */
  ownWrite(
    header: ObjectHeader,
    author: Subscription<T> | undefined,
    ended?: Pick<EndedWrite<T>, "before" | "key">,
  ): OwnWriteOutcome | undefined {
    const { labels, selectsFields } = this.#deps;
    if (
      this.#stopped || !this.#selects(header) ||
      (labels.length > 0 && !matchesLabels(labels, header.labels))
    ) return undefined;
    const store = this.#store;
    const { resourceVersion } = header;
    const seen = this.#seen.text;
    const nothing = { seen, before: undefined };
    let slot = store.slots.find(header);
    if (
      // The stream has delivered this state or a later one: an object that is
      // not in the cache now was deleted. The same holds for a list that is being
      // read. Storing the state again would also mark an object as listed that
      // only an earlier list showed.
      compareResourceVersions(resourceVersion, seen) <= 0 ||
      (slot >= 0 && store.slots.compareVersion(slot, header) >= 0)
    ) return nothing;
    if (slot >= 0 && !store.slots.hasUid(slot, header)) {
      this.#removeMissing(keyOfHeader(header));
      slot = -1;
    }
    // Deleted after this state, or perhaps not selected.
    const mayNotAdd = selectsFields ||
      compareResourceVersions(resourceVersion, this.#deleted.text) <= 0;
    if (slot < 0 && mayNotAdd) return nothing;
    const before = slot < 0
      ? undefined
      : ended?.before?.resourceVersion === store.slots.version(slot)
      ? ended.before
      : store.headerAt(slot).copy();
    const { outcome: type, slot: stored } = store.put(header);
    if (type !== "added" && type !== "updated") return nothing;
    const { keyText } = header;
    // A map keeps its keys for a while after they were deleted.
    const key = keyText === ended?.key ? ended.key : keyText;
    this.#pending.set(key, resourceVersion);
    if (this.#listing) this.#unlisted.add(key);
    this.#deps.metrics.change(type);
    const { all } = this.#subscriptions;
    if (all.length > 1 || all[0] !== author) {
      // Not the shared event: a write may end within a handler.
      const facts = { type, header, previous: before, slot: stored };
      this.#subscriptions.changed(new CurrentEvent(store, facts), author);
    }
    return { seen, before };
  }

  /**
   * Stores a newer state that another watch of the selection has delivered, like
   * the response to an own write.
   *
   * @returns False if the stream has already reached that state; then nothing is
   * stored.
   */
  takeOver(header: ObjectHeader): boolean {
    const isAhead =
      compareResourceVersions(header.resourceVersion, this.#seen.text) > 0;
    if (isAhead && !header.isPartial) this.ownWrite(header, undefined);
    return isAhead;
  }

  /** Whether an object belongs to the shard of the informer. */
  #selects(header: ObjectHeader): boolean {
    const { shard } = this.#deps;
    return shard === undefined || inShard(shard, header);
  }

  #put(received: ObjectHeader): void {
    const header = this.#reducer?.reduce(received) ?? received;
    const store = this.#store;
    const stale = this.#pending.size > 0 && this.#isBehindOwnWrite(header);
    const options = this.#putOptions;
    options.force = this.#listing && !stale;
    options.rewrite = this.#restarted && options.force;
    options.keepPrevious = this.#subscriptions.all.length > 0;
    let change = store.put(header, options);
    if (change.outcome === "recreated") {
      // Events of the former object were delivered before its successor.
      if (stale) return;
      this.#removeMissing(keyOfHeader(header));
      change = store.put(header, options);
    }
    const { outcome } = change;
    if (outcome === "added" || outcome === "updated") {
      this.#changed(outcome, header, change);
    } else this.#known(header, outcome === "stale");
  }

  #remove(received: ObjectHeader): void {
    const header = this.#reducer?.reduce(received) ?? received;
    const store = this.#store;
    const { snapshot, selectsFields } = this.#deps;
    const mayBeOlder = this.#pending.size > 0 || snapshot?.isRestored === true;
    const slot = mayBeOlder ? store.slots.find(header) : -1;
    if (
      slot >= 0 && !this.#listing && !selectsFields &&
      store.slots.compareVersion(slot, header) > 0
    ) {
      // An own write, perhaps of the process before: it has made the next object.
      this.#isBehindOwnWrite(header);
      if (store.slots.hasUid(slot, header)) this.#known(header, true);
      return;
    }
    if (slot >= 0 && this.#isBehindOwnWrite(header)) {
      // A later own write is in the cache: it created the next object of this
      // name, or made this one match the selectors again. Whether it matches a
      // field selector is unknown; if it does, the server sends the object again.
      if (this.#deps.selectsFields) this.#removeMissing(keyOfHeader(header));
      else if (store.slots.hasUid(slot, header)) this.#known(header, true);
      return;
    }
    const change = store.delete(header, KEEP_PREVIOUS);
    if (change.outcome === "deleted") this.#changed("deleted", header, change);
  }

  /** Removes an object whose deletion was not received. */
  #removeMissing(key: ObjectKey): void {
    this.#pending.delete(keyText(key));
    const last = this.#store.header(key)?.copy();
    if (last === undefined) return;
    const { slot } = this.#store.delete(key);
    // Not the shared event: an own write may end within a handler.
    const relist = this.#listing && this.#complete;
    this.#deliver(missingEvent(this.#store, last, { relist, slot }));
  }

  /** Delivers the change that a put or delete has made. */
  #changed(
    type: CacheEventType,
    header: ObjectHeader | undefined,
    { slot, previous }: Pick<StoreChange, "previous" | "slot">,
  ): void {
    const facts = this.#facts;
    facts.type = type;
    facts.header = header;
    facts.previous = previous;
    facts.initial = this.#listing && !this.#complete && type !== "deleted";
    facts.relist = this.#listing && this.#complete;
    facts.isRegular = this.#store.isRegular;
    facts.slot = slot;
    facts.snapshot = facts.initial
      ? this.#deps.snapshot?.ofRestored(slot)
      : undefined;
    this.#deliver(this.#event.set(facts));
  }

  #deliver(event: CurrentEvent<T>): void {
    this.#deps.metrics.change(event.type);
    this.#subscriptions.changed(event);
  }

  /** Passes an event that did not change the cache to all subscriptions. */
  #known(header: ObjectHeader, stale: boolean): void {
    const { all } = this.#subscriptions;
    if (all.length === 0) return;
    const event: KnownEvent = {
      key: header.keyText,
      type: "updated",
      resourceVersion: header.resourceVersion,
      listed: this.#listing,
      stale,
    };
    for (const subscription of all) subscription.known(event);
  }

  /** Whether the cache has a later own write of an object; drops earlier ones. */
  #isBehindOwnWrite(header: ObjectHeader): boolean {
    const key = header.keyText;
    if (this.#listing) this.#unlisted.delete(key);
    const pending = this.#pending.get(key);
    if (pending === undefined) return false;
    if (compareResourceVersions(header.resourceVersion, pending) < 0) {
      return true;
    }
    // Until the first state is complete, it may be read again, and be older.
    if (this.#complete) this.#pending.delete(key);
    return false;
  }

  /**
   * Handles a restart of the server's history. The state must be read again: so
   * far, objects with a known version counted as unchanged, and own writes hid
   * other states.
   *
   * @throws {ConnectionFault} Always.
   */
  #forgetHistory(): never {
    // The next state has to remove what only the old history had.
    this.#seen.text = [this.#seen.text, ...this.#pending.values()]
      .sort(compareResourceVersions).at(-1) ?? "";
    this.#restarted = true;
    this.#pending.clear();
    for (const subscription of this.#subscriptions.all) {
      subscription.restarted();
    }
    throw new ConnectionFault(
      "backwards",
      "Cannot keep the cache: the server's history restarted: received an older state than was known",
    );
  }
}
