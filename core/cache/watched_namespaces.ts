import { type Kind, kindText } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import { keyText, type ObjectKey, parseKey } from "../api/object_key.ts";
import type { ObjectHeader } from "../json/object_header.ts";
import type { IndexDefinition } from "./object_store.ts";
import type { CacheReader } from "./shared_informer.ts";
import type { WatchedNamespace } from "./watched_namespace.ts";

/** Stands for the watch of all namespaces. */
const ALL = "";

/** Makes the watch of a namespace, or of all; it is not started. */
export type MakeWatch<T extends KubernetesObject> = (
  namespace: string | undefined,
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
        before.get(name) ?? this.#make(name === ALL ? undefined : name),
      ]),
    );
    return [...before.values()].filter((watch) => !this.includes(watch));
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

  *keys(): Generator<string, void, undefined> {
    for (const { store } of this.all) {
      for (const key of store.keys()) yield keyText(key);
    }
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

  /** Adds an index to every watch there is. */
  addIndex(name: string, definition: IndexDefinition<T>): void {
    for (const { store } of this.all) store.addIndex(name, definition);
  }

  /** Takes an index from every watch. */
  removeIndex(name: string): void {
    for (const { store } of this.all) store.removeIndex(name);
  }
}

function toKey(key: ObjectKey | string): ObjectKey {
  return typeof key === "string" ? parseKey(key) : key;
}
