import type { UntypedObject } from "../../core/api/object.ts";
import type { GroupResource, ResourceDefinition } from "../registry.ts";
import { Collection } from "./collection.ts";
import type { Change, HistoryLimits } from "./history.ts";
import { StoredObject } from "./stored_object.ts";

/** Is told of every change right after it became the present state. */
export type ChangeListener = (change: Change, collection: Collection) => void;

/** Options of a {@linkcode Store}. */
export interface StoreOptions {
  /**
   * How much of the past each collection remembers.
   *
   * @default {{ changes: 10_000, bytes: 33_554_432 }}
   */
  readonly history?: HistoryLimits | undefined;
  /**
   * Keeps a change before anybody learns of it; when it throws, the change did
   * not happen.
   *
   * @default {undefined}
   */
  readonly journal?: Journal | undefined;
}

/** Keeps changes where they outlive the process. */
export interface Journal {
  append(change: Change): void;
}

/** The text that names a resource in the store. */
export function resourceKey({ group, plural }: GroupResource): string {
  return `${group}/${plural}`;
}

/**
 * All objects of a server, under one revision counter. Every write is one
 * synchronous step: read, decide and write without an `await` between, and no
 * two writes meet.
 */
export class Store {
  readonly #history: HistoryLimits;
  readonly #collections: Map<string, Collection> = new Map();
  readonly #listeners: ChangeListener[] = [];
  #journal: Journal | undefined;
  #revision = 1;
  /** From where on watches of collections that nobody opened miss nothing. */
  #baseline = 1;

  constructor(options: StoreOptions = {}) {
    const { history = { changes: 10_000, bytes: 32 * 1024 * 1024 } } = options;
    this.#history = history;
    this.#journal = options.journal;
  }

  /** The revision of the last write. */
  get revision(): number {
    return this.#revision;
  }

  /** How many objects there are. */
  get size(): number {
    let size = 0;
    for (const collection of this.#collections.values()) {
      size += collection.size;
    }
    return size;
  }

  /** Every collection that was ever asked for. */
  collections(): Iterable<Collection> {
    return this.#collections.values();
  }

  /** The collection of a resource, made when first asked for. */
  collection(resource: GroupResource): Collection {
    return this.#collections.get(resourceKey(resource)) ??
      this.#make(resource, this.#baseline);
  }

  /**
   * Begins to remember the changes of a resource that is served from now on;
   * watches from before are too old.
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

  /** Takes the present state as the beginning: what was before is forgotten. */
  begin(): void {
    this.#baseline = this.#revision;
    this.compact();
  }

  /** Where the objects of a definition live. */
  collectionOf(definition: ResourceDefinition): Collection {
    return this.collection(definition.storedAs ?? definition);
  }

  /** Forgets a collection with its past, when its resource is gone. */
  drop(resource: GroupResource): void {
    this.#collections.delete(resourceKey(resource));
  }

  /** Tells a listener of every change from now on. */
  listen(listener: ChangeListener): void {
    this.#listeners.push(listener);
  }

  /** Keeps changes in a journal from now on. */
  attach(journal: Journal): void {
    this.#journal = journal;
  }

  /** Stores an object in its storage version, as new or in place of another. */
  put(definition: ResourceDefinition, object: UntypedObject): StoredObject {
    const collection = this.collectionOf(definition);
    const stored = new StoredObject(definition, object, {
      revision: this.#revision + 1,
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

  /** Removes an object; gives its last state at the revision of the removal. */
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

  /** Forgets the past of every collection, as compaction of etcd does. */
  compact(): void {
    for (const collection of this.#collections.values()) {
      collection.history.compact(this.#revision);
    }
  }

  /** Goes on from a revision, for loading from a file. */
  resumeAt(revision: number): void {
    this.#revision = Math.max(this.#revision, revision);
  }
}
