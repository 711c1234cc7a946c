import type { ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import { keyText, type ObjectKey } from "../api/object_key.ts";
import { compareResourceVersions } from "../api/resource_version.ts";
import type { CacheEvent } from "../cache/informer/cache_event.ts";
import type {
  InformerHealth,
  InformerSelection,
} from "../cache/informer/informer_options.ts";
import type { IndexDefinition } from "../cache/store/object_store.ts";
import type { InformerLease } from "../cache/informer/informer_lease.ts";
import type { InformerPool } from "../cache/informer/informer_pool.ts";
import type {
  HandlerRegistration,
  OwnWrite,
} from "../cache/informer/shared_informer.ts";
import type { NamespaceSet, PrimaryCache } from "./event_source.ts";

/** What a {@linkcode PrimarySource} works with. */
export interface PrimarySourceOptions<P extends KubernetesObject> {
  /** Shown by logs and metrics of the informers. */
  readonly name: string;
  readonly kind: ResolvedKind<P>;
  readonly informers: Pick<InformerPool, "acquire">;
  readonly selection: Omit<InformerSelection, "namespaces">;
  readonly indexes: Readonly<Record<string, IndexDefinition<P>>>;
}

/** Receiver of the changes of the primaries. */
export interface PrimaryHandler<P extends KubernetesObject> {
  /** Handles a change, in the order of the watch. */
  onPrimary(event: CacheEvent<P>): void;
  /** Handles a primary whose namespace is no longer watched. */
  onPrimaryLeft(key: string): void;
  /**
   * Handles a primary that was deleted while one watch replaced another.
   *
   * @param last Its last known state; undefined if the cache is bounded.
   */
  onPrimaryVanished(key: string, last: P | undefined): void;
}

/** The watch of one namespace, or of all. */
interface Watch<P extends KubernetesObject> {
  readonly lease: InformerLease<P>;
  /** The handler, once its events are wanted. */
  registration: HandlerRegistration<P> | undefined;
}

/** Stands for all namespaces in the table of watches. */
const ALL = "";

/** A watch as it is called here: a namespace, or the empty text for all. */
export type WatchName = string;

/**
 * The primaries of a controller: one shared informer for each namespace, or one
 * for all. Each is opened first, which fills its cache, and attached when
 * everything that a run may need is there, too: then its events come, what is
 * there first.
 *
 * @typeParam P The type of the primaries.
 */
export class PrimarySource<P extends KubernetesObject>
  implements PrimaryCache<P> {
  readonly #options: PrimarySourceOptions<P>;
  readonly #watches: Map<string, Watch<P>> = new Map();

  /** @param options What it works with. */
  constructor(options: PrimarySourceOptions<P>) {
    this.#options = options;
  }

  /** How many primaries there are. */
  get size(): number {
    let size = 0;
    for (const { lease } of this.#watches.values()) size += lease.size;
    return size;
  }

  /** The health of each watch. */
  health(): readonly InformerHealth[] {
    return [...this.#watches.values()].map(({ lease }) => lease.health());
  }

  /** The watches that namespaces need. */
  namesOf(namespaces: NamespaceSet): readonly WatchName[] {
    return namespaces === "all" || this.#options.kind.scope === "Cluster"
      ? [ALL]
      : namespaces;
  }

  /** The namespaces whose events come. */
  get attached(): NamespaceSet {
    const names = [...this.#watches]
      .filter(([, { registration }]) => registration !== undefined)
      .map(([name]) => name);
    return names.includes(ALL) ? "all" : names;
  }

  /**
   * Begins to watch, unless it does already.
   *
   * @returns Fulfilled when the cache is complete; rejected when it is closed
   * before.
   */
  open(name: WatchName): Promise<void> {
    let watch = this.#watches.get(name);
    if (watch === undefined) {
      const { informers, kind, selection, indexes } = this.#options;
      const lease = informers.acquire(kind, {
        ...selection,
        namespaces: name === ALL ? undefined : [name],
      });
      for (const [index, definition] of Object.entries(indexes)) {
        lease.addIndex(index, definition);
      }
      watch = { lease, registration: undefined };
      this.#watches.set(name, watch);
    }
    return watch.lease.synced;
  }

  /**
   * Lets the events of an open watch come: first what is there and was not known
   * before, then every change.
   *
   * @returns Fulfilled when what is there has been told.
   */
  async attach(name: WatchName, handler: PrimaryHandler<P>): Promise<void> {
    const watch = this.#watches.get(name);
    if (watch === undefined || watch.registration !== undefined) return;
    let older = [...this.#watches.values()].filter(({ registration }) =>
      registration !== undefined
    );
    // An older watch may be behind, and is closed before it tells the rest. And
    // what comes after this moment, a run may have missed in this cache.
    const newest = older.length > 0 ? newestOf(watch.lease) : "";
    const isKnown = ({ key, header: { resourceVersion } }: CacheEvent<P>) =>
      compareResourceVersions(resourceVersion, newest) <= 0 &&
      older.some(({ lease }) =>
        compareResourceVersions(
          lease.resourceVersion(key) ?? "",
          resourceVersion,
        ) >= 0
      );
    const onEvent = (event: CacheEvent<P>) => {
      if (!event.initial || !isKnown(event)) handler.onPrimary(event);
    };
    watch.registration = watch.lease.addHandler(onEvent, {
      name: this.#options.name,
    });
    await watch.registration.synced;
    older = [];
  }

  /** Closes all watches but these; tells of each primary that none has then. */
  async keep(
    names: readonly WatchName[],
    handler: PrimaryHandler<P>,
  ): Promise<void> {
    const left = [...this.#watches].filter(([name]) => !names.includes(name));
    for (const [name, { registration }] of left) {
      registration?.remove();
      this.#watches.delete(name);
    }
    const { selection } = this.#options;
    for (const [, { lease }] of left) {
      for (const key of lease.keys()) {
        if (this.has(key)) continue;
        if (this.#watchOf(key) === undefined) handler.onPrimaryLeft(key);
        else {
          const last = selection.bounded ? undefined : lease.get(key);
          handler.onPrimaryVanished(key, last);
        }
      }
    }
    await Promise.all(left.map(([, { lease }]) => lease.release()));
  }

  get(key: ObjectKey | string): P | undefined {
    const text = typeof key === "string" ? key : keyText(key);
    return this.#watchOf(text)?.lease.get(text);
  }

  has(key: ObjectKey | string): boolean {
    const text = typeof key === "string" ? key : keyText(key);
    return this.#watchOf(text)?.lease.has(text) ?? false;
  }

  async read(key: ObjectKey | string): Promise<P | undefined> {
    const text = typeof key === "string" ? key : keyText(key);
    return await this.#watchOf(text)?.lease.read(text);
  }

  async readList(namespace?: string): Promise<readonly P[]> {
    const lists = await Promise.all(
      this.#leasesOf(namespace).map((lease) => lease.readList(namespace)),
    );
    return lists.flat();
  }

  *keys(): Iterable<string> {
    for (const { lease } of this.#watches.values()) yield* lease.keys();
  }

  list(namespace?: string): readonly P[] {
    const lists = this.#leasesOf(namespace)
      .map((lease) => lease.list(namespace));
    return lists.length === 1 ? lists[0] as readonly P[] : lists.flat();
  }

  byIndex(index: string, value: string): readonly P[] {
    if (!Object.hasOwn(this.#options.indexes, index)) {
      throw new RangeError(
        `Cannot read by an index: the controller must have it among its options: received "${index}"`,
      );
    }
    return [...this.#watches.values()].flatMap(({ lease }) => [
      ...lease.byIndex(index, value),
    ]);
  }

  /** Tells the cache that a primary is about to be written. */
  beginWrite(key: ObjectKey): OwnWrite<P> {
    return this.#watchOf(keyText(key))?.registration?.beginWrite(key) ??
      NO_OWN_WRITE;
  }

  /** The leases that have objects of a namespace, or all. */
  #leasesOf(namespace: string | undefined): InformerLease<P>[] {
    return [...this.#watches]
      .filter(([name]) => name === ALL || (namespace ?? name) === name)
      .map(([, { lease }]) => lease);
  }

  /**
   * Whose cache a primary is read from. While one watch takes the place of
   * another, it is that of the newer state: what has been told must be seen.
   */
  #watchOf(key: string): Watch<P> | undefined {
    const all = this.#watches.get(ALL);
    if (all !== undefined && this.#watches.size === 1) return all;
    const slash = key.indexOf("/");
    const own = slash < 0 ? all : this.#watches.get(key.slice(0, slash)) ?? all;
    if (all === undefined || own === all) return own;
    if (all.registration === undefined) return own;
    const version = (watch: Watch<P> | undefined) =>
      watch?.lease.resourceVersion(key) ?? "";
    return compareResourceVersions(version(all), version(own)) < 0 ? own : all;
  }
}

/** The newest version in a cache; later changes have later ones. */
export function newestOf(
  cache: Pick<InformerLease, "keys" | "resourceVersion">,
): string {
  let newest = "";
  for (const key of cache.keys()) {
    const version = cache.resourceVersion(key) ?? "";
    if (compareResourceVersions(version, newest) > 0) newest = version;
  }
  return newest;
}

/** Stands for a write to an object that no cache has. */
export const NO_OWN_WRITE: OwnWrite<never> = {
  succeed() {},
  fail() {},
};
