import type { KubernetesObject } from "../../api/object.ts";
import { type ObjectKey, parseKey } from "../../api/object_key.ts";
import { compareResourceVersions } from "../../api/resource_version.ts";
import { SlotMap } from "../../slot_map.ts";
import { CurrentEvent, missingEvent } from "./cache_event.ts";
import type { NamespaceInformer } from "./namespace_informer.ts";
import { eachOf } from "./own_write_window.ts";
import type { HandlerRegistration, OwnWrite } from "./shared_informer.ts";
import type { EventHandler, Subscription } from "./subscriptions.ts";

export interface MultiNamespaceRegistrationDeps<T extends KubernetesObject> {
  /** Name of the handler, for logs and metrics. */
  readonly name: string;
  readonly informer: { readonly hasSynced: boolean };
  /** Callback for the removal of the handler. */
  readonly onRemove: (registration: MultiNamespaceRegistration<T>) => void;
}

/** Own write under way, in every namespace informer that covers its object. */
interface OpenWrite<T extends KubernetesObject> {
  readonly key: ObjectKey;
  readonly parts: OwnWrite<T>[];
}

/**
 * Handler of a multi-namespace informer: one subscription in each namespace. Own
 * writes under way are carried over to namespaces that are attached later.
 */
export class MultiNamespaceRegistration<T extends KubernetesObject>
  implements HandlerRegistration<T> {
  readonly #handler: EventHandler<T>;
  readonly #deps: MultiNamespaceRegistrationDeps<T>;
  readonly #parts: Map<NamespaceInformer<T>, Subscription<T>> = new Map();
  readonly #writes: SlotMap<number, OpenWrite<T>> = new SlotMap();
  /** Number of writes that have begun. */
  #begun = 0;
  readonly #sync: PromiseWithResolvers<void> = Promise.withResolvers();
  #hasSynced = false;

  constructor(
    handler: EventHandler<T>,
    deps: MultiNamespaceRegistrationDeps<T>,
  ) {
    this.#handler = handler;
    this.#deps = deps;
    this.#sync.promise.catch(() => {}); // it may not be awaited
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  get synced(): Promise<void> {
    return this.#sync.promise;
  }

  /** Whether every change since the snapshots was delivered; false without any. */
  get isResumed(): boolean {
    const parts = [...this.#parts.values()];
    return parts.length > 0 && parts.every(({ isResumed }) => isResumed);
  }

  /**
   * Subscribes to a namespace.
   *
   * @param former Informers that the new one replaces: cached objects that they
   * have delivered in the same or a later state are not delivered again.
   * @returns A promise that is fulfilled when the cached objects were delivered.
   */
  attach(
    informer: NamespaceInformer<T>,
    former: readonly NamespaceInformer<T>[],
  ): Promise<void> {
    const handler: EventHandler<T> = former.length === 0
      ? this.#handler
      : (event) =>
        event.initial ? this.#takeOver(event, former) : this.#handler(event);
    const part = informer.subscribe(handler, this.#deps.name);
    this.#parts.set(informer, part);
    for (const { key, parts } of this.#writes.values()) {
      if (informer.covers(key)) parts.push(part.beginWrite(key));
    }
    part.synced.then(() => this.settle(), () => {});
    return part.synced;
  }

  /** Delivers a cached object as a change since the last delivered state. */
  #takeOver(
    event: CurrentEvent<T>,
    former: readonly NamespaceInformer<T>[],
  ): unknown {
    const { key, header } = event;
    for (const informer of former) {
      const { store } = informer;
      const previous = store.header(parseKey(key))?.copy();
      if (previous === undefined) continue;
      const part = this.#parts.get(informer);
      // An event that is held back is dropped with its subscription.
      const held = part?.held(key);
      if (held?.type === "added") break;
      if (
        part !== undefined && held === undefined &&
        compareResourceVersions(
            previous.resourceVersion,
            header.resourceVersion,
          ) >= 0
      ) return undefined;
      if (previous.uid === header.uid) {
        const before = held === undefined ? previous : held.previous;
        const facts = { header, previous: before, initial: true, relist: true };
        const type = "updated";
        return this.#handler(new CurrentEvent(store, { type, ...facts }));
      }
      this.#handler(missingEvent(store, previous));
    }
    return this.#handler(event);
  }

  /** Ends the subscription to a namespace. */
  detach(informer: NamespaceInformer<T>): void {
    this.#parts.get(informer)?.remove();
    this.#parts.delete(informer);
  }

  /** Delivers an event of the informer of one namespace to the handler. */
  deliver(event: CurrentEvent<T>, informer: NamespaceInformer<T>): void {
    this.#parts.get(informer)?.changed(event);
  }

  /** Fulfills `synced` if the cache is complete and its objects were delivered. */
  settle(): void {
    if (this.#hasSynced || !this.#deps.informer.hasSynced) return;
    for (const { hasSynced } of this.#parts.values()) if (!hasSynced) return;
    this.#hasSynced = true;
    this.#sync.resolve();
  }

  beginWrite(key: ObjectKey | string): OwnWrite<T> {
    const found = typeof key === "string" ? parseKey(key) : key;
    const write: OpenWrite<T> = { key: found, parts: [] };
    for (const [informer, part] of this.#parts) {
      if (informer.covers(found)) write.parts.push(part.beginWrite(key));
    }
    const number = ++this.#begun;
    this.#writes.set(number, write);
    const end = (act: (part: OwnWrite<T>) => void) => {
      if (this.#writes.delete(number)) eachOf(write.parts, act);
    };
    return {
      succeed: (object, result) => end((part) => part.succeed(object, result)),
      fail: () => end((part) => part.fail()),
    };
  }

  remove(): void {
    for (const part of this.#parts.values()) part.remove();
    this.#parts.clear();
    this.#sync.reject(new Error("Cannot sync: the handler was removed"));
    this.#deps.onRemove(this);
  }
}
