import type { InformerPool } from "../cache/informer/informer_pool.ts";
import type { ControllerHealth } from "../controller/controller.ts";
import type { Gauge, MetricLabels, Metrics } from "../metrics.ts";
import { CacheGauges } from "./cache_gauges.ts";

/** What of a controller's health is told as a metric. */
const GAUGES: readonly {
  readonly name: string;
  readonly help: string;
  readonly value: (health: ControllerHealth) => number;
}[] = [
  {
    name: "coracle_reconciliations_active",
    help: "Runs that there are now.",
    value: ({ running }) => running,
  },
  {
    name: "coracle_reconciliations_overdue",
    help: "Runs that go on ten seconds and more after they were asked to end.",
    value: ({ overdue }) => overdue,
  },
  {
    name: "coracle_queue_depth",
    help: "Objects that wait for their run.",
    value: ({ waiting }) => waiting,
  },
  {
    name: "coracle_queue_delayed",
    help: "Objects that run at a set time: retries, visits, intervals.",
    value: ({ delayed }) => delayed,
  },
  {
    name: "coracle_primaries",
    help: "Primary objects in the cache.",
    value: ({ primaries }) => primaries,
  },
  {
    name: "coracle_retries_exhausted",
    help: "Objects whose retries are used up.",
    value: ({ exhausted }) => exhausted,
  },
  {
    name: "coracle_controller_ready",
    help: "Whether the caches of a controller are complete.",
    value: ({ ready }) => Number(ready),
  },
  {
    name: "coracle_controller_active",
    help: "Whether a controller runs what waits; not so on standby.",
    value: ({ active }) => Number(active),
  },
];

/**
 * Tells the state of controllers and caches as gauges. They are set from the state itself
 * whenever they are asked for, so that they cannot drift.
 */
export class OperatorGauges {
  readonly #gauges: readonly Gauge[];
  readonly #caches: CacheGauges;
  #told: Map<string, MetricLabels> = new Map();

  /** @param metrics Where the gauges are. */
  constructor(metrics: Metrics) {
    this.#gauges = GAUGES.map(({ name, help }) =>
      metrics.gauge({ name, help })
    );
    this.#caches = new CacheGauges(metrics);
  }

  /** Sets the gauges of these, and removes those of others. */
  set(
    controllers: readonly ControllerHealth[],
    informers: InformerPool | undefined,
  ): void {
    this.#caches.set(informers);
    const told = new Map<string, MetricLabels>();
    for (const health of controllers) {
      const labels = this.#told.get(health.name) ??
        Object.freeze({ controller: health.name });
      this.#told.delete(health.name);
      told.set(health.name, labels);
      GAUGES.forEach(({ value }, index) => {
        this.#gauges[index]?.set(value(health), labels);
      });
    }
    for (const labels of this.#told.values()) {
      for (const gauge of this.#gauges) gauge.remove(labels);
    }
    this.#told = told;
  }
}
