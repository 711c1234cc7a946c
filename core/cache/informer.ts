import { type Kind, kindText } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import { keyText, type ObjectKey, parseKey } from "../api/object_key.ts";
import { systemClock } from "../clock.ts";
import { type Logger, silentLogger } from "../logger.ts";
import { noMetrics } from "../metrics.ts";
import type {
  CacheEvent,
  CacheEventType,
  InformerHandler,
} from "./cache_event.ts";
import { CurrentEvent, type EventSource } from "./current_event.ts";
import { decodeObject } from "./decode_object.ts";
import { EventBuffer } from "./event_buffer.ts";
import type { HandlerHost } from "./handler_entry.ts";
import { HandlerSet } from "./handler_set.ts";
import { InformerMetrics } from "./informer_metrics.ts";
import type { InformerHealth, InformerOptions } from "./informer_options.ts";
import type { IndexDefinition } from "./object_store.ts";
import {
  type ReconnectSettings,
  reconnectSettings,
} from "./reconnect_settings.ts";
import type { ReflectorClient } from "./reflector.ts";
import type {
  AddHandlerOptions,
  HandlerRegistration,
  SharedInformer,
} from "./shared_informer.ts";
import type { FeedListener } from "./store_feed.ts";
import { WatchedNamespace } from "./watched_namespace.ts";

/** What an informer needs of a client; every `Client` has it. */
export type InformerClient = ReflectorClient;

/** After so many failures in a row a watch counts as broken. */
const FAILURES_OF_A_BROKEN_WATCH = 3;
/** The namespace under which the watch of all namespaces is kept. */
const ALL = "";

/**
 * Keeps a copy of the objects of one kind in step with the server and tells
 * every change.
 *
 * It lists, watches, resumes and lists again by itself, whatever happens to the
 * connection; {@linkcode Informer.health} tells how it fares. With several
 * namespaces there is one watch for each, behind one face.
 *
 * @typeParam T The type of the objects.
 */
export class Informer<T extends KubernetesObject> implements SharedInformer<T> {
  /** Which objects it holds. */
  readonly kind: Kind<T>;
  readonly #client: InformerClient;
  readonly #options: InformerOptions;
  readonly #reconnect: ReconnectSettings;
  readonly #log: Logger;
  readonly #metrics: InformerMetrics;
  readonly #handlers: HandlerSet<T>;
  readonly #source: EventSource<T>;
  readonly #host: HandlerHost<T>;
  readonly #indexes: Record<string, IndexDefinition<T>> = {};
  readonly #loops: Set<EventBuffer<T>> = new Set();
  readonly #counts: Record<CacheEventType, number> = {
    added: 0,
    updated: 0,
    deleted: 0,
  };
  /** By namespace. */
  #watches: ReadonlyMap<string, WatchedNamespace<T>>;
  #state: "new" | "started" | "stopped" = "new";
  #sync: PromiseWithResolvers<void> = pendingSync();
  #stopping: Promise<void> | undefined;

  /**
   * Makes an informer; nothing is sent before {@linkcode Informer.start}.
   *
   * @param client The cluster.
   * @param kind Which objects.
   * @param options Which of them, and how it connects.
   * @throws {RangeError} If a number is out of range, or no namespace is given.
   * @throws {SyntaxError} If a selector or a path to prune is malformed.
   */
  constructor(
    client: InformerClient,
    kind: Kind<T>,
    options: InformerOptions = {},
  ) {
    const { clock = systemClock, metrics = noMetrics } = options;
    this.#client = client;
    this.kind = kind;
    this.#options = options;
    this.#reconnect = reconnectSettings(options.reconnect);
    this.#log = options.logger ?? silentLogger;
    this.#metrics = new InformerMetrics(metrics, kindText(kind));
    this.#handlers = new HandlerSet(clock);
    this.#source = {
      current: (key) => this.get(key),
      decode: (header) => decodeObject(header, kind),
    };
    this.#host = this.#makeHost();
    this.#watches = this.#makeWatches(options.namespaces, new Map());
  }

  /** How many objects the cache holds. */
  get size(): number {
    let size = 0;
    for (const { store } of this.#watches.values()) size += store.size;
    return size;
  }

  get hasSynced(): boolean {
    return [...this.#watches.values()].every(({ hasSynced }) => hasSynced);
  }

  get synced(): Promise<void> {
    return this.#sync.promise;
  }

  /**
   * Begins to list and watch. Returns at once; await `synced`. Safe to repeat.
   *
   * @throws {Error} If it was stopped.
   */
  start(): this {
    if (this.#state === "stopped") {
      throw new Error(
        `Cannot start an informer: it was stopped; make a new one: received one of ${
          kindText(this.kind)
        }`,
      );
    }
    this.#state = "started";
    for (const watch of this.#watches.values()) watch.start();
    return this;
  }

  /**
   * Ends everything: when the promise resolves there is no request, timer or
   * socket left, and from the call on there is no event. Reads go on to give the
   * last state. Safe to repeat, and in any state.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.#state = "stopped";
    this.#handlers.clear();
    for (const loop of this.#loops) loop.return();
    this.#sync.reject(
      new Error(
        `Cannot sync ${kindText(this.kind)}: the informer was stopped`,
      ),
    );
    await Promise.all([...this.#watches.values()].map((watch) => watch.stop()));
    this.#metrics.objects(-this.size);
  }

  /**
   * Watches other namespaces from now on. Objects of those left behind leave the
   * cache without events; those of new ones come as `initial`.
   *
   * @param namespaces All namespaces when undefined.
   * @returns A promise that resolves when the new ones have synced.
   */
  async changeNamespaces(
    namespaces: readonly string[] | undefined,
  ): Promise<void> {
    const before = this.#watches;
    this.#watches = this.#makeWatches(namespaces, before);
    const left = [...before].filter(([name]) => !this.#watches.has(name));
    if (this.#state === "started") {
      if (!this.hasSynced) this.#sync = pendingSync();
      this.start();
    }
    await Promise.all(left.map(async ([, watch]) => {
      await watch.stop();
      this.#metrics.objects(-watch.store.size);
      watch.store.close();
    }));
    this.#settle();
    if (this.#state === "started") await this.synced;
  }

  get(key: ObjectKey | string): T | undefined {
    const found = toKey(key);
    return this.#watchOf(found)?.store.get(found);
  }

  has(key: ObjectKey | string): boolean {
    const found = toKey(key);
    return this.#watchOf(found)?.store.has(found) ?? false;
  }

  *keys(): Generator<string, void, undefined> {
    for (const { store } of this.#watches.values()) {
      for (const key of store.keys()) yield keyText(key);
    }
  }

  list(namespace?: string): readonly T[] {
    const watches = [...this.#watches.values()];
    return watches.flatMap(({ store }) => store.list({ namespace }));
  }

  byIndex(index: string, value: string): readonly T[] {
    const watches = [...this.#watches.values()];
    return watches.flatMap(({ store }) => store.byIndex(index, value));
  }

  addIndex(name: string, definition: IndexDefinition<T>): void {
    if (Object.hasOwn(this.#indexes, name)) {
      throw new RangeError(
        `Cannot add an index: its name must be new: received "${name}"`,
      );
    }
    this.#indexes[name] = definition;
    for (const { store } of this.#watches.values()) {
      store.addIndex(name, definition);
    }
  }

  /** Takes an index away; nothing happens if there is none. */
  removeIndex(name: string): void {
    delete this.#indexes[name];
    for (const { store } of this.#watches.values()) store.removeIndex(name);
  }

  /**
   * Adds a handler.
   *
   * @throws {Error} If the informer was stopped.
   */
  addHandler(
    handler: InformerHandler<T>,
    options: AddHandlerOptions = {},
  ): HandlerRegistration<T> {
    if (this.#state === "stopped") {
      throw new Error(
        `Cannot add a handler: the informer was stopped: received "${
          options.name ?? "handler"
        }"`,
      );
    }
    return this.#handlers.add(handler, {
      name: options.name ?? "handler",
      host: this.#host,
      unseen: this.keys(),
    });
  }

  events(
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): AsyncIterableIterator<CacheEvent<T>> {
    const { signal } = options;
    const onAbort = () => void loop.return();
    const loop: EventBuffer<T> = new EventBuffer(this.#source, () => {
      signal?.removeEventListener("abort", onAbort);
      this.#loops.delete(loop);
      registration?.remove();
    });
    const registration = this.#state === "stopped" || signal?.aborted
      ? undefined
      : this.addHandler((event) => loop.push(event), { name: "events" });
    if (registration === undefined) void loop.return();
    else {
      this.#loops.add(loop);
      signal?.addEventListener("abort", onAbort, { once: true });
    }
    return loop;
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<CacheEvent<T>> {
    return this.events();
  }

  health(): InformerHealth {
    const watches = [...this.#watches.values()].map((watch) => watch.health());
    return {
      kind: kindText(this.kind),
      healthy: this.#state === "started" &&
        watches.every(({ state, consecutiveFailures }) =>
          state === "watching" ||
          consecutiveFailures < FAILURES_OF_A_BROKEN_WATCH
        ),
      synced: this.hasSynced,
      watches,
    };
  }

  #watchOf(key: ObjectKey): WatchedNamespace<T> | undefined {
    return this.#watches.get(ALL) ?? this.#watches.get(key.namespace ?? ALL);
  }

  /** The watches of these namespaces; those that exist are kept. */
  #makeWatches(
    namespaces: readonly string[] | undefined,
    existing: ReadonlyMap<string, WatchedNamespace<T>>,
  ): ReadonlyMap<string, WatchedNamespace<T>> {
    if (namespaces?.length === 0 || namespaces?.includes("")) {
      throw new RangeError(
        `Cannot watch ${
          kindText(this.kind)
        }: "namespaces" must name at least one, or be absent for all: received ${
          JSON.stringify(namespaces)
        }`,
      );
    }
    return new Map(
      [...new Set(namespaces ?? [ALL])].map((name) => [
        name,
        existing.get(name) ?? this.#makeWatch(name),
      ]),
    );
  }

  #makeWatch(name: string): WatchedNamespace<T> {
    const { clock = systemClock, random = Math.random } = this.#options;
    return new WatchedNamespace({
      client: this.#client,
      kind: this.kind,
      namespace: name === ALL ? undefined : name,
      options: this.#options,
      reconnect: this.#reconnect,
      indexes: this.#indexes,
      source: this.#source,
      listener: this.#listenTo(name),
      clock,
      random,
      log: this.#log,
      metrics: this.#metrics,
    });
  }

  #listenTo(namespace: string): FeedListener<T> {
    const covers = (key: string) =>
      namespace === ALL || key.startsWith(`${namespace}/`);
    // A watch that was left behind may still be in the middle of a chunk.
    const isLive = () =>
      this.#state === "started" && this.#watches.has(namespace);
    return {
      changed: (event) => {
        this.#counts[event.type]++;
        if (isLive()) this.#handlers.changed(event);
      },
      known: (event) => this.#handlers.known(event),
      progressed: (version) => this.#handlers.progressed(version, covers),
      completed: () => this.#settle(),
      rested: () => this.#countEvents(),
    };
  }

  #settle(): void {
    if (this.#state !== "started" || !this.hasSynced) return;
    this.#sync.resolve();
    this.#handlers.settle();
  }

  #countEvents(): void {
    const { added, updated, deleted } = this.#counts;
    if (added + updated + deleted === 0) return;
    for (const type of ["added", "updated", "deleted"] as const) {
      if (this.#counts[type] > 0) {
        this.#metrics.events(type, this.#counts[type]);
      }
      this.#counts[type] = 0;
    }
    this.#metrics.objects(added - deleted);
  }

  #makeHost(): HandlerHost<T> {
    return {
      event: (facts) => new CurrentEvent(this.#source, facts),
      header: (text) => {
        const key = parseKey(text);
        return this.#watchOf(key)?.store.header(key)?.copy();
      },
      generation: (text) => {
        const key = parseKey(text);
        return this.#watchOf(key)?.store.generation(key);
      },
      store: (object, writer) => {
        const { name, namespace } = object.metadata;
        const outcome = this.#watchOf({ name, namespace })?.ownWrite(object);
        if (outcome?.event !== undefined) {
          this.#counts[outcome.event.type]++;
          this.#countEvents();
          this.#handlers.changed(
            new CurrentEvent(this.#source, outcome.event),
            writer,
          );
        }
        return outcome;
      },
      remove: (entry) => this.#handlers.delete(entry),
      onError: (entry, error) => {
        this.#metrics.handlerError(entry.name);
        this.#log.error("An event handler failed", {
          kind: kindText(this.kind),
          handler: entry.name,
          error,
        });
      },
    };
  }
}

function toKey(key: ObjectKey | string): ObjectKey {
  return typeof key === "string" ? parseKey(key) : key;
}

function pendingSync(): PromiseWithResolvers<void> {
  const sync = Promise.withResolvers<void>();
  // Nobody has to wait for it.
  sync.promise.catch(() => {});
  return sync;
}
