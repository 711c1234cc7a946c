import { type Kind, kindText } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { keyText, type ObjectKey, parseKey } from "../../api/object_key.ts";
import type { ObjectHeader } from "../../json/object_header.ts";
import type { PlacedObject } from "./handler_entry.ts";
import { MAX_SLOTS } from "../store/key_table.ts";
import type { IndexDefinition } from "../store/object_store.ts";
import { readEach } from "./read_each.ts";
import type { CacheReader } from "./shared_informer.ts";
import { type StoreUsage, sumOfUsages } from "../store/store_usage.ts";
import type { WatchedNamespace } from "./watched_namespace.ts";

/** Stands for the watch of all namespaces. */
const ALL = "";

/** What a watch is made of that differs from those of other namespaces. */
export interface WatchStart<T extends KubernetesObject> {
  /** One namespace; all when undefined. */
  readonly namespace: string | undefined;
  /** Where the places of its objects begin. */
  readonly firstPlace: number;
  /** The indexes that there are already. */
  readonly indexes: Readonly<Record<string, IndexDefinition<T>>>;
}

/** Makes the watch of a namespace, or of all; it is not started. */
export type MakeWatch<T extends KubernetesObject> = (
  start: WatchStart<T>,
) => WatchedNamespace<T>;

/**
 * The watches of an informer, one for each namespace or one for all, read as one
 * cache.
 *
 * @typeParam T The type of the objects.
 */
export class WatchedNamespaces<T extends KubernetesObject>
  implements CacheReader<T> {
  readonly #kind: Kind<T>;
  readonly #make: MakeWatch<T>;
  readonly #indexes: Record<string, IndexDefinition<T>> = {};
  #made = 0;
  /** By namespace. Replaced, not changed, so that a loop over it is safe. */
  #watches: ReadonlyMap<string, WatchedNamespace<T>> = new Map();

  constructor(kind: Kind<T>, make: MakeWatch<T>) {
    this.#kind = kind;
    this.#make = make;
  }

  /** All watches. */
  get all(): readonly WatchedNamespace<T>[] {
    return [...this.#watches.values()];
  }

  get hasSynced(): boolean {
    return this.all.every(({ hasSynced }) => hasSynced);
  }

  get size(): number {
    return this.all.reduce((size, { store }) => size + store.size, 0);
  }

  /**
   * Has a watch for each of these namespaces and for no others; those that stay
   * are kept.
   *
   * @param namespaces All, by one watch, when undefined.
   * @returns The watches that are no longer wanted.
   * @throws {RangeError} If no namespace is named, or an empty one.
   */
  select(namespaces: readonly string[] | undefined): WatchedNamespace<T>[] {
    if (namespaces?.length === 0 || namespaces?.includes("")) {
      throw new RangeError(
        `Cannot watch ${
          kindText(this.#kind)
        }: "namespaces" must name at least one, or be absent for all: received ${
          JSON.stringify(namespaces)
        }`,
      );
    }
    const before = this.#watches;
    this.#watches = new Map(
      [...new Set(namespaces ?? [ALL])].map((name) => [
        name,
        before.get(name) ?? this.#makeWatch(name),
      ]),
    );
    return [...before.values()].filter((watch) => !this.includes(watch));
  }

  #makeWatch(name: string): WatchedNamespace<T> {
    return this.#make({
      namespace: name === ALL ? undefined : name,
      firstPlace: this.#made++ * (MAX_SLOTS + 1),
      indexes: this.#indexes,
    });
  }

  /** Whether a watch is one of those that are wanted. */
  includes(watch: WatchedNamespace<T>): boolean {
    return this.#watches.get(watch.namespace ?? ALL) === watch;
  }

  /** The watch that covers a key. */
  of(key: ObjectKey): WatchedNamespace<T> | undefined {
    return this.#watches.get(ALL) ?? this.#watches.get(key.namespace ?? ALL);
  }

  get(key: ObjectKey | string): T | undefined {
    const found = toKey(key);
    return this.of(found)?.store.get(found);
  }

  has(key: ObjectKey | string): boolean {
    const found = toKey(key);
    return this.of(found)?.store.has(found) ?? false;
  }

  resourceVersion(key: ObjectKey | string): string | undefined {
    const found = toKey(key);
    return this.of(found)?.store.resourceVersion(found);
  }

  async read(key: ObjectKey | string): Promise<T | undefined> {
    const found = toKey(key);
    return await this.of(found)?.store.read(found);
  }

  async readList(namespace?: string): Promise<readonly T[]> {
    const lists = await Promise.all(
      this.all.map(({ store }) =>
        store.usage().keyOnly.objects === 0
          ? store.list({ namespace })
          : readEach(store.keys(namespace), (key) => store.read(key))
      ),
    );
    return lists.flat();
  }

  async readByIndex(index: string, value: string): Promise<readonly T[]> {
    const lists = await Promise.all(
      this.all.map(({ store }) =>
        readEach(store.keysByIndex(index, value), (key) => store.read(key))
      ),
    );
    return lists.flat();
  }

  *keys(): Generator<string, void, undefined> {
    for (const { store } of this.all) {
      for (const key of store.keys()) yield keyText(key);
    }
  }

  /** The first object at a place or behind it, its header to keep. */
  next(place: number): PlacedObject | undefined {
    let next: PlacedObject | undefined;
    for (const { firstPlace, store } of this.#watches.values()) {
      if (place > firstPlace + MAX_SLOTS) continue;
      const found = store.nextSlot(Math.max(0, place - firstPlace));
      if (found < 0 || firstPlace + found > (next?.place ?? Infinity)) continue;
      const header = store.headerAt(found).copy();
      next = { place: firstPlace + found, header };
    }
    return next;
  }

  /** The header of an object in the cache, to keep. */
  header(key: ObjectKey | string): ObjectHeader | undefined {
    const found = toKey(key);
    return this.of(found)?.store.header(found)?.copy();
  }

  /** Decodes any object of the kind as reads give it. */
  decode(header: ObjectHeader): T {
    const [watch] = this.#watches.values();
    return (watch as WatchedNamespace<T>).store.decode(header);
  }

  list(namespace?: string): readonly T[] {
    return this.all.flatMap(({ store }) => store.list({ namespace }));
  }

  byIndex(index: string, value: string): readonly T[] {
    return this.all.flatMap(({ store }) => store.byIndex(index, value));
  }

  /** How much memory is used by what. */
  usage(): StoreUsage {
    return sumOfUsages(this.all.map(({ store }) => store.usage()));
  }

  /**
   * Adds an index over all objects, present and future.
   *
   * @throws {RangeError} If there is one of that name.
   */
  addIndex(name: string, definition: IndexDefinition<T>): void {
    if (Object.hasOwn(this.#indexes, name)) {
      throw new RangeError(
        `Cannot add an index: its name must be new: received "${name}"`,
      );
    }
    this.#indexes[name] = definition;
    for (const { store } of this.all) store.addIndex(name, definition);
  }

  /** Takes an index from every watch. */
  removeIndex(name: string): void {
    delete this.#indexes[name];
    for (const { store } of this.all) store.removeIndex(name);
  }
}

function toKey(key: ObjectKey | string): ObjectKey {
  return typeof key === "string" ? parseKey(key) : key;
}
