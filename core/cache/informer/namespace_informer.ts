import { ApiError } from "../../api/api_error.ts";
import { isResolved, type Kind, kindText } from "../../api/kind.ts";
import { labelRequirements } from "../../api/label_selector.ts";
import type { KubernetesObject } from "../../api/object.ts";
import type { ObjectKey } from "../../api/object_key.ts";
import { resolveOptions } from "../../api/options.ts";
import { parseShardSelector } from "../../api/shard_selector.ts";
import { readBody } from "../../client/response.ts";
import { guardedRandom } from "../../callback.ts";
import { type Clock, systemClock } from "../../clock.ts";
import { silentLogger, unfailingLogger } from "../../logger.ts";
import { noMetrics, unfailingMetrics } from "../../metrics.ts";
import { wholeRange } from "../../json/byte_range.ts";
import { EventScanner } from "../../json/event_scanner.ts";
import type { ObjectHeader } from "../../json/object_header.ts";
import { type FetchObject, ObjectStore } from "../store/object_store.ts";
import type { WatchSnapshot } from "../snapshot/watch_snapshot.ts";
import { MetadataReducer } from "../watch/metadata_reducer.ts";
import { MAX_LISTED_BYTES, TimeSlice } from "../watch/receive.ts";
import { RECONNECT_OPTIONS } from "../watch/reconnect.ts";
import { Reflector } from "../watch/reflector.ts";
import { ConnectionFault } from "../watch/watch_failure.ts";
import { InformerMetrics, type WatchHealth } from "../watch/watch_record.ts";
import { type InformerClient, objectRequest } from "../watch/watch_requests.ts";
import type { PooledInformerOptions } from "./informer_options.ts";
import type { SyncProgress } from "./shared_informer.ts";
import { StoreWriter } from "./store_writer.ts";
import {
  type EventHandler,
  Subscription,
  Subscriptions,
} from "./subscriptions.ts";
import { errorMessage } from "../../error_text.ts";

/**
 * Informer of one kind, in one namespace or all, with one selection: a reflector
 * that writes into a store, which delivers every change to subscriptions
 * (client-go's `sharedIndexInformer`).
 */
export class NamespaceInformer<T extends KubernetesObject> {
  readonly kind: Kind<T>;
  /** Namespace of the objects; undefined for all namespaces. */
  readonly namespace: string | undefined;
  /** Objects of the informer; written by the informer only. */
  readonly store: ObjectStore<T>;
  /** Snapshot of the store in a file; undefined if it has none. */
  readonly snapshot: WatchSnapshot | undefined;
  readonly #subscriptions: Subscriptions<T>;
  readonly #writer: StoreWriter<T>;
  readonly #reflector: Reflector;
  readonly #metrics: InformerMetrics;
  readonly #onError: (handler: string, error: unknown) => void;
  readonly #onSlow: (handler: string, calls: number, time: number) => void;
  readonly #slice: TimeSlice;
  readonly #clock: Clock;
  /** Time of the start on the clock. */
  #started = NaN;
  /** Signal that ends fetches of single objects. */
  readonly #stopped: AbortController = new AbortController();
  #stopping: Promise<void> | undefined;

  /**
   * Creates an informer; nothing is sent before {@linkcode start}.
   *
   * @param options Checked options; `namespaces` is ignored.
   */
  constructor(
    client: InformerClient,
    kind: Kind<T>,
    options: PooledInformerOptions,
    namespace: string | undefined,
  ) {
    const { defaults = {} } = client;
    const {
      clock = defaults.clock ?? systemClock,
      random = defaults.random ?? Math.random,
      logger = defaults.logger ?? silentLogger,
      metrics: registry = defaults.metrics ?? noMetrics,
      metadataOnly = false,
      labelSelector,
      shardSelector,
    } = options;
    const log = unfailingLogger(logger);
    const metrics = new InformerMetrics(
      unfailingMetrics(registry),
      kindText(kind),
    );
    const { signal } = this.#stopped;
    this.kind = kind;
    this.namespace = namespace;
    this.#metrics = metrics;
    this.#onError = (handler, error) => {
      metrics.handlerError(handler);
      log.error("An event handler failed", {
        kind: kindText(kind),
        handler,
        error,
      });
    };
    this.#onSlow = (handler, calls, time) =>
      log.warn("A handler or mapper is slow: nothing else runs while it does", {
        kind: kindText(kind),
        handler,
        calls,
        mean: Math.round(time / calls * 10) / 10,
        total: Math.round(time),
      });
    this.#clock = clock;
    this.store = new ObjectStore({
      kind,
      prune: options.prune,
      budget: options.budget,
      fetch: options.bounded
        ? bodyFetch(client, { kind, metadataOnly }, signal)
        : undefined,
      onIndexError: (index, error) =>
        log.error("An index function failed", { index, error }),
    });
    const { store } = this;
    const snapshot = this.snapshot = options.snapshots?.of({
      ...{ kind, namespace, selection: options },
      store: store as unknown as ObjectStore<KubernetesObject>,
      version: () => this.#writer.wholeVersion,
      onDamaged: (error) => this.#reflector.relist(unreadable(error)),
    });
    store.follower = snapshot;
    const slice = this.#slice = new TimeSlice(clock);
    this.#subscriptions = new Subscriptions(clock);
    this.#writer = new StoreWriter({
      kind,
      store: this.store,
      subscriptions: this.#subscriptions,
      slice,
      metrics,
      snapshot,
      metadataOnly,
      labels: labelSelector === undefined
        ? []
        : labelRequirements(labelSelector),
      selectsFields: options.fieldSelector !== undefined,
      shard: shardSelector === undefined
        ? undefined
        : parseShardSelector(shardSelector),
    });
    this.#reflector = new Reflector({
      ...options,
      client,
      kind,
      namespace,
      metadataOnly,
      sink: this.#writer,
      storedBytes: () => this.store.usage().total,
      restore: snapshot &&
        ((target, receiving) => snapshot.restore(target, receiving)),
      slice,
      reconnect: resolveOptions(options.reconnect ?? {}, RECONNECT_OPTIONS),
      clock,
      random: guardedRandom(
        random,
        (error) =>
          log.error("Math.random is used instead of the option random", {
            error,
          }),
      ),
      metrics,
      log: log.with({ kind: kindText(kind), namespace }),
    });
  }

  /** Whether the store has been complete once. */
  get hasSynced(): boolean {
    return this.#writer.hasSynced;
  }

  /**
   * Promise that is fulfilled when the store is complete, and rejected if the
   * informer is stopped before.
   */
  get synced(): Promise<void> {
    return this.#writer.synced;
  }

  /** Promise that is fulfilled when the first state was read, or its read failed. */
  get attempted(): Promise<void> {
    return this.#reflector.attempted;
  }

  /** Starts to list and watch; safe to repeat. */
  start(): void {
    if (Number.isNaN(this.#started)) this.#started = this.#clock.now();
    this.#reflector.start();
  }

  /**
   * Stops the watch: no event is delivered after the call, and no request, timer
   * or socket is left when the promise resolves. The store keeps the last state.
   * Safe to repeat.
   */
  stop(): Promise<void> {
    return this.#stopping ??= this.#stop();
  }

  async #stop(): Promise<void> {
    this.#subscriptions.clear();
    this.#stopped.abort(
      new Error("Cannot fetch an object: the informer was stopped"),
    );
    this.#writer.stop(
      new Error(`Cannot sync ${kindText(this.kind)}: the informer was stopped`),
    );
    await this.#reflector.stop();
    await this.snapshot?.close();
    this.#metrics.flush();
    this.#metrics.objects(-this.store.size);
  }

  /** Stops the watch and frees the memory of the store. */
  async close(): Promise<void> {
    await this.stop();
    this.store.close();
  }

  covers({ namespace }: ObjectKey): boolean {
    return this.namespace === undefined || this.namespace === namespace;
  }

  /** Adds a handler, which first gets all cached objects as `added`. */
  subscribe(handler: EventHandler<T>, name: string): Subscription<T> {
    const subscription = new Subscription(handler, {
      name,
      store: this.store,
      snapshot: this.snapshot,
      writer: this.#writer,
      onRemove: (removed) => this.#subscriptions.delete(removed),
      onError: this.#onError,
      onSlow: this.#onSlow,
      slice: this.#slice,
      clock: this.#clock,
    });
    this.#subscriptions.add(subscription);
    return subscription;
  }

  /**
   * Stores a newer state of an object that another watch of the selection has
   * delivered, and delivers the change.
   *
   * @returns False if this watch has already reached that state; then nothing is
   * stored.
   */
  takeOver(header: ObjectHeader): boolean {
    return this.#writer.takeOver(header);
  }

  health(): WatchHealth {
    return this.#reflector.health();
  }

  /** Time since data last arrived, or since the start, in milliseconds. */
  get staleness(): number {
    const { lastContact } = this.#reflector.health();
    return lastContact === undefined
      ? this.#clock.now() - this.#started
      : Math.max(0, this.#clock.wallTime() - lastContact);
  }

  /**
   * What has arrived of the first state.
   *
   * @param expected Number of objects that the server has, if it is known.
   */
  progress(expected: number | undefined): SyncProgress {
    const objects = this.store.size;
    const elapsed = this.#clock.now() - this.#started;
    return {
      kind: kindText(this.kind),
      namespace: this.namespace,
      objects,
      bytes: this.store.usage().total,
      expected,
      remaining: expected === undefined || objects === 0
        ? undefined
        : Math.max(0, Math.round(elapsed * (expected - objects) / objects)),
    };
  }
}

function unreadable(cause: unknown): ConnectionFault {
  const why = errorMessage(cause);
  return new ConnectionFault(
    "unreadable",
    `Cannot read an object of a snapshot, so that all are listed again: ${why}`,
    { cause },
  );
}

/** Creates a function that fetches objects whose body a bounded cache evicted. */
function bodyFetch(
  client: InformerClient,
  target: { readonly kind: Kind; readonly metadataOnly: boolean },
  signal: AbortSignal,
): FetchObject {
  const { kind, metadataOnly } = target;
  return async (key) => {
    signal.throwIfAborted();
    const resolved = isResolved(kind) ? kind : await client.resolve(kind);
    const request = objectRequest({ kind: resolved, metadataOnly }, key);
    try {
      const response = await client.request({ ...request, signal });
      const bytes = await readBody(response, MAX_LISTED_BYTES);
      return metadataOnly ? metadataOf(bytes, kind) : bytes;
    } catch (error) {
      if (ApiError.is(error) && error.isNotFound) return undefined;
      throw error;
    }
  };
}

/**
 * Metadata in a response; some servers send the whole object when asked for it.
 */
function metadataOf(object: Uint8Array, kind: Kind): Uint8Array {
  const header = new EventScanner().scanObject(wholeRange(object));
  const { bytes, start, end } = new MetadataReducer(kind).reduce(header);
  return bytes.subarray(start, end);
}
