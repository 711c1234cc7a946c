/**
 * Storage of the API server: collections of objects in memory, the history for
 * watches and for lists at past revisions, and the journal that persists a
 * store in a file. Guarantees: each write increases the revision, and listeners
 * observe every change in order. Must not import requests, HTTP or controllers.
 *
 * @module
 */
import type { UntypedObject } from "@coracle/operator/client";
import type { GroupResource, ResourceDefinition } from "../registry.ts";
import { Collection } from "./collection.ts";
import type { Change, HistoryLimits } from "./history.ts";
import { StoredObject } from "./stored_object.ts";

/** Listener of changes, called immediately after each change is stored. */
export type ChangeListener = (change: Change, collection: Collection) => void;

/** Options of a {@linkcode Store}. */
export interface StoreOptions {
  /**
   * Limits of each collection's history.
   *
   * @default {{ changes: 10_000, bytes: 33_554_432 }}
   */
  readonly history?: HistoryLimits | undefined;
  /**
   * Journal to which each change is written before it is acknowledged; if the
   * journal throws, the change is not made.
   *
   * @default {undefined}
   */
  readonly journal?: Journal | undefined;
}

/** Persistent journal of changes. */
export interface Journal {
  append(change: Change): void;
}

/** Key of a resource in the store: `GROUP/PLURAL`, in any version of the kind. */
export function resourceKey({ group, plural }: GroupResource): string {
  return `${group}/${plural}`;
}

/**
 * All objects of a server, under one revision counter. Every write is one
 * synchronous step that reads, decides and writes without `await`, so writes
 * never interleave.
 */
export class Store {
  readonly #history: HistoryLimits;
  readonly #collections: Map<string, Collection> = new Map();
  readonly #listeners: ChangeListener[] = [];
  #journal: Journal | undefined;
  #revision = 1;
  /** Lowest revision for watches of collections that were never opened. */
  #baseline = 1;

  constructor(options: StoreOptions = {}) {
    const { history = { changes: 10_000, bytes: 32 * 1024 * 1024 } } = options;
    this.#history = history;
    this.#journal = options.journal;
  }

  /** Revision of the last write. */
  get revision(): number {
    return this.#revision;
  }

  /** Number of objects. */
  get size(): number {
    let size = 0;
    for (const collection of this.#collections.values()) {
      size += collection.size;
    }
    return size;
  }

  /** All collections that were accessed. */
  collections(): Iterable<Collection> {
    return this.#collections.values();
  }

  /** Collection of a resource, created on first access. */
  collection(resource: GroupResource): Collection {
    return this.#collections.get(resourceKey(resource)) ??
      this.#make(resource, this.#baseline);
  }

  /**
   * Starts the history of a newly served resource; earlier revisions are too
   * old for its watches.
   */
  open(resource: GroupResource): void {
    if (!this.#collections.has(resourceKey(resource))) {
      this.#make(resource, this.#revision);
    }
  }

  #make({ group, plural }: GroupResource, floor: number): Collection {
    const collection = new Collection(
      { group, plural },
      this.#history,
      { watch: floor, list: this.#baseline },
    );
    this.#collections.set(resourceKey({ group, plural }), collection);
    return collection;
  }

  /** Discards all history; the current state becomes the start. */
  begin(): void {
    this.#baseline = this.#revision;
    this.compact();
  }

  /** Collection of a definition's objects. */
  collectionOf(definition: ResourceDefinition): Collection {
    return this.collection(definition.storedAs ?? definition);
  }

  /** Removes a collection with its history, when its resource is deleted. */
  drop(resource: GroupResource): void {
    this.#collections.delete(resourceKey(resource));
  }

  /** Adds a listener of changes. */
  listen(listener: ChangeListener): void {
    this.#listeners.push(listener);
  }

  /** Calls a listener with each object as an added object, after a store was loaded. */
  replay(listener: ChangeListener): void {
    for (const collection of this.#collections.values()) {
      for (const object of collection.values()) {
        const { revision } = object;
        listener(
          { type: "ADDED", revision, object, previous: undefined },
          collection,
        );
      }
    }
  }

  /** Writes later changes to a journal. */
  attach(journal: Journal): void {
    this.#journal = journal;
  }

  /**
   * Stores an object in its storage version; creates or replaces it.
   *
   * @param definition Resource definition.
   * @param object Object in its storage version.
   * @param current Whether the object has the defaults of its storage version.
   */
  put(
    definition: ResourceDefinition,
    object: UntypedObject,
    current = true,
  ): StoredObject {
    const collection = this.collectionOf(definition);
    const stored = new StoredObject(definition, object, {
      revision: this.#revision + 1,
      current,
    });
    const previous = collection.get(stored.key);
    this.#commit(collection, {
      type: previous ? "MODIFIED" : "ADDED",
      revision: stored.revision,
      object: stored,
      previous,
    });
    return stored;
  }

  /**
   * Removes an object; returns its last state at the revision of the removal.
   */
  delete(stored: StoredObject): StoredObject {
    const collection = this.collectionOf(stored.definition);
    const last = new StoredObject(
      stored.definition,
      stored.parse(),
      { revision: this.#revision + 1, current: stored.current },
    );
    this.#commit(collection, {
      type: "DELETED",
      revision: last.revision,
      object: last,
      previous: stored,
    });
    return last;
  }

  #commit(collection: Collection, change: Change): void {
    this.#journal?.append(change);
    this.#revision = change.revision;
    collection.apply(change);
    for (const listener of this.#listeners) listener(change, collection);
  }

  /** Discards the history of all collections, like etcd's compaction. */
  compact(): void {
    for (const collection of this.#collections.values()) {
      collection.history.compact(this.#revision);
    }
  }

  /** Whether the objects and changes at a revision are still known. */
  knows(revision: number): boolean {
    return [...this.#collections.values()].every(({ history }) =>
      history.listFloor <= revision
    );
  }

  /** Goes on from the state of another store at a revision that it knows. */
  resumeFrom(other: Store, revision: number): void {
    this.#revision = revision;
    this.#baseline = other.#baseline;
    for (const source of other.#collections.values()) {
      // That of a kind that was not served yet.
      if (source.history.watchFloor > revision) continue;
      this.collection(source.resource).resumeFrom(source, revision);
    }
  }

  /** Sets the current revision, when the store is loaded from a file. */
  resumeAt(revision: number): void {
    this.#revision = Math.max(this.#revision, revision);
  }
}
