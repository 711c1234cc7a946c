import type { Kind } from "../../api/kind.ts";
import { kindText } from "../../api/kind.ts";
import { labelRequirements, matchesLabels } from "../../api/label_selector.ts";
import type { LabelRequirement } from "../../api/label_requirement.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { parseKey } from "../../api/object_key.ts";
import {
  inShard,
  type ParsedShardSelector,
  parseShardSelector,
} from "../../api/shard_selector.ts";
import type { Clock } from "../../clock.ts";
import type { ObjectHeader } from "../../json/object_header.ts";
import type { Logger } from "../../logger.ts";
import { bodyFetch } from "../watch/body_fetch.ts";
import type { EventSource } from "./current_event.ts";
import type { InformerMetrics } from "./informer_metrics.ts";
import type { InformerOptions, WatchHealth } from "./informer_options.ts";
import { type IndexDefinition, ObjectStore } from "../store/object_store.ts";
import type { ReconnectSettings } from "../watch/reconnect_settings.ts";
import { Reflector } from "../watch/reflector.ts";
import type { ReflectorClient } from "../watch/reflector_parts.ts";
import {
  type FeedListener,
  type OwnWriteOutcome,
  StoreFeed,
} from "./store_feed.ts";
import { shardSink } from "../watch/shard_sink.ts";
import { TimeSlice } from "../watch/time_slice.ts";

/** What a {@linkcode WatchedNamespace} is made of. */
export interface WatchedNamespaceParts<T extends KubernetesObject> {
  readonly client: ReflectorClient;
  readonly kind: Kind<T>;
  /** One namespace; all when absent. */
  readonly namespace: string | undefined;
  /** Where the places of its objects begin among all of the informer. */
  readonly firstPlace: number;
  readonly options: InformerOptions;
  readonly reconnect: ReconnectSettings;
  readonly indexes: Readonly<Record<string, IndexDefinition<T>>>;
  readonly source: EventSource<T>;
  readonly listener: FeedListener<T>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: InformerMetrics;
}

/**
 * The objects of one namespace, or of all, with the watch that keeps them in
 * step.
 *
 * @typeParam T The type of the objects.
 */
export class WatchedNamespace<T extends KubernetesObject> {
  /** One namespace; all when undefined. */
  readonly namespace: string | undefined;
  /** Where the places of its objects begin among all of the informer. */
  readonly firstPlace: number;
  readonly store: ObjectStore<T>;
  readonly #feed: StoreFeed<T>;
  readonly #reflector: Reflector;
  readonly #labels: readonly LabelRequirement[];
  readonly #selectsFields: boolean;
  readonly #shard: ParsedShardSelector | undefined;
  /** Ends fetches of single objects. */
  readonly #stopped: AbortController = new AbortController();

  constructor(parts: WatchedNamespaceParts<T>) {
    const { client, kind, namespace, firstPlace, options, log } = parts;
    const { labelSelector, fieldSelector, metadataOnly = false } = options;
    const { shardSelector } = options;
    this.namespace = namespace;
    this.firstPlace = firstPlace;
    this.#labels = labelSelector === undefined
      ? []
      : labelRequirements(labelSelector);
    this.#selectsFields = fieldSelector !== undefined;
    this.#shard = shardSelector === undefined
      ? undefined
      : parseShardSelector(shardSelector);
    this.store = new ObjectStore({
      kind,
      prune: options.prune,
      budget: options.budget,
      indexes: parts.indexes,
      fetch: options.bounded
        ? bodyFetch({
          client,
          kind,
          metadataOnly,
          signal: this.#stopped.signal,
        })
        : undefined,
      onIndexError: (index, error) =>
        log.error("An index function failed", { index, error }),
    });
    const slice = new TimeSlice(parts.clock);
    this.#feed = new StoreFeed({
      store: this.store,
      source: parts.source,
      listener: parts.listener,
      firstPlace,
      slice,
      metadataOnly: metadataOnly ? kind : undefined,
    });
    this.#reflector = new Reflector({
      client,
      kind,
      namespace,
      labelSelector,
      fieldSelector,
      shardSelector,
      metadataOnly,
      sink: this.#shard === undefined
        ? this.#feed
        : shardSink(this.#feed, this.#shard),
      slice,
      budget: options.budget,
      relists: options.relists,
      reconnect: parts.reconnect,
      clock: parts.clock,
      random: parts.random,
      metrics: parts.metrics,
      log: log.with({ kind: kindText(kind), namespace }),
    });
  }

  /** Whether the objects have once been complete. */
  get hasSynced(): boolean {
    return this.#feed.hasCompleted;
  }

  /** Whether an object of that key is in its namespace. */
  covers(key: string): boolean {
    return this.namespace === undefined ||
      this.namespace === parseKey(key).namespace;
  }

  start(): void {
    this.#reflector.start();
  }

  stop(): Promise<void> {
    this.#stopped.abort(
      new Error("Cannot fetch an object: the informer was stopped"),
    );
    return this.#reflector.stop();
  }

  health(): WatchHealth {
    return this.#reflector.health();
  }

  /**
   * Brings in the answer to a write of ours.
   *
   * @returns Undefined if the object is none of those watched.
   */
  ownWrite(answer: ObjectHeader): OwnWriteOutcome | undefined {
    return matchesLabels(this.#labels, answer.labels) &&
        (this.#shard === undefined || inShard(this.#shard, answer))
      ? this.#feed.ownWrite(answer, { mayAdd: !this.#selectsFields })
      : undefined;
  }
}
