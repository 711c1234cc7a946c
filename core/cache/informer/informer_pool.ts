import { fieldSelectorText } from "../../api/field_selector.ts";
import { checkKind, type Kind, kindText } from "../../api/kind.ts";
import { labelSelectorText } from "../../api/label_selector.ts";
import type { KubernetesObject } from "../../api/object.ts";
import {
  checkOptions,
  checkParts,
  type OptionRules,
} from "../../api/options.ts";
import { ConcurrencyLimit } from "../../pace.ts";
import type { MemoryBudget } from "../store/memory_budget.ts";
import { type StoreUsage, sumOfUsages } from "../store/store_usage.ts";
import type {
  InformerClient,
  InformerSelection,
} from "../watch/watch_requests.ts";
import {
  CLIENT_PARTS,
  type InformerPoolOptions,
  SELECTION_RULES,
  SHARED_RULES,
} from "./informer_options.ts";
import {
  MultiNamespaceInformer,
  type NamespaceLease,
} from "./multi_namespace_informer.ts";
import { NamespaceInformer } from "./namespace_informer.ts";
import type { SyncProgress } from "./shared_informer.ts";

/**
 * Bytes of states that are read at the same time. Without a limit, the start of
 * hundreds of kinds, or the return of a server, would need memory for all of them
 * together.
 */
const READ_BYTES = 32 << 20;

export type AcquireOptions = NonNullable<
  Parameters<InformerPool["acquire"]>[1]
>;

/**
 * Lease of a shared informer. Handlers, loops and indexes that are added to its
 * informer belong to the lease: other leases do not see them, and they are
 * removed with it.
 *
 * @typeParam T The type of the objects.
 */
export interface InformerLease<T extends KubernetesObject = KubernetesObject> {
  /** Informer of the lease, already started. */
  readonly informer: MultiNamespaceInformer<T>;
  /**
   * Releases the lease: its handlers are not called again. A watch is stopped with
   * its last lease; the promise resolves when that is done. Safe to repeat.
   */
  release(): Promise<void>;
}

const ACQUIRE_RULES: OptionRules<AcquireOptions> = {
  ...SELECTION_RULES,
  client: "object?",
  shared: "boolean?",
};

/** Shared informer with the number of its leases. */
interface PoolEntry {
  /** Informer; the key of the entry determines the type of its objects. */
  readonly informer: NamespaceInformer<KubernetesObject>;
  /** Number of leases that were not closed, whose reads need the store. */
  leases: number;
  /** Number of leases that were not stopped, which need the watch. */
  watching: number;
}

/**
 * Pool of shared informers: users of the same client, kind, namespace, selectors
 * and form of the objects share one watch and one cache. The first lease starts
 * an informer, the last one stops it. Relists are staggered.
 *
 * @example Two users of one watch
 * ```ts
 * import { ApiServer } from "@coracle/dev/apiserver";
 * import { InformerPool } from "@coracle/operator/core";
 * import { ConfigMap } from "@coracle/operator/kinds";
 *
 * const server = await ApiServer.start({ port: false });
 * const pool = new InformerPool(server.client);
 * const first = pool.acquire(ConfigMap);
 * const second = pool.acquire(ConfigMap);
 * second.informer.addIndex("app", { byLabel: "app" });
 * await second.informer.synced;
 * if (second.informer.byIndex("app", "web").length > 0) throw new Error("Unexpected");
 * await Promise.all([first.release(), second.release()]);
 * await server.stop();
 * ```
 */
export class InformerPool {
  readonly #client: InformerClient;
  readonly #options: InformerPoolOptions;
  readonly #entries: Map<string, PoolEntry> = new Map();
  /** Informers of the leases that were not released. */
  readonly #leased: Set<{ stop(): Promise<void> }> = new Set();
  readonly #clients: WeakMap<InformerClient, number> = new WeakMap();
  /** Numbers of objects on the server, by kind and namespace. */
  readonly #expected: Map<string, number> = new Map();
  /** Pending stops of informers. */
  readonly #stopping: Set<Promise<void>> = new Set();
  #lastClient = 0;
  #lastLease = 0;
  #stopped = false;

  /**
   * Creates an empty pool.
   *
   * @param client Client of leases without a client of their own.
   * @param options Options of all informers.
   * @throws {TypeError | RangeError} If the client or an option is invalid.
   */
  constructor(client: InformerClient, options: InformerPoolOptions = {}) {
    checkParts(client, CLIENT_PARTS, "a pool of informers, client");
    checkOptions(options, SHARED_RULES, "a pool of informers");
    this.#client = client;
    const starts = new ConcurrencyLimit(READ_BYTES);
    const relists = new ConcurrencyLimit(READ_BYTES);
    this.#options = { starts, relists, ...options };
  }

  /** Memory budget that the caches share; undefined if there is no limit. */
  get budget(): MemoryBudget | undefined {
    return this.#options.budget;
  }

  /** Number of running informers; each namespace of a lease has one. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * Leases a running informer, new or shared.
   *
   * @param kind Kind of the objects.
   * @param options Selection of the objects. `namespaces` may be empty: the
   * informer then watches nothing until namespaces are opened.
   * @throws {Error} If the pool was stopped.
   * @throws {TypeError} If an option is unknown or of another type.
   */
  acquire<T extends KubernetesObject>(
    kind: Kind<T>,
    options: InformerSelection & {
      /** Client of the cluster. Defaults to that of the pool. */
      readonly client?: InformerClient | undefined;
      /**
       * Whether the informer is shared with other leases of the same selection.
       * Defaults to `true`, unless the cache is bounded.
       */
      readonly shared?: boolean | undefined;
    } = {},
  ): InformerLease<T> {
    if (this.#stopped) {
      throw new Error(
        `Cannot acquire an informer of ${kindText(kind)}: the pool was stopped`,
      );
    }
    checkKind(kind, "a lease of an informer");
    checkOptions(options, ACQUIRE_RULES, "a lease of an informer");
    const {
      client = this.#client,
      // A late lease could not index evicted objects.
      shared = options.bounded !== true,
      namespaces,
      ...selection
    } = options;
    const lease = ++this.#lastLease;
    const identity = this.#identify(client, kind, selection) +
      (shared ? "" : ` of lease ${lease}`);
    const informer = new MultiNamespaceInformer<T>({
      kind,
      indexPrefix: `${lease}/`,
      open: (namespace) =>
        this.#open(
          `${identity} ${namespace ?? ""}`,
          () =>
            new NamespaceInformer(client, kind, {
              ...this.#options,
              ...selection,
              // The snapshots are of one cluster.
              ...(client !== this.#client && { snapshots: undefined }),
            }, namespace),
        ),
    }, namespaces).start();
    this.#leased.add(informer);
    const release = () => {
      this.#leased.delete(informer);
      return informer.close();
    };
    return { informer, release };
  }

  /** Notes how many objects the server has, for estimates while they are read. */
  expect(kind: Kind, namespace: string | undefined, objects: number): void {
    this.#expected.set(`${kindText(kind)} ${namespace ?? ""}`, objects);
  }

  /** Caches that are not complete, with what has arrived of them. */
  syncing(): readonly SyncProgress[] {
    const progress: SyncProgress[] = [];
    for (const { informer } of this.#entries.values()) {
      if (informer.hasSynced) continue;
      const { kind, namespace } = informer;
      const place = `${kindText(kind)} ${namespace ?? ""}`;
      progress.push(informer.progress(this.#expected.get(place)));
    }
    return progress;
  }

  /**
   * Time since data last arrived, in milliseconds, by kind: that of the watch which has
   * been silent for longest.
   */
  staleness(): ReadonlyMap<string, number> {
    const byKind = new Map<string, number>();
    for (const { informer } of this.#entries.values()) {
      const kind = kindText(informer.kind);
      byKind.set(kind, Math.max(byKind.get(kind) ?? 0, informer.staleness));
    }
    return byKind;
  }

  /** Memory that the caches use, by kind. */
  usage(): ReadonlyMap<string, StoreUsage> {
    const byKind = Map.groupBy(
      this.#entries.values(),
      ({ informer }) => kindText(informer.kind),
    );
    return new Map(
      Array.from(byKind, ([kind, entries]) => [
        kind,
        sumOfUsages(entries.map(({ informer }) => informer.store.usage())),
      ]),
    );
  }

  /**
   * Stops all informers, those of leases as well: their loops end, and who waits for
   * a sync gets an error. Safe to repeat.
   */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(Array.from(this.#leased, (informer) => informer.stop()));
    await Promise.all(this.#stopping);
    await this.#options.snapshots?.close();
  }

  #open<T extends KubernetesObject>(
    identity: string,
    create: () => NamespaceInformer<T>,
  ): NamespaceLease<T> {
    let entry = this.#entries.get(identity);
    if (entry === undefined) {
      const created = create() as unknown;
      entry = {
        informer: created as NamespaceInformer<KubernetesObject>,
        leases: 0,
        watching: 0,
      };
      this.#entries.set(identity, entry);
    }
    const shared = entry;
    shared.leases++;
    shared.watching++;
    let stopped: Promise<void> | undefined;
    let closed: Promise<void> | undefined;
    const endWatch = async () => {
      if (--shared.watching > 0) return;
      this.#entries.delete(identity);
      await this.#end(shared.informer.stop());
    };
    const stop = () => stopped ??= endWatch();
    const endLease = async () => {
      const ended = stop();
      if (--shared.leases === 0) await this.#end(shared.informer.close());
      await ended;
    };
    const close = () => closed ??= endLease();
    const informer = shared.informer as unknown as NamespaceInformer<T>;
    return { informer, stop, close };
  }

  #end(stopping: Promise<void>): Promise<void> {
    this.#stopping.add(stopping);
    void stopping.finally(() => this.#stopping.delete(stopping));
    return stopping;
  }

  #identify(
    client: InformerClient,
    kind: Kind,
    selection: InformerSelection,
  ): string {
    let id = this.#clients.get(client);
    if (id === undefined) this.#clients.set(client, id = ++this.#lastClient);
    return `${id} ${kindText(kind)} ${selectionText(selection)}`;
  }
}

/** Text of what leases of one informer have in common, besides kind and client. */
export function selectionText(
  { labelSelector, fieldSelector, prune, ...selection }: Omit<
    InformerSelection,
    "namespaces"
  >,
): string {
  return JSON.stringify([
    labelSelector === undefined ? "" : labelSelectorText(labelSelector),
    fieldSelector === undefined ? "" : fieldSelectorText(fieldSelector),
    selection.shardSelector ?? "",
    selection.metadataOnly === true,
    selection.bounded === true,
    [...prune ?? []].sort(),
  ]);
}
