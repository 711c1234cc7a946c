import type { Clock } from "../../clock.ts";
import type { Logger } from "../../logger.ts";
import type {
  Counter,
  Gauge,
  Histogram,
  MetricLabels,
  Metrics,
} from "../../metrics.ts";
import { errorMessage } from "../../error_text.ts";

/** Health of the watch of one namespace, or of all. */
export interface WatchHealth {
  /** Namespace of the watch; undefined for all namespaces. */
  readonly namespace: string | undefined;
  /**
   * State of the connection.
   *
   * - `"stopped"`: not started, or stopped.
   * - `"connecting"`: a list or a watch is requested.
   * - `"syncing"`: the state arrives.
   * - `"watching"`: changes arrive.
   * - `"waiting"`: something failed; it is retried after a pause.
   */
  readonly state:
    | "stopped"
    | "connecting"
    | "syncing"
    | "watching"
    | "waiting";
  /** Whether the cache has been complete once. */
  readonly synced: boolean;
  /** Last failure, with its time in milliseconds since the Unix epoch. */
  readonly lastError:
    | { readonly message: string; readonly at: number }
    | undefined;
  /** Number of failures since data last arrived. */
  readonly consecutiveFailures: number;
  /** Time when data last arrived, in milliseconds since the Unix epoch. */
  readonly lastContact: number | undefined;
  /** Age of the present watch, in milliseconds. */
  readonly watchAge: number | undefined;
  /** Number of relists: reads of the whole state after the first one. */
  readonly relists: number;
  /** Total number of failures. */
  readonly errors: number;
}

/** Upper bounds of the histogram of watch ages, in seconds. */
const WATCH_AGE_BUCKETS: readonly number[] = [1, 10, 30, 60, 120, 300, 600];

const CHANGE_TYPES = ["added", "updated", "deleted"] as const;
type ChangeType = typeof CHANGE_TYPES[number];

/** Metrics of the informers of one kind. */
export class InformerMetrics {
  readonly #labels: { readonly kind: string };
  /** Labels by event type, created once since they are used for every event. */
  readonly #byType: Readonly<Record<ChangeType, MetricLabels>>;
  /** Changes since the last flush. */
  readonly #changes: Record<ChangeType, number> = {
    added: 0,
    updated: 0,
    deleted: 0,
  };
  readonly #events: Counter;
  readonly #relists: Counter;
  readonly #errors: Counter;
  readonly #handlerErrors: Counter;
  readonly #watchAge: Histogram;
  readonly #objects: Gauge;

  constructor(metrics: Metrics, kind: string) {
    const labelled = (type: ChangeType) => Object.freeze({ kind, type });
    this.#labels = Object.freeze({ kind });
    this.#byType = {
      added: labelled("added"),
      updated: labelled("updated"),
      deleted: labelled("deleted"),
    };
    const counter = (name: string, help: string, ...labels: string[]) =>
      metrics.counter({
        name: `coracle_informer_${name}_total`,
        help,
        labels: ["kind", ...labels],
      });
    this.#events = counter(
      "events",
      "Changes of cached objects, by kind and type.",
      "type",
    );
    this.#relists = counter(
      "relists",
      "How often the whole state was read again, by kind.",
    );
    this.#errors = counter(
      "errors",
      "Failed lists and watches, by kind and reason.",
      "reason",
    );
    this.#handlerErrors = counter(
      "handler_errors",
      "Exceptions that event handlers threw, by kind and handler.",
      "handler",
    );
    this.#watchAge = metrics.histogram({
      name: "coracle_informer_watch_age_seconds",
      help: "How long watches lived until they ended, by kind.",
      labels: ["kind"],
      buckets: WATCH_AGE_BUCKETS,
    });
    this.#objects = metrics.gauge({
      name: "coracle_informer_objects",
      help: "Objects in the cache, by kind.",
      labels: ["kind"],
    });
  }

  /** Notes a change; {@linkcode flush} counts it, as changes are frequent. */
  change(type: ChangeType): void {
    this.#changes[type]++;
  }

  /** Counts the changes since the last call. */
  flush(): void {
    const changes = this.#changes;
    this.objects(changes.added - changes.deleted);
    for (const type of CHANGE_TYPES) {
      if (changes[type] > 0) {
        this.#events.add(changes[type], this.#byType[type]);
      }
      changes[type] = 0;
    }
  }

  relist(): void {
    this.#relists.add(1, this.#labels);
  }

  error(reason: string): void {
    this.#errors.add(1, { ...this.#labels, reason });
  }

  handlerError(handler: string): void {
    this.#handlerErrors.add(1, { ...this.#labels, handler });
  }

  /** Observes the age of an ended watch, in milliseconds. */
  watchEnded(age: number): void {
    this.#watchAge.observe(age / 1000, this.#labels);
  }

  /** Adds to the number of cached objects. */
  objects(change: number): void {
    if (change !== 0) this.#objects.add(change, this.#labels);
  }
}

export interface WatchRecordDeps {
  readonly namespace: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: InformerMetrics;
}

/** Health, metrics and log of a reflector. */
export class WatchRecord {
  readonly #deps: WatchRecordDeps;
  readonly #health: { -readonly [F in keyof WatchHealth]: WatchHealth[F] };
  #watchStart: number | undefined;
  /** Settled with the first attempt to read the state, once somebody waits for it. */
  #attempt: PromiseWithResolvers<void> | undefined;

  constructor(deps: WatchRecordDeps) {
    this.#deps = deps;
    this.#health = {
      namespace: deps.namespace,
      state: "stopped",
      synced: false,
      lastError: undefined,
      consecutiveFailures: 0,
      lastContact: undefined,
      watchAge: undefined,
      relists: 0,
      errors: 0,
    };
  }

  get synced(): boolean {
    return this.#health.synced;
  }

  /**
   * Promise that is fulfilled when the first state was read, its read failed, or the
   * watch was stopped.
   */
  get attempted(): Promise<void> {
    if (this.synced || this.#health.errors > 0) return Promise.resolve();
    return (this.#attempt ??= Promise.withResolvers()).promise;
  }

  set state(state: WatchHealth["state"]) {
    this.#health.state = state;
    if (state === "stopped") this.#attempt?.resolve();
  }

  /** Notes that bytes arrived. */
  contact(): void {
    this.#health.lastContact = this.#deps.clock.wallTime();
  }

  /** Notes that a valid event arrived, which ends a series of failures. */
  works(): void {
    this.#health.consecutiveFailures = 0;
  }

  /**
   * Notes, counts and logs a failure.
   *
   * @param reason Value of the metric label `reason`.
   * @param action Failed action, worded to follow "Cannot"; undefined if unknown.
   */
  failed(error: unknown, reason: string, action?: string): void {
    const { log, metrics, clock } = this.#deps;
    const message = describe(error, action);
    const health = this.#health;
    health.lastError = { message, at: clock.wallTime() };
    health.consecutiveFailures++;
    health.errors++;
    metrics.error(reason);
    this.#attempt?.resolve();
    log.warn("A list or watch failed and is retried", {
      error: message,
      reason,
      failures: health.consecutiveFailures,
    });
  }

  /** Notes the beginning of a whole state; after a sync, each one is a relist. */
  stateBegun(): void {
    if (!this.synced) return;
    this.#health.relists++;
    this.#deps.metrics.relist();
  }

  /** Notes that a whole state was read. */
  stateRead(): void {
    this.#health.synced = true;
    this.#attempt?.resolve();
    this.state = "watching";
  }

  watchOpened(): void {
    this.#watchStart = this.#deps.clock.now();
  }

  /** Notes the end of a watch, if one was open. */
  watchClosed(): void {
    const age = this.#watchAge();
    if (age !== undefined) this.#deps.metrics.watchEnded(age);
    this.#watchStart = undefined;
  }

  /** Current health, as a new object. */
  health(): WatchHealth {
    return { ...this.#health, watchAge: this.#watchAge() };
  }

  #watchAge(): number | undefined {
    return this.#watchStart === undefined
      ? undefined
      : this.#deps.clock.now() - this.#watchStart;
  }
}

/** Error message that names the kind, even if the error itself does not. */
function describe(error: unknown, action: string | undefined): string {
  const message = errorMessage(error);
  return action === undefined || message.includes(action)
    ? message
    : `Cannot ${action}: ${message.replace(/^C/, "c")}`;
}
