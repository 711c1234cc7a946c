import { fieldSelectorText } from "../../api/field_selector.ts";
import { type Kind, kindText } from "../../api/kind.ts";
import { labelSelectorText } from "../../api/label_selector.ts";
import type { KubernetesObject } from "../../api/object.ts";
import {
  checkOptions,
  checkParts,
  type OptionRules,
} from "../../api/options.ts";
import { Informer, type InformerClient } from "./informer.ts";
import { type InformerLease, PooledInformer } from "./informer_lease.ts";
import {
  checkSharedParts,
  CLIENT_PARTS,
  SELECTION_RULES,
  SHARED_RULES,
} from "./informer_check.ts";
import type { InformerOptions, InformerSelection } from "./informer_options.ts";
import type { MemoryBudget } from "../store/memory_budget.ts";
import { RelistQueue } from "../watch/relist_queue.ts";
import { type StoreUsage, sumOfUsages } from "../store/store_usage.ts";

/** What all informers of an {@linkcode InformerPool} have in common. */
export type InformerPoolOptions = Omit<
  InformerOptions,
  keyof InformerSelection
>;

/** Which informer is asked of an {@linkcode InformerPool}. */
export interface AcquireOptions extends InformerSelection {
  /**
   * The cluster.
   *
   * @default {the pool's client}
   */
  readonly client?: InformerClient | undefined;
  /**
   * Whether others who watch the same may share the informer.
   *
   * @default {true, unless it is bounded}
   */
  readonly shared?: boolean | undefined;
}

const ACQUIRE_RULES: OptionRules<AcquireOptions> = {
  ...SELECTION_RULES,
  client: "object?",
  shared: "boolean?",
};

/** An informer and who uses it. */
interface PoolEntry {
  /** Of the objects of some kind; whoever has the identity knows which. */
  readonly informer: Informer<KubernetesObject>;
  leases: number;
}

/**
 * Shares informers among all who watch the same: the same client, kind,
 * namespaces, selectors and form of the objects. They are counted: the first
 * lease starts an informer, the last one stops it. Not all relist at once.
 *
 * @example Two users of one watch
 * ```ts
 * import { ApiServer } from "@coracle/operator/apiserver";
 * import { InformerPool } from "@coracle/operator/core";
 * import { ConfigMap } from "@coracle/operator/kinds";
 *
 * const server = await ApiServer.start({ port: false });
 * const pool = new InformerPool(server.client);
 * const first = pool.acquire(ConfigMap);
 * const second = pool.acquire(ConfigMap);
 * if (pool.size !== 1) throw new Error("Unexpected number of informers");
 * second.addIndex("app", { byLabel: "app" });
 * await second.synced;
 * if (second.byIndex("app", "web").length > 0) throw new Error("Unexpected");
 * await Promise.all([first.release(), second.release()]);
 * await server.stop();
 * ```
 */
export class InformerPool {
  readonly #client: InformerClient;
  readonly #options: InformerPoolOptions;
  readonly #entries: Map<string, PoolEntry> = new Map();
  readonly #clients: WeakMap<InformerClient, number> = new WeakMap();
  /** Informers that are on their way down. */
  readonly #stopping: Set<Promise<void>> = new Set();
  #lastClient = 0;
  #lastLease = 0;
  #stopped = false;

  /**
   * Makes an empty pool.
   *
   * @param client The cluster that is meant when a lease names none.
   * @param options What all informers have in common.
   * @throws {TypeError | RangeError} If the client is none, or an option is
   * unknown or makes no sense.
   */
  constructor(client: InformerClient, options: InformerPoolOptions = {}) {
    checkParts(client, CLIENT_PARTS, "a pool of informers, client");
    checkOptions(options, SHARED_RULES, "a pool of informers");
    checkSharedParts(options, "a pool of informers");
    this.#client = client;
    this.#options = { relists: new RelistQueue(), ...options };
  }

  /** The bytes that the caches share; undefined if there is no limit. */
  get budget(): MemoryBudget | undefined {
    return this.#options.budget;
  }

  /** How many informers run. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * A lease on a running informer, new or shared.
   *
   * @throws {Error} If the pool was stopped.
   * @throws {TypeError} If an option is unknown or of another type.
   */
  acquire<T extends KubernetesObject>(
    kind: Kind<T>,
    options: AcquireOptions = {},
  ): InformerLease<T> {
    if (this.#stopped) {
      throw new Error(
        `Cannot acquire an informer: the pool was stopped: received ${
          kindText(kind)
        }`,
      );
    }
    checkOptions(options, ACQUIRE_RULES, "a lease of an informer");
    const {
      client = this.#client,
      // Who came late could index nothing of what was given up.
      shared: shares = options.bounded !== true,
      ...selection
    } = options;
    const lease = ++this.#lastLease;
    const named = this.#identify(client, kind, selection);
    const identity = shares ? named : `${named} of lease ${lease}`;
    let entry = this.#entries.get(identity);
    if (entry === undefined) {
      entry = {
        informer: new Informer<KubernetesObject>(client, kind, {
          ...this.#options,
          ...selection,
        }).start(),
        leases: 0,
      };
      this.#entries.set(identity, entry);
    }
    const shared = entry;
    shared.leases++;
    return new PooledInformer<T>(shared.informer as unknown as Informer<T>, {
      id: lease,
      onRelease: () => this.#release(identity, shared),
    });
  }

  /** How much memory the caches use, by kind. */
  usage(): ReadonlyMap<string, StoreUsage> {
    const byKind = Map.groupBy(
      this.#entries.values(),
      ({ informer }) => kindText(informer.kind),
    );
    return new Map(
      Array.from(byKind, ([kind, entries]) => [
        kind,
        sumOfUsages(entries.map(({ informer }) => informer.usage())),
      ]),
    );
  }

  /** Stops every informer, whoever still has a lease. Safe to repeat. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const { informer } of this.#entries.values()) this.#end(informer);
    this.#entries.clear();
    await Promise.all(this.#stopping);
  }

  async #release(identity: string, entry: PoolEntry): Promise<void> {
    entry.leases--;
    if (entry.leases > 0) return;
    // Another informer of this identity may have been started since a stop.
    if (this.#entries.get(identity) === entry) this.#entries.delete(identity);
    await this.#end(entry.informer);
  }

  #end(informer: Informer<KubernetesObject>): Promise<void> {
    const stopping = informer.stop();
    this.#stopping.add(stopping);
    void stopping.finally(() => this.#stopping.delete(stopping));
    return stopping;
  }

  #identify(
    client: InformerClient,
    kind: Kind,
    selection: InformerSelection,
  ): string {
    const { namespaces, labelSelector, fieldSelector, prune } = selection;
    let id = this.#clients.get(client);
    if (id === undefined) this.#clients.set(client, id = ++this.#lastClient);
    return JSON.stringify([
      id,
      kindText(kind),
      namespaces === undefined ? null : [...new Set(namespaces)].sort(),
      labelSelector === undefined ? "" : labelSelectorText(labelSelector),
      fieldSelector === undefined ? "" : fieldSelectorText(fieldSelector),
      selection.shardSelector ?? "",
      selection.metadataOnly === true,
      [...prune ?? []].sort(),
    ]);
  }
}
