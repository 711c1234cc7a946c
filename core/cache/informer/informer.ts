import { type Kind, kindText } from "../../api/kind.ts";
import { checkInformer } from "./informer_check.ts";
import type { InformerHealth, InformerOptions } from "./informer_options.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { type ObjectKey, parseKey } from "../../api/object_key.ts";
import { systemClock } from "../../clock.ts";
import { type Logger, silentLogger, unfailingLogger } from "../../logger.ts";
import { noMetrics, unfailingMetrics } from "../../metrics.ts";
import type { CacheEvent, InformerHandler } from "./cache_event.ts";
import type { EventSource } from "./current_event.ts";
import { EventLoops } from "./event_loops.ts";
import type { HandlerHost } from "./handler_entry.ts";
import { handlerHost } from "./handler_host.ts";
import { HandlerSet } from "./handler_set.ts";
import { InformerMetrics } from "./informer_metrics.ts";
import type { IndexDefinition } from "../store/object_store.ts";
import { reconnectSettings } from "../watch/reconnect_settings.ts";
import type { ReflectorClient } from "../watch/reflector_parts.ts";
import type {
  AddHandlerOptions,
  HandlerRegistration,
  SharedInformer,
} from "./shared_informer.ts";
import type { FeedListener } from "./store_feed.ts";
import type { StoreUsage } from "../store/store_usage.ts";
import { WatchedNamespace } from "./watched_namespace.ts";
import { type MakeWatch, WatchedNamespaces } from "./watched_namespaces.ts";

/** What an informer needs of a client; every `Client` has it. */
export type InformerClient = ReflectorClient;

/** After so many failures in a row a watch counts as broken. */
const MANY_FAILURES = 3;

/**
 * Keeps a copy of the objects of one kind in step with the server and tells
 * every change.
 *
 * It lists, watches, resumes and lists again by itself, whatever happens to the
 * connection; {@linkcode Informer.health} tells how it fares. With several
 * namespaces there is one watch for each, behind one face.
 *
 * Promises
 * - Once synced, the cache shows the state of the server at some moment, and
 *   from then on moves forward only, unless the server itself lost its data.
 * - Every change is told, at least by the state that it led to; see
 *   {@linkcode CacheEvent}.
 * - No failure ends it: it is counted, shown in health, and tried again later.
 *
 * @typeParam T The type of the objects.
 *
 * @example Follow the ConfigMaps of a namespace
 * ```ts
 * import { ApiServer } from "@coracle/operator/apiserver";
 * import { Informer } from "@coracle/operator/core";
 * import { ConfigMap } from "@coracle/operator/kinds";
 *
 * const server = await ApiServer.start({ port: false });
 * const informer = new Informer(server.client, ConfigMap, {
 *   namespaces: ["default"],
 * });
 * await informer.start().synced;
 * const metadata = { namespace: "default", name: "web" };
 * await server.client.create(ConfigMap, { metadata, data: { color: "blue" } });
 * for await (const { type, object } of informer) {
 *   if (type === "added" && object.data?.["color"] === "blue") break;
 * }
 * if (!informer.has("default/web")) throw new Error("Unexpected cache");
 * await informer.stop();
 * await server.stop();
 * ```
 */
export class Informer<T extends KubernetesObject> implements SharedInformer<T> {
  /** Which objects it holds. */
  readonly kind: Kind<T>;
  readonly #log: Logger;
  readonly #metrics: InformerMetrics;
  readonly #handlers: HandlerSet<T>;
  readonly #source: EventSource<T>;
  readonly #host: HandlerHost<T>;
  readonly #watches: WatchedNamespaces<T>;
  readonly #loops: EventLoops<T>;
  #state: "new" | "started" | "stopped" = "new";
  #sync: PromiseWithResolvers<void> = pendingSync();
  /** Whether that promise is fulfilled: nobody waits for another then. */
  #isSyncTold = false;
  #stopping: Promise<void> | undefined;

  /**
   * Makes an informer; nothing is sent before {@linkcode Informer.start}.
   *
   * @param client The cluster.
   * @param kind Which objects.
   * @param options Which of them, and how it connects.
   * @throws {TypeError | RangeError} If an option is unknown or makes no sense.
   * @throws {SyntaxError} If a selector or a path to prune is malformed.
   */
  constructor(
    client: InformerClient,
    kind: Kind<T>,
    options: InformerOptions = {},
  ) {
    checkInformer(client, kind, options);
    options = withDefaults(options, client.defaults);
    const { clock = systemClock, logger = silentLogger } = options;
    this.kind = kind;
    this.#log = unfailingLogger(logger);
    this.#metrics = new InformerMetrics(
      unfailingMetrics(options.metrics ?? noMetrics),
      kindText(kind),
    );
    this.#handlers = new HandlerSet(clock);
    this.#source = {
      current: (header) => this.#watches.of(header)?.store.find(header),
      decode: (header) => this.#watches.decode(header),
    };
    this.#loops = new EventLoops(this.#source);
    this.#watches = new WatchedNamespaces(
      kind,
      this.#watchMaker(client, options),
    );
    this.#watches.select(options.namespaces);
    this.#host = handlerHost({
      kind,
      metadataOnly: options.metadataOnly ?? false,
      watches: this.#watches,
      handlers: this.#handlers,
      source: this.#source,
      metrics: this.#metrics,
      log: this.#log,
    });
  }

  /** How many objects the cache holds. */
  get size(): number {
    return this.#watches.size;
  }

  /** Whether the cache is complete. */
  get hasSynced(): boolean {
    return this.#watches.hasSynced;
  }

  /** Fulfilled when the cache is complete. */
  get synced(): Promise<void> {
    return this.#sync.promise;
  }

  /**
   * Begins to list and watch. Returns at once; await `synced`. Safe to repeat.
   *
   * @throws {Error} If it was stopped.
   */
  start(): this {
    this.#checkNotStopped("start it");
    this.#state = "started";
    for (const watch of this.#watches.all) watch.start();
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
    this.#loops.end();
    this.#sync.reject(
      new Error(`Cannot sync ${kindText(this.kind)}: the informer was stopped`),
    );
    await Promise.all(this.#watches.all.map((watch) => watch.stop()));
    this.#metrics.flush();
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
    const left = this.#watches.select(namespaces);
    // Before anything is told by the watches that take over.
    this.#handlers.leave((key) => left.some((watch) => watch.covers(key)));
    if (this.#state === "started") {
      if (this.#isSyncTold && !this.hasSynced) {
        this.#sync = pendingSync();
        this.#isSyncTold = false;
      }
      this.start();
      this.#settle();
    }
    await Promise.all(left.map(async (watch) => {
      await watch.stop();
      this.#metrics.flush();
      this.#metrics.objects(-watch.store.size);
      watch.store.close();
    }));
    if (this.#state === "started") await this.synced;
  }

  /**
   * One object, frozen; undefined if there is none.
   *
   * @throws {Error} If a bounded cache keeps only its key: `read` fetches it.
   */
  get(key: ObjectKey | string): T | undefined {
    return this.#watches.get(key);
  }

  /** Whether there is an object of that key. */
  has(key: ObjectKey | string): boolean {
    return this.#watches.has(key);
  }

  /** The version of an object, which is not decoded; undefined if there is none. */
  resourceVersion(key: ObjectKey | string): string | undefined {
    return this.#watches.resourceVersion(key);
  }

  /** The keys of all objects, as `namespace/name` or `name`. */
  keys(): Iterable<string> {
    return this.#watches.keys();
  }

  /** All objects, or those of one namespace, frozen. */
  list(namespace?: string): readonly T[] {
    return this.#watches.list(namespace);
  }

  /** The objects for which an index gave this value, frozen. */
  byIndex(index: string, value: string): readonly T[] {
    return this.#watches.byIndex(index, value);
  }

  /**
   * One object, frozen, fetched where a bounded cache keeps only its key.
   *
   * @throws {Error} If it cannot be fetched.
   */
  read(key: ObjectKey | string): Promise<T | undefined> {
    return this.#watches.read(key);
  }

  /** All objects, or those of one namespace; else as `read`. */
  readList(namespace?: string): Promise<readonly T[]> {
    return this.#watches.readList(namespace);
  }

  /** As `byIndex`, with objects as `read` gives them. */
  readByIndex(index: string, value: string): Promise<readonly T[]> {
    return this.#watches.readByIndex(index, value);
  }

  /**
   * Adds an index over all objects, present and future.
   *
   * @throws {RangeError} If there is one of that name.
   */
  addIndex(name: string, definition: IndexDefinition<T>): void {
    this.#watches.addIndex(name, definition);
  }

  /** Takes an index away; nothing happens if there is none. */
  removeIndex(name: string): void {
    this.#watches.removeIndex(name);
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
    this.#checkNotStopped("add a handler");
    return this.#handlers.add(handler, {
      name: options.name ?? "handler",
      host: this.#host,
    });
  }

  /** Events as a loop takes them, merged while they wait. */
  events(
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): AsyncIterableIterator<CacheEvent<T>> {
    return this.#loops.begin(
      (handler) =>
        this.#state === "stopped"
          ? undefined
          : this.addHandler(handler, { name: "events" }),
      options.signal,
    );
  }

  /** All events, as {@linkcode Informer.events} gives them. */
  [Symbol.asyncIterator](): AsyncIterableIterator<CacheEvent<T>> {
    return this.events();
  }

  /** Whether and how it works. */
  health(): InformerHealth {
    const watches = this.#watches.all.map((watch) => watch.health());
    return {
      kind: kindText(this.kind),
      healthy: this.#state === "started" &&
        watches.every(({ state, consecutiveFailures }) =>
          state === "watching" || consecutiveFailures < MANY_FAILURES
        ),
      synced: this.hasSynced,
      watches,
    };
  }

  /** How much memory the cache uses, by tier. */
  usage(): StoreUsage {
    return this.#watches.usage();
  }

  #watchMaker(client: InformerClient, options: InformerOptions): MakeWatch<T> {
    const { clock = systemClock, random = Math.random } = options;
    const reconnect = reconnectSettings(options.reconnect);
    return (start) => {
      const watch: WatchedNamespace<T> = new WatchedNamespace({
        ...start,
        client,
        kind: this.kind,
        options,
        reconnect,
        source: this.#source,
        listener: this.#listenTo(() => watch),
        clock,
        random,
        log: this.#log,
        metrics: this.#metrics,
      });
      return watch;
    };
  }

  #listenTo(watch: () => WatchedNamespace<T>): FeedListener<T> {
    // A watch that was left behind may still be in the middle of a chunk.
    const isLive = () =>
      this.#state === "started" && this.#watches.includes(watch());
    const handlers = this.#handlers;
    const covers = (key: string) => this.#watches.of(parseKey(key)) === watch();
    return {
      get isIdle() {
        return handlers.isEmpty;
      },
      changed: (event) => {
        this.#metrics.change(event.type);
        if (isLive()) handlers.changed(event);
      },
      known: (event) => isLive() && handlers.known(event),
      progressed: (version) => handlers.progressed(version, covers),
      restarted: () => handlers.restarted(covers),
      completed: () => this.#settle(),
      rested: () => this.#metrics.flush(),
    };
  }

  #settle(): void {
    if (this.#state !== "started" || !this.hasSynced) return;
    this.#sync.resolve();
    this.#isSyncTold = true;
    this.#handlers.settle();
  }

  #checkNotStopped(action: string): void {
    if (this.#state !== "stopped") return;
    throw new Error(
      `Cannot ${action}: the informer was stopped, make a new one: received one of ${
        kindText(this.kind)
      }`,
    );
  }
}

/** Fills in clock, logger, metrics and random of the client. */
function withDefaults(
  options: InformerOptions,
  defaults: InformerClient["defaults"] = {},
): InformerOptions {
  const { clock, logger, metrics, random } = defaults;
  return {
    ...options,
    clock: options.clock ?? clock,
    logger: options.logger ?? logger,
    metrics: options.metrics ?? metrics,
    random: options.random ?? random,
  };
}

function pendingSync(): PromiseWithResolvers<void> {
  const sync = Promise.withResolvers<void>();
  // Nobody has to wait for it.
  sync.promise.catch(() => {});
  return sync;
}
