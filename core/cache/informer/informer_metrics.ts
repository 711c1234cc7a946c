import type {
  Counter,
  Gauge,
  Histogram,
  MetricLabels,
  Metrics,
} from "../../metrics.ts";
import type { CacheEventType } from "./cache_event.ts";

/** Upper bounds in seconds: from a proxy's cut to the server's own timeout. */
const WATCH_AGE_BUCKETS: readonly number[] = [1, 10, 30, 60, 120, 300, 600];

/** What the informers of one kind count. */
export class InformerMetrics {
  readonly #labels: { readonly kind: string };
  /** One object of labels for each type, so that none is made for a count. */
  readonly #byType: Readonly<Record<CacheEventType, MetricLabels>>;
  /** Changes that are not counted yet. */
  readonly #changes: Record<CacheEventType, number> = {
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

  /**
   * @param metrics Where to count.
   * @param kind The kind, for the label.
   */
  constructor(metrics: Metrics, kind: string) {
    this.#labels = Object.freeze({ kind });
    this.#byType = {
      added: Object.freeze({ kind, type: "added" }),
      updated: Object.freeze({ kind, type: "updated" }),
      deleted: Object.freeze({ kind, type: "deleted" }),
    };
    this.#events = metrics.counter({
      name: "coracle_informer_events_total",
      help: "Changes of cached objects, by kind and type.",
    });
    this.#relists = metrics.counter({
      name: "coracle_informer_relists_total",
      help: "How often the whole state was read again, by kind.",
    });
    this.#errors = metrics.counter({
      name: "coracle_informer_errors_total",
      help: "Failed lists and watches, by kind and reason.",
    });
    this.#handlerErrors = metrics.counter({
      name: "coracle_informer_handler_errors_total",
      help: "Exceptions that event handlers threw, by kind and handler.",
    });
    this.#watchAge = metrics.histogram({
      name: "coracle_informer_watch_age_seconds",
      help: "How long watches lived until they ended, by kind.",
      buckets: WATCH_AGE_BUCKETS,
    });
    this.#objects = metrics.gauge({
      name: "coracle_informer_objects",
      help: "Objects in the cache, by kind.",
    });
  }

  /** Notes a change, to be counted by {@linkcode flush}: it is that frequent. */
  change(type: CacheEventType): void {
    this.#changes[type]++;
  }

  /** Counts the changes since the last time. */
  flush(): void {
    const changes = this.#changes;
    this.objects(changes.added - changes.deleted);
    this.#flush("added");
    this.#flush("updated");
    this.#flush("deleted");
  }

  #flush(type: CacheEventType): void {
    const count = this.#changes[type];
    if (count === 0) return;
    this.#events.add(count, this.#byType[type]);
    this.#changes[type] = 0;
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

  /** @param age Milliseconds. */
  watchEnded(age: number): void {
    this.#watchAge.observe(age / 1000, this.#labels);
  }

  /** @param change By how many objects the cache grew. */
  objects(change: number): void {
    if (change !== 0) this.#objects.add(change, this.#labels);
  }
}
