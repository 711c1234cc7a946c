import type { Kind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import { keyText, type ObjectKey } from "../api/object_key.ts";
import { compareResourceVersions } from "../api/resource_version.ts";
import type { ObjectHeader } from "../json/object_header.ts";
import { ConnectionFault } from "./connection_fault.ts";
import {
  CurrentEvent,
  type EventFacts,
  type EventSource,
} from "./current_event.ts";
import { MetadataReducer } from "./metadata_reducer.ts";
import type { ObjectStore } from "./object_store.ts";
import type { ReflectorSink } from "./reflector_sink.ts";

/** Who is told what a {@linkcode StoreFeed} did. */
export interface FeedListener<T extends KubernetesObject> {
  /** The cache changed. The event is valid during the call only. */
  changed(event: CurrentEvent<T>): void;
  /**
   * An event changed nothing, since its state, or a later one that we wrote, is
   * in the cache already.
   */
  known(event: KnownEvent): void;
  /** Everything up to this state was told. */
  progressed(resourceVersion: string): void;
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
  readonly #store: ObjectStore<T>;
  readonly #listener: FeedListener<T>;
  readonly #reducer: MetadataReducer | undefined;
  /** The one event that the reflector's changes are told by. */
  readonly #event: CurrentEvent<T>;
  /** The resourceVersions of own writes ahead of the stream, by key. */
  readonly #pending: Map<string, string> = new Map();
  /** How far the stream has come; empty before the first state. */
  #seen = "";
  #listing = false;
  #complete = false;

  constructor(
    store: ObjectStore<T>,
    parts: {
      readonly source: EventSource<T>;
      readonly listener: FeedListener<T>;
      /** The kind of which only the metadata is kept. */
      readonly metadataOnly?: Kind<T> | undefined;
    },
  ) {
    this.#store = store;
    this.#listener = parts.listener;
    this.#reducer = parts.metadataOnly &&
      new MetadataReducer(parts.metadataOnly);
    this.#event = new CurrentEvent(parts.source);
  }

  /** Whether the store has once been complete. */
  get hasCompleted(): boolean {
    return this.#complete;
  }

  beginState(): void {
    this.#listing = true;
    this.#store.beginRelist();
  }

  item(header: ObjectHeader): void {
    this.#put(header);
  }

  change(type: "ADDED" | "MODIFIED" | "DELETED", header: ObjectHeader): void {
    if (type === "DELETED") this.#remove(header);
    else this.#put(header);
    if (!this.#listing) this.#seen = header.resourceVersion;
  }

  progress(resourceVersion: string): void {
    this.#seen = resourceVersion;
    for (const [key, pending] of this.#pending) {
      if (compareResourceVersions(pending, resourceVersion) <= 0) {
        this.#pending.delete(key);
      }
    }
    this.#listener.progressed(resourceVersion);
  }

  endState(resourceVersion: string): void {
    let newest = resourceVersion;
    if (compareResourceVersions(resourceVersion, this.#seen) < 0) {
      // The history of the server began anew, so nothing of the old one counts.
      newest = this.#forgetHistory();
    }
    this.#sweep(newest);
    this.#listing = false;
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
   * @param answer Its header.
   * @param options `mayAdd`: whether the object belongs into the cache if it is not there.
   */
  ownWrite(
    answer: ObjectHeader,
    { mayAdd }: { readonly mayAdd: boolean },
  ): OwnWriteOutcome {
    const header = this.#reducer?.reduce(answer).copy() ?? answer;
    const key = keyOfHeader(header);
    const text = keyText(key);
    const { resourceVersion } = header;
    const seen = this.#seen;
    const uid = this.#store.uid(key);
    const nothing = { seen, before: undefined, event: undefined };
    if (
      // The stream has told this state or what came after it: if the object is
      // not in the cache now, it is gone.
      compareResourceVersions(resourceVersion, seen) <= 0 ||
      (uid === undefined && !mayAdd)
    ) return nothing;
    if (uid !== undefined && uid !== header.uid) this.#replaceIncarnation(key);
    const before = this.#store.header(key)?.copy();
    const outcome = this.#store.put(header);
    if (outcome === "stale") return nothing;
    this.#pending.set(text, resourceVersion);
    if (outcome === "unchanged") return nothing;
    return {
      seen,
      before,
      event: { type: outcome, key: text, header, previous: before },
    };
  }

  #put(told: ObjectHeader): void {
    const header = this.#reducer?.reduce(told) ?? told;
    const key = keyOfHeader(header);
    const text = keyText(key);
    const relist = this.#listing && this.#complete;
    const stale = this.#pending.size > 0 &&
      this.#isBehindOwnWrite(text, header);
    const uid = this.#store.uid(key);
    if (uid !== undefined && uid !== header.uid && !stale) {
      this.#replaceIncarnation(key);
    }
    const previous = this.#store.bytes(key);
    const outcome = this.#store.put(header, {
      force: this.#listing && !stale,
    });
    if (outcome === "added" || outcome === "updated") {
      this.#listener.changed(this.#event.set({
        type: outcome,
        key: text,
        header,
        previous,
        initial: this.#listing && !this.#complete,
        relist,
      }));
    } else {
      this.#listener.known({
        key: text,
        type: "updated",
        resourceVersion: header.resourceVersion,
        listed: this.#listing,
        stale: outcome === "stale",
      });
    }
  }

  #remove(told: ObjectHeader): void {
    const header = this.#reducer?.reduce(told) ?? told;
    const key = keyOfHeader(header);
    const text = keyText(key);
    const uid = this.#store.uid(key);
    if (uid === undefined) return;
    // The next object of this name, made by us, is in the cache already; that
    // the former one is gone was told when it came.
    if (uid !== header.uid && this.#isBehindOwnWrite(text, header)) return;
    this.#pending.delete(text);
    const previous = this.#store.bytes(key);
    this.#store.delete(key);
    this.#listener.changed(this.#event.set({
      type: "deleted",
      key: text,
      header,
      previous,
      relist: this.#listing && this.#complete,
    }));
  }

  /** Tells that an object is gone which another of the same name replaces. */
  #replaceIncarnation(key: ObjectKey): void {
    const last = this.#store.header(key)?.copy();
    this.#store.delete(key);
    if (last !== undefined) this.#tellVanished(key, last);
  }

  /** Removes what was not in the state that has just been read. */
  #sweep(newest: string): void {
    const vanished: { readonly key: ObjectKey; readonly last: ObjectHeader }[] =
      [];
    this.#store.sweep(newest, (key) => {
      const last = this.#store.header(key)?.copy();
      if (last !== undefined) vanished.push({ key, last });
    });
    for (const { key, last } of vanished) {
      this.#pending.delete(keyText(key));
      this.#tellVanished(key, last);
    }
  }

  #tellVanished(key: ObjectKey, last: ObjectHeader): void {
    this.#listener.changed(this.#event.set({
      type: "deleted",
      key: keyText(key),
      header: last,
      previous: last,
      relist: this.#listing && this.#complete,
      finalStateUnknown: true,
    }));
  }

  /** Whether an own write after this state is in the cache; forgets those before. */
  #isBehindOwnWrite(key: string, header: ObjectHeader): boolean {
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
    const newest = [this.#seen, ...this.#pending.values()]
      .sort(compareResourceVersions).at(-1) ?? "";
    if (this.#pending.size === 0) return newest;
    this.#pending.clear();
    throw new ConnectionFault(
      "backwards",
      "Cannot keep own writes: the server's history began anew: received an older state than was known",
    );
  }
}

function keyOfHeader(header: ObjectHeader): ObjectKey {
  const { namespace, name } = header;
  return namespace === "" ? { name } : { namespace, name };
}
