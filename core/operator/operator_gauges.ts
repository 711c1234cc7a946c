import type { InformerPool } from "../cache/informer/informer_pool.ts";
import type { StoreUsage, TierUsage } from "../cache/store/store_usage.ts";
import type { ControllerHealth } from "../controller/controller.ts";
import type { Gauge, MetricLabels, Metrics } from "../metrics.ts";

/** A gauge of a controller. */
interface ControllerGauge {
  readonly name: string;
  readonly help: string;
  /** Returns the value of the gauge for the health of a controller. */
  readonly value: (health: ControllerHealth) => number;
}

const CONTROLLER_GAUGES: readonly ControllerGauge[] = [
  {
    name: "coracle_reconciliations_active",
    help: "Runs in progress.",
    value: ({ running }) => running,
  },
  {
    name: "coracle_reconciliations_overdue",
    help: "Runs that have ignored their abort signal for ten seconds or more.",
    value: ({ overdue }) => overdue,
  },
  {
    name: "coracle_queue_depth",
    help: "Objects that wait for a run.",
    value: ({ waiting }) => waiting,
  },
  {
    name: "coracle_queue_delayed",
    help: "Objects that run at a set time: retries, reschedules, intervals.",
    value: ({ delayed }) => delayed,
  },
  {
    name: "coracle_primaries",
    help: "Primary objects in the cache.",
    value: ({ primaries }) => primaries,
  },
  {
    name: "coracle_failing_objects",
    help: "Objects whose last run has failed and is to be repeated.",
    value: ({ failing }) => failing,
  },
  {
    name: "coracle_oldest_failure_seconds",
    help:
      "Time since the object that fails for longest began to; 0 if none does.",
    value: ({ oldestFailure }) => oldestFailure / 1_000,
  },
  {
    name: "coracle_controller_ready",
    help: "Whether the caches of a controller are synced.",
    value: ({ ready }) => Number(ready),
  },
  {
    name: "coracle_controller_active",
    help: "Whether a controller runs objects; 0 on a standby replica.",
    value: ({ active }) => Number(active),
  },
];

/** Tiers of a cache, by the value of the label `tier`. */
const TIERS: readonly (readonly [
  tier: string,
  usage: (usage: StoreUsage) => TierUsage,
])[] = [
  ["decoded", ({ decoded }) => decoded],
  ["bytes", ({ bytes }) => bytes],
  ["compressed", ({ compressed }) => compressed],
  ["key_only", ({ keyOnly }) => keyOnly],
  [
    "index",
    ({ index, bytes, compressed, keyOnly }) => ({
      objects: bytes.objects + compressed.objects + keyOnly.objects,
      bytes: index,
    }),
  ],
];

/**
 * Gauges of the controllers and caches of an operator. They are set from the
 * state itself before every export, so that they cannot drift from it.
 */
export class OperatorGauges {
  readonly #controllers: readonly Gauge[];
  readonly #objects: Gauge;
  readonly #bytes: Gauge;
  readonly #used: Gauge;
  readonly #budget: Gauge;
  readonly #memory: Gauge;
  readonly #memoryLimit: Gauge;
  readonly #memoryShort: Gauge;
  #controllerSeries: Map<string, MetricLabels> = new Map();
  #cacheSeries: Map<string, MetricLabels> = new Map();

  /** @param metrics The registry of the gauges. */
  constructor(metrics: Metrics) {
    const gauge = (name: string, help: string) => metrics.gauge({ name, help });
    this.#controllers = CONTROLLER_GAUGES.map(({ name, help }) =>
      gauge(name, help)
    );
    this.#objects = gauge(
      "coracle_cache_objects",
      "Cached objects, by kind and tier; decoded objects also count in another tier.",
    );
    this.#bytes = gauge(
      "coracle_cache_bytes",
      "Memory of cached objects, by kind and tier.",
    );
    this.#used = gauge(
      "coracle_cache_used_bytes",
      "Memory of all caches together.",
    );
    this.#budget = gauge(
      "coracle_cache_budget_bytes",
      "Memory budget of all caches together; reduced under memory pressure.",
    );
    this.#memory = gauge(
      "coracle_memory_used_bytes",
      "Resident memory of the process, if its limit is known.",
    );
    this.#memoryLimit = gauge(
      "coracle_memory_limit_bytes",
      "Memory limit of the process, if it is known.",
    );
    this.#memoryShort = gauge(
      "coracle_memory_short",
      "Whether the process is close to its memory limit.",
    );
  }

  /**
   * Sets the gauges, and removes those of controllers and caches that no longer
   * exist.
   *
   * @param controllers The health of the controllers.
   * @param informers The caches; undefined before the operator starts.
   */
  set(
    controllers: readonly ControllerHealth[],
    informers: InformerPool | undefined,
  ): void {
    const series = new Map<string, MetricLabels>();
    for (const health of controllers) {
      const { name } = health;
      const labels = this.#controllerSeries.get(name) ??
        Object.freeze({ controller: name });
      series.set(name, labels);
      CONTROLLER_GAUGES.forEach(({ value }, index) => {
        this.#controllers[index]?.set(value(health), labels);
      });
    }
    removeOthers(this.#controllerSeries, series, this.#controllers);
    this.#controllerSeries = series;
    this.#setCaches(informers);
  }

  #setCaches(informers: InformerPool | undefined): void {
    const series = new Map<string, MetricLabels>();
    for (const [kind, usage] of informers?.usage() ?? []) {
      for (const [tier, usageOf] of TIERS) {
        const id = `${kind} ${tier}`;
        const labels = this.#cacheSeries.get(id) ??
          Object.freeze({ kind, tier });
        series.set(id, labels);
        const { objects, bytes } = usageOf(usage);
        this.#objects.set(objects, labels);
        this.#bytes.set(bytes, labels);
      }
    }
    removeOthers(this.#cacheSeries, series, [this.#objects, this.#bytes]);
    this.#cacheSeries = series;
    const { budget } = informers ?? {};
    this.#used.set(budget?.used ?? 0);
    this.#budget.set(budget?.allowed ?? 0);
    const { pressure } = budget ?? {};
    if (budget === undefined || pressure === undefined) return;
    pressure.measure(budget.used);
    this.#memory.set(pressure.used);
    this.#memoryLimit.set(pressure.limit);
    this.#memoryShort.set(Number(pressure.isHigh));
  }
}

/** Removes the series that no longer exist from gauges. */
function removeOthers(
  before: ReadonlyMap<string, MetricLabels>,
  now: ReadonlyMap<string, MetricLabels>,
  gauges: readonly Gauge[],
): void {
  for (const [id, labels] of before) {
    if (now.has(id)) continue;
    for (const gauge of gauges) gauge.remove(labels);
  }
}
