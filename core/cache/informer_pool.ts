import type { Kind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { InformerClient } from "./informer.ts";
import type { InformerOptions, InformerSelection } from "./informer_options.ts";
import type { SharedInformer } from "./shared_informer.ts";

/**
 * The right to use a shared informer. Handlers and indexes added through a lease
 * belong to it: other leases do not see them, and they go with it.
 *
 * @typeParam T The type of the objects.
 */
export interface InformerLease<T extends KubernetesObject = KubernetesObject>
  extends SharedInformer<T> {
  /**
   * Gives the lease back; its handlers are not called again. The informer stops
   * with the last lease; the promise resolves when that is done.
   */
  release(): Promise<void>;
}

/** What is asked of an {@linkcode InformerPool}. */
export interface AcquireOptions extends InformerSelection {
  /**
   * The cluster.
   *
   * @default {the pool's client}
   */
  readonly client?: InformerClient | undefined;
}

/**
 * Shares informers among all who watch the same: the same client, kind,
 * namespaces, selectors and form of the objects. They are counted; the first
 * lease starts an informer and the last one stops it.
 */
export declare class InformerPool {
  /**
   * @param client The cluster that is meant when a lease names none.
   * @param options What all informers have in common.
   */
  constructor(
    client: InformerClient,
    options?: Omit<InformerOptions, keyof InformerSelection>,
  );

  /** How many informers run. */
  get size(): number;
  /** A lease on a running informer, new or shared. */
  acquire<T extends KubernetesObject>(
    kind: Kind<T>,
    options?: AcquireOptions,
  ): InformerLease<T>;
  /** Stops every informer, whoever still has a lease. Safe to call twice. */
  stop(): Promise<void>;
}
