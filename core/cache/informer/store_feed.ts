import type { Kind } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { keyText, type ObjectKey, parseKey } from "../../api/object_key.ts";
import { compareResourceVersions } from "../../api/resource_version.ts";
import { ObjectHeader } from "../../json/object_header.ts";
import type { CacheEventType } from "./cache_event.ts";
import { ConnectionFault } from "../watch/connection_fault.ts";
import {
  CurrentEvent,
  type EventFacts,
  type EventSource,
  keyOfHeader,
  keyTextOf,
} from "./current_event.ts";
import { MetadataReducer } from "../watch/metadata_reducer.ts";
import type { ObjectStore, StoreChange } from "../store/object_store.ts";
import type { ChangeType, ReflectorSink } from "../watch/reflector_sink.ts";
import type { TimeSlice } from "../watch/time_slice.ts";
import { VersionMark } from "../watch/version_mark.ts";

/** Options of a delete whose deleted state is delivered. */
const KEEP_PREVIOUS = Object.freeze({ keepPrevious: true });

/** Who is told what a {@linkcode StoreFeed} did. */
export interface FeedListener<T extends KubernetesObject> {
  /** Whether anybody wants to know of changes at the moment. */
  readonly isIdle: boolean;
  /** The cache changed. The event is valid during the call only. */
  changed(event: CurrentEvent<T>): void;
  /**
   * An event changed nothing, since its state, or a later one that we wrote, is
   * in the cache already.
   */
  known(event: KnownEvent): void;
  /** Everything up to this state was told. */
  progressed(resourceVersion: string): void;
  /** The history of the server began anew, and its versions with it. */
  restarted(): void;
  /** A state is complete. */
  completed(): void;
  /** A slice of work is done. */
  rested(): void;
}

/** An event that changed nothing. */
export interface KnownEvent {
  readonly key: string;
  readonly type: "added" | "updated";
  readonly resourceVersion: string;
  /** Whether a list shows it, so that changes before may be missing. */
  readonly listed: boolean;
  /** Whether the cache holds a later state than the event's. */
  readonly stale: boolean;
}

/** What an own write did to the cache. */
export interface OwnWriteOutcome {
  /** How far the stream has come: echoes up to there were seen. */
  readonly seen: string;
  /** The state that the write replaced, if it replaced one. */
  readonly before: ObjectHeader | undefined;
  /** What to tell the other handlers; absent if the cache did not change. */
  readonly event: EventFacts | undefined;
}

/** What a {@linkcode StoreFeed} works with. */
export interface StoreFeedParts<T extends KubernetesObject> {
  readonly store: ObjectStore<T>;
  readonly source: EventSource<T>;
  readonly listener: FeedListener<T>;
  /** Where the places of the store begin among all of the informer. */
  readonly firstPlace: number;
  /** Cuts the end of a long state into slices. */
  readonly slice: TimeSlice;
  /** The kind of which only the metadata is kept. */
  readonly metadataOnly: Kind<T> | undefined;
}

/**
 * Brings what a reflector reads, and the answers to our own writes, into a
 * store, and tells every change once.
 *
 * The server tells changes in the order of their resourceVersions, so that all
 * is known up to the last one told. An own write runs ahead of that order; it is
 * remembered as *pending* until the stream has passed it. Meanwhile older states
 * do not replace it, and a list that is older does not remove it.
 *
 * @typeParam T The type of the objects.
 */
export class StoreFeed<T extends KubernetesObject> implements ReflectorSink {
  readonly #parts: StoreFeedParts<T>;
  readonly #store: ObjectStore<T>;
  readonly #listener: FeedListener<T>;
  readonly #reducer: MetadataReducer | undefined;
  /** The one event that the reflector's changes are told by. */
  readonly #event: CurrentEvent<T>;
  /** What is told by it, set anew for each change. */
  readonly #facts: { -readonly [Fact in keyof EventFacts]: EventFacts[Fact] };
  /** Options of the current put, reused. */
  readonly #putOptions = { force: false, keepPrevious: false };
  /** The resourceVersions of own writes ahead of the stream, by key. */
  readonly #pending: Map<string, string> = new Map();
  /** Own writes that the list now being read has not shown. */
  readonly #unlisted: Set<string> = new Set();
  /** How far the stream has come; empty before the first state. */
  readonly #seen: VersionMark = new VersionMark();
  /**
   * The last deletion that a stream told amid its state; empty once a state is
   * complete. As changes come after all objects, everything up to there was told.
   * It is no part of what was seen, since the state may yet be read once more,
   * and be an older one then.
   */
  readonly #deleted: VersionMark = new VersionMark();
  #listing = false;
  #complete = false;

  constructor(parts: StoreFeedParts<T>) {
    const { store, listener, source, metadataOnly } = parts;
    this.#parts = parts;
    this.#store = store;
    this.#listener = listener;
    this.#reducer = metadataOnly && new MetadataReducer(metadataOnly);
    this.#facts = { type: "added", header: new ObjectHeader() };
    this.#event = new CurrentEvent(source, this.#facts);
  }

  /** Whether the store has once been complete. */
  get hasCompleted(): boolean {
    return this.#complete;
  }

  beginState(): void {
    this.#listing = true;
    this.#unlisted.clear();
    this.#store.beginRelist();
  }

  item(header: ObjectHeader): void {
    this.#put(header);
  }

  change(type: ChangeType, header: ObjectHeader): void {
    if (type === "DELETED") this.#remove(header);
    else this.#put(header);
    (this.#listing ? this.#deleted : this.#seen).moveTo(header);
  }

  progress(resourceVersion: string): void {
    this.#seen.text = resourceVersion;
    for (const [key, pending] of this.#pending) {
      if (compareResourceVersions(pending, resourceVersion) <= 0) {
        this.#pending.delete(key);
      }
    }
    this.#listener.progressed(resourceVersion);
  }

  async endState(resourceVersion: string): Promise<void> {
    let newest = resourceVersion;
    if (compareResourceVersions(resourceVersion, this.#seen.text) < 0) {
      // The history of the server began anew, so nothing of the old one counts.
      newest = this.#forgetHistory();
    }
    // From here on, an answer to an own write that is older is no news.
    this.#seen.text = resourceVersion;
    for (const key of this.#unlisted) {
      const pending = this.#pending.get(key) ?? "";
      if (compareResourceVersions(pending, resourceVersion) <= 0) {
        this.#vanish(parseKey(key));
      }
    }
    const { slice } = this.#parts;
    for (const key of this.#store.unseen(newest)) {
      this.#vanish(key);
      if (slice.step(0)) await slice.rest();
    }
    this.#listing = false;
    this.#deleted.text = "";
    this.#complete = true;
    this.progress(resourceVersion);
    this.#listener.completed();
  }

  rest(): void {
    this.#listener.rested();
  }

  /**
   * Brings in the answer to a write of ours.
   *
   * @param header Of the answer, in the form that the store keeps.
   * @param options `mayAdd`: whether the object belongs into the cache if it is
   * not there.
   */
  ownWrite(
    header: ObjectHeader,
    { mayAdd }: { readonly mayAdd: boolean },
  ): OwnWriteOutcome {
    const { resourceVersion } = header;
    const seen = this.#seen.text;
    const nothing = { seen, before: undefined, event: undefined };
    if (
      // The stream has told this state or what came after it: if the object is
      // not in the cache now, it is gone.
      compareResourceVersions(resourceVersion, seen) <= 0 ||
      !(this.#store.has(header) || (mayAdd && !this.#wasDeleted(header)))
    ) return nothing;
    if (this.#store.hasOtherUid(header)) {
      const other = this.#store.resourceVersion(header) ?? "";
      // A list that is being read runs ahead of what was seen: what it showed
      // may be the next object of this name, and what was answered gone.
      if (compareResourceVersions(resourceVersion, other) < 0) return nothing;
      this.#vanish(keyOfHeader(header));
    }
    const before = this.#store.header(header)?.copy();
    const { outcome, slot } = this.#store.put(header);
    if (outcome !== "added" && outcome !== "updated") return nothing;
    const key = keyTextOf(header);
    this.#pending.set(key, resourceVersion);
    if (this.#listing) this.#unlisted.add(key);
    const place = this.#parts.firstPlace + slot;
    return {
      seen,
      before,
      event: { type: outcome, header, previous: before, place },
    };
  }

  #put(told: ObjectHeader): void {
    const header = this.#reducer?.reduce(told) ?? told;
    const store = this.#store;
    const stale = this.#pending.size > 0 && this.#isBehindOwnWrite(header);
    const options = this.#putOptions;
    options.force = this.#listing && !stale;
    options.keepPrevious = !this.#listener.isIdle;
    let change = store.put(header, options);
    if (change.outcome === "recreated") {
      // What happened to the object before was delivered by its successor.
      if (stale) return;
      this.#vanish(keyOfHeader(header));
      change = store.put(header, options);
    }
    const { outcome } = change;
    if (outcome === "added" || outcome === "updated") {
      this.#tell(outcome, header, change);
    } else this.#tellKnown(header, { stale: outcome === "stale" });
  }

  #remove(told: ObjectHeader): void {
    const header = this.#reducer?.reduce(told) ?? told;
    const store = this.#store;
    if (
      this.#pending.size > 0 && store.has(header) &&
      this.#isBehindOwnWrite(header)
    ) {
      // A later write of ours is in the cache already: it made the next object
      // of this name, or brought this one back among those that are selected.
      if (!store.hasOtherUid(header)) this.#tellKnown(header, { stale: true });
      return;
    }
    const change = store.delete(header, KEEP_PREVIOUS);
    if (change.outcome === "deleted") this.#tell("deleted", header, change);
  }

  /** Removes an object of which nobody told that it is gone. */
  #vanish(key: ObjectKey): void {
    this.#pending.delete(keyText(key));
    const last = this.#store.header(key)?.copy();
    if (last === undefined) return;
    const { slot } = this.#store.delete(key);
    // Not the shared one: an own write that ends within a handler gets here.
    const event = new CurrentEvent(this.#parts.source, {
      type: "deleted",
      header: last,
      previous: last,
      relist: this.#listing && this.#complete,
      finalStateUnknown: true,
      place: this.#parts.firstPlace + slot,
    });
    this.#listener.changed(event);
  }

  #tell(
    type: CacheEventType,
    header: ObjectHeader,
    { slot, previous }: StoreChange,
  ): void {
    const facts = this.#facts;
    facts.type = type;
    facts.header = header;
    facts.previous = previous;
    facts.initial = this.#listing && !this.#complete && type !== "deleted";
    facts.relist = this.#listing && this.#complete;
    facts.isRegular = this.#store.isRegular;
    facts.place = this.#parts.firstPlace + slot;
    this.#listener.changed(this.#event.set(facts));
  }

  /** Tells of an event that changed nothing. */
  #tellKnown(
    header: ObjectHeader,
    { stale }: Pick<KnownEvent, "stale">,
  ): void {
    if (this.#listener.isIdle) return;
    this.#listener.known({
      key: keyTextOf(header),
      type: "updated",
      resourceVersion: header.resourceVersion,
      listed: this.#listing,
      stale,
    });
  }

  /** Whether an object that is not in the cache was deleted after this state. */
  #wasDeleted({ resourceVersion }: ObjectHeader): boolean {
    return compareResourceVersions(resourceVersion, this.#deleted.text) <= 0;
  }

  /** Whether an own write after this state is in the cache; forgets those before. */
  #isBehindOwnWrite(header: ObjectHeader): boolean {
    const key = keyTextOf(header);
    if (this.#listing) this.#unlisted.delete(key);
    const pending = this.#pending.get(key);
    if (pending === undefined) return false;
    if (compareResourceVersions(header.resourceVersion, pending) < 0) {
      return true;
    }
    this.#pending.delete(key);
    return false;
  }

  /**
   * Drops what the cache believes of versions that the server does not know.
   *
   * @returns The newest version of the old history.
   * @throws {ConnectionFault} If own writes of the old history shadowed objects
   * of the new one; the state must be read again.
   */
  #forgetHistory(): string {
    const newest = [this.#seen.text, ...this.#pending.values()]
      .sort(compareResourceVersions).at(-1) ?? "";
    this.#listener.restarted();
    if (this.#pending.size === 0) return newest;
    this.#pending.clear();
    // The next state has to remove these, too, though nothing shows them any
    // more to be of the old history.
    this.#seen.text = newest;
    throw new ConnectionFault(
      "backwards",
      "Cannot keep own writes: the server's history began anew: received an older state than was known",
    );
  }
}
