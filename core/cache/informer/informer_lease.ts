import type { KubernetesObject } from "../../api/object.ts";
import type { ObjectKey } from "../../api/object_key.ts";
import type { CacheEvent, InformerHandler } from "./cache_event.ts";
import type { Informer } from "./informer.ts";
import type { InformerHealth } from "./informer_options.ts";
import type { IndexDefinition } from "../store/object_store.ts";
import type {
  AddHandlerOptions,
  HandlerRegistration,
  SharedInformer,
} from "./shared_informer.ts";
import type { StoreUsage } from "../store/store_usage.ts";
import { type LinkedSignal, linkedSignal } from "../../signals.ts";

/**
 * The right to use a shared informer. Handlers, loops and indexes made through
 * a lease belong to it: other leases do not see them, and they end with it.
 *
 * @typeParam T The type of the objects.
 */
export interface InformerLease<T extends KubernetesObject = KubernetesObject>
  extends SharedInformer<T> {
  /** The version of an object, which is not decoded; undefined if there is none. */
  resourceVersion(key: ObjectKey | string): string | undefined;
  /**
   * Gives the lease back; its handlers are not called again. The informer stops
   * with the last lease; the promise resolves when that is done. Safe to repeat.
   */
  release(): Promise<void>;
}

/** A lease as the pool hands it out. */
export class PooledInformer<T extends KubernetesObject>
  implements InformerLease<T> {
  readonly #informer: Informer<T>;
  /** Keeps the names of this lease's indexes apart from those of others. */
  readonly #prefix: string;
  readonly #onRelease: () => Promise<void>;
  readonly #ended: AbortController = new AbortController();
  readonly #registrations: HandlerRegistration<T>[] = [];
  /** Signals of the loops of {@linkcode PooledInformer.events}. */
  readonly #links: LinkedSignal[] = [];
  readonly #indexes: Set<string> = new Set();
  #released: Promise<void> | undefined;

  constructor(
    informer: Informer<T>,
    parts: { readonly id: number; readonly onRelease: () => Promise<void> },
  ) {
    this.#informer = informer;
    this.#prefix = `${parts.id}/`;
    this.#onRelease = parts.onRelease;
  }

  get size(): number {
    return this.#informer.size;
  }

  get hasSynced(): boolean {
    return this.#informer.hasSynced;
  }

  get synced(): Promise<void> {
    return this.#informer.synced;
  }

  get(key: ObjectKey | string): T | undefined {
    return this.#informer.get(key);
  }

  has(key: ObjectKey | string): boolean {
    return this.#informer.has(key);
  }

  resourceVersion(key: ObjectKey | string): string | undefined {
    return this.#informer.resourceVersion(key);
  }

  keys(): Iterable<string> {
    return this.#informer.keys();
  }

  list(namespace?: string): readonly T[] {
    return this.#informer.list(namespace);
  }

  byIndex(index: string, value: string): readonly T[] {
    this.#checkIndex(index);
    return this.#informer.byIndex(this.#prefix + index, value);
  }

  read(key: ObjectKey | string): Promise<T | undefined> {
    return this.#informer.read(key);
  }

  readList(namespace?: string): Promise<readonly T[]> {
    return this.#informer.readList(namespace);
  }

  async readByIndex(index: string, value: string): Promise<readonly T[]> {
    this.#checkIndex(index);
    return await this.#informer.readByIndex(this.#prefix + index, value);
  }

  addIndex(name: string, definition: IndexDefinition<T>): void {
    this.#checkHeld();
    this.#informer.addIndex(this.#prefix + name, definition);
    this.#indexes.add(name);
  }

  addHandler(
    handler: InformerHandler<T>,
    options?: AddHandlerOptions,
  ): HandlerRegistration<T> {
    this.#checkHeld();
    const registration = this.#informer.addHandler(handler, options);
    this.#registrations.push(registration);
    return registration;
  }

  events(
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): AsyncIterableIterator<CacheEvent<T>> {
    const link = linkedSignal(this.#ended.signal, options.signal);
    this.#links.push(link);
    return this.#informer.events({ signal: link.signal });
  }

  health(): InformerHealth {
    return this.#informer.health();
  }

  usage(): StoreUsage {
    return this.#informer.usage();
  }

  release(): Promise<void> {
    this.#released ??= this.#release();
    return this.#released;
  }

  async #release(): Promise<void> {
    this.#ended.abort();
    for (const link of this.#links) link.unlink();
    for (const registration of this.#registrations) registration.remove();
    for (const name of this.#indexes) {
      this.#informer.removeIndex(this.#prefix + name);
    }
    await this.#onRelease();
  }

  #checkIndex(name: string): void {
    if (this.#indexes.has(name)) return;
    throw new RangeError(
      `Cannot read an index: it must be added first: received "${name}"`,
    );
  }

  #checkHeld(): void {
    if (this.#released === undefined) return;
    throw new Error(
      "Cannot use a lease of an informer: it was released: received a call",
    );
  }
}
