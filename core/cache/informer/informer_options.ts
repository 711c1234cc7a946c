import type { LabelRequirement } from "../../api/label_requirement.ts";
import type { LabelSelector } from "../../api/label_selector.ts";
import type {
  FieldRequirement,
  FieldSelector,
} from "../../api/field_selector.ts";
import type { Clock } from "../../clock.ts";
import type { Logger } from "../../logger.ts";
import type { Metrics } from "../../metrics.ts";
import type { MemoryBudget } from "../store/memory_budget.ts";
import type { RelistQueue } from "../watch/relist_queue.ts";

/** Which objects an informer holds, and in which form. */
export interface InformerSelection {
  /**
   * Only these namespaces; one watch is opened for each. Not for kinds that
   * live in no namespace.
   *
   * @default {all, by one watch}
   */
  readonly namespaces?: readonly string[] | undefined;
  /**
   * Only objects with such labels.
   *
   * @default {all}
   */
  readonly labelSelector?:
    | string
    | LabelSelector
    | readonly LabelRequirement[]
    | undefined;
  /**
   * Only objects with such fields.
   *
   * @default {all}
   */
  readonly fieldSelector?:
    | string
    | FieldSelector
    | readonly FieldRequirement[]
    | undefined;
  /**
   * Only objects of such a shard, as `shardSelector()` writes it: chosen by the
   * server where it can, and by the headers of what it sends where it cannot.
   *
   * @default {all}
   */
  readonly shardSelector?: string | undefined;
  /**
   * Whether to hold the metadata only; the server then sends no more either.
   *
   * @default {false}
   */
  readonly metadataOnly?: boolean | undefined;
  /**
   * Paths that are cut out before an object is stored, such as
   * `metadata.managedFields` or `status.conditions[*].lastProbeTime`. Reading
   * one throws an error that names it.
   *
   * `metadata.managedFields[manager!="page","book"]` cuts out all elements of a
   * list but those whose field is one of these texts; what is read then is the
   * rest, and no error. Who writes such an object does not write the list, so
   * that the server keeps the others.
   *
   * @default {[]}
   */
  readonly prune?: readonly string[] | undefined;
  /**
   * Whether the cache may keep the keys alone of objects that the budget leaves
   * no room for, not even compressed. Such an object is fetched when it is read,
   * by `read`, `readList` or `readByIndex`; the reads that do not wait throw. Keys
   * and index entries always stay, so that no event is missed; of an object that
   * was given up, the next event does not know the state before.
   *
   * @default {false}
   */
  readonly bounded?: boolean | undefined;
}

/**
 * How an informer connects and recovers. All durations are milliseconds. The life
 * of a watch, the pauses and the length of a page are those of client-go.
 */
export interface ReconnectOptions {
  /**
   * Whether the initial state is asked for as a stream (WatchList) first. Where
   * the server cannot, it is listed in pages all the same.
   *
   * @default {true}
   */
  readonly watchList?: boolean | undefined;
  /**
   * How many objects a page of a list has at most.
   *
   * @default {500}
   */
  readonly pageSize?: number | undefined;
  /**
   * The shortest life of a watch, after which the server ends it; each is given
   * a random one of up to twice as long.
   *
   * @default {300_000}
   */
  readonly minWatchTimeout?: number | undefined;
  /**
   * How long a stream may outlive its time, or stay silent where it should not,
   * before it is taken for dead.
   *
   * @default {10_000}
   */
  readonly grace?: number | undefined;
  /**
   * How long the server may take to begin an answer.
   *
   * @default {75_000}
   */
  readonly responseTimeout?: number | undefined;
  /**
   * The first pause after a failure; it doubles, with jitter.
   *
   * @default {800}
   */
  readonly initialDelay?: number | undefined;
  /**
   * The longest pause after a failure.
   *
   * @default {30_000}
   */
  readonly maxDelay?: number | undefined;
  /**
   * After how long without a failure the pauses begin small again.
   *
   * @default {120_000}
   */
  readonly resetAfter?: number | undefined;
}

/** Options of an {@linkcode Informer}. */
export interface InformerOptions extends InformerSelection {
  /** How it connects and recovers. */
  readonly reconnect?: ReconnectOptions | undefined;
  /**
   * The bytes that its cache shares with other caches.
   *
   * @default {no limit}
   */
  readonly budget?: MemoryBudget | undefined;
  /**
   * Lets only some of those who share it read their whole state anew at a time.
   *
   * @default {all may}
   */
  readonly relists?: RelistQueue | undefined;
  /**
   * Where it writes what failed and how it healed.
   *
   * @default {nowhere}
   */
  readonly logger?: Logger | undefined;
  /**
   * Where events, relists and errors are counted.
   *
   * @default {nowhere}
   */
  readonly metrics?: Metrics | undefined;
  /**
   * Where time comes from.
   *
   * @default {the machine's clock}
   */
  readonly clock?: Clock | undefined;
  /**
   * Gives a number from 0 to below 1, for jitter.
   *
   * @default {Math.random}
   */
  readonly random?: (() => number) | undefined;
}

/**
 * What an informer's connection is doing.
 *
 * - `"stopped"`: not started, or stopped.
 * - `"connecting"`: asking for a list or a watch.
 * - `"syncing"`: the state arrives.
 * - `"watching"`: changes arrive.
 * - `"waiting"`: something failed; it is tried again after a pause.
 */
export type WatchState =
  | "stopped"
  | "connecting"
  | "syncing"
  | "watching"
  | "waiting";

/** The health of one watch: of all namespaces, or of one. */
export interface WatchHealth {
  /** The namespace; absent when the watch covers all. */
  readonly namespace: string | undefined;
  /** What its connection is doing. */
  readonly state: WatchState;
  /** Whether the cache has once been complete. */
  readonly synced: boolean;
  /** What failed last, and when in milliseconds since the Unix epoch. */
  readonly lastError:
    | { readonly message: string; readonly at: number }
    | undefined;
  /** Failures since data last arrived. */
  readonly consecutiveFailures: number;
  /** When data last arrived, in milliseconds since the Unix epoch. */
  readonly lastContact: number | undefined;
  /** How long the present watch is open, in milliseconds. */
  readonly watchAge: number | undefined;
  /** How often the state was listed again after the first time. */
  readonly relists: number;
  /** How many failures there were in all. */
  readonly errors: number;
}

/** The health of an informer. */
export interface InformerHealth {
  /** The kind, for people: `apps/v1 Deployment`. */
  readonly kind: string;
  /** Whether every watch works, or is only just reconnecting. */
  readonly healthy: boolean;
  /** Whether the cache has once been complete. */
  readonly synced: boolean;
  /** One entry for each watch. */
  readonly watches: readonly WatchHealth[];
}
