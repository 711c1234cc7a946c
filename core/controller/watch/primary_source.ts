import type { Kind, ResolvedKind } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import type { ObjectKey } from "../../api/object_key.ts";
import {
  type CacheEvent,
  CurrentEvent,
} from "../../cache/informer/cache_event.ts";
import type {
  InformerLease,
  InformerPool,
} from "../../cache/informer/informer_pool.ts";
import type { MultiNamespaceInformer } from "../../cache/informer/multi_namespace_informer.ts";
import type {
  HandlerRegistration,
  InformerHealth,
  OwnWrite,
} from "../../cache/informer/shared_informer.ts";
import type { IndexDefinition } from "../../cache/store/object_indexes.ts";
import type { InformerSelection } from "../../cache/watch/watch_requests.ts";
import type { NamespaceSet, PrimaryCache } from "../event_source.ts";
import type { TriggerHandler } from "./source_group.ts";

export interface PrimarySourceDeps<P extends KubernetesObject> {
  /** Name of the controller, for logs and metrics of the informers. */
  readonly name: string;
  readonly kind: ResolvedKind<P>;
  /** Kind as the user states it; without plural its watch follows discovery. */
  readonly statedKind: Kind<P>;
  readonly informers: Pick<InformerPool, "acquire">;
  readonly selection: Omit<InformerSelection, "namespaces">;
  readonly indexes: Readonly<Record<string, IndexDefinition<P>>>;
}

/** Handler of the changes of the primaries. */
export interface PrimaryHandler<P extends KubernetesObject> {
  /**
   * Handles a change of a primary; called in the order of the watch events.
   *
   * @param place Place of the primary in the cache; -1 if it is not known.
   */
  onPrimary(event: CacheEvent<P>, place: number): void;
  /** Handles a primary whose namespace is no longer watched. */
  onPrimaryLeft(key: string, place: number): void;
  /** Handles a primary that another watch covers, with its new place or -1. */
  onPrimaryMoved(from: number, to: number): void;
}

/** Cache of the primaries of a controller, with their places and namespaces. */
export interface PrimaryStore<P extends KubernetesObject>
  extends
    PrimaryCache<P>,
    Pick<
      MultiNamespaceInformer<P>,
      | "attach"
      | "getAt"
      | "keep"
      | "keyAt"
      | "namespaces"
      | "open"
      | "placeOf"
      | "size"
    >,
    Partial<
      Pick<
        MultiNamespaceInformer<P>,
        "bodyOf" | "notePending" | "resourceVersion"
      >
    > {}

/** Primaries of a controller. */
export interface Primaries<P extends KubernetesObject> {
  /** Cache of the primaries. */
  readonly cache: PrimaryStore<P>;
  /** Sets the handler of the changes, before any namespace is watched. */
  handle(handler: PrimaryHandler<P> & TriggerHandler): void;
  /** Health of the informer; empty while it watches nothing. */
  health(): readonly InformerHealth[];
  /** Converts namespaces for the informer, where undefined means all. */
  namespacesOf(namespaces: NamespaceSet): readonly string[] | undefined;
  /** Begins an own write of a primary. */
  beginWrite(key: ObjectKey | string): OwnWrite<P>;
  /** Stops the informer, unless it is shared. */
  release(): Promise<void>;
}

/**
 * Source of the primaries of a controller: leases their informer, which watches
 * nothing at first, and registers their handler, which own writes do not call.
 */
export class PrimarySource<P extends KubernetesObject> implements Primaries<P> {
  readonly cache: MultiNamespaceInformer<P>;
  readonly #deps: PrimarySourceDeps<P>;
  readonly #lease: InformerLease<P>;
  #registration: HandlerRegistration<P> | undefined;

  constructor(deps: PrimarySourceDeps<P>) {
    const { informers, statedKind, selection, indexes } = deps;
    this.#deps = deps;
    this.#lease = informers.acquire(statedKind, {
      ...selection,
      namespaces: [],
    });
    this.cache = this.#lease.informer;
    for (const [index, definition] of Object.entries(indexes)) {
      this.cache.addIndex(index, definition);
    }
  }

  handle(handler: PrimaryHandler<P>): void {
    this.#registration = this.cache.addHandler(
      (event) =>
        handler.onPrimary(
          event,
          event instanceof CurrentEvent ? event.place : -1,
        ),
      { name: this.#deps.name },
    );
  }

  health(): readonly InformerHealth[] {
    const health = this.cache.health();
    return health.watches.length === 0 ? [] : [health];
  }

  namespacesOf(namespaces: NamespaceSet): readonly string[] | undefined {
    return namespaces === "all" || this.#deps.kind.scope === "Cluster"
      ? undefined
      : namespaces;
  }

  beginWrite(key: ObjectKey | string): OwnWrite<P> {
    return this.#registration?.beginWrite(key) ?? NO_OWN_WRITE;
  }

  release(): Promise<void> {
    return this.#lease.release();
  }
}

/** Placeholder for an own write of an object that no cache contains. */
export const NO_OWN_WRITE: OwnWrite<never> = { succeed() {}, fail() {} };
