import type { InformerPool } from "../cache/informer/informer_pool.ts";
import type { StoreUsage, TierUsage } from "../cache/store/store_usage.ts";
import type { ControllerHealth } from "../controller/controller.ts";
import type { Gauge, MetricLabels, Metrics } from "../metrics.ts";

/** Table of gauges: name and description by the field with the value. */
type GaugeTable<Field extends string> = Readonly<
  Record<Field, readonly [name: string, help: string]>
>;

const CONTROLLER_GAUGES = {
  running: ["coracle_reconciliations_active", "Runs in progress."],
  overdue: [
    "coracle_reconciliations_overdue",
    "Runs that have ignored their abort signal for ten seconds or more.",
  ],
  waiting: ["coracle_queue_depth", "Objects that wait for a run."],
  delayed: [
    "coracle_queue_delayed",
    "Objects that run at a set time: retries, reschedules, intervals.",
  ],
  primaries: ["coracle_primaries", "Primary objects in the cache."],
  failing: [
    "coracle_failing_objects",
    "Objects whose last run has failed.",
  ],
  oldestFailure: [
    "coracle_oldest_failure_seconds",
    "Time since the object that fails for longest began to; 0 if none does.",
  ],
  ready: [
    "coracle_controller_ready",
    "Whether the caches of a controller are synced.",
  ],
  active: [
    "coracle_controller_active",
    "Whether a controller runs objects; 0 on a standby replica.",
  ],
} satisfies Partial<GaugeTable<keyof ControllerHealth>>;

const TIER_GAUGES: GaugeTable<keyof TierUsage> = {
  objects: [
    "coracle_cache_objects",
    "Cached objects, by kind and tier; decoded objects also count in another tier.",
  ],
  bytes: ["coracle_cache_bytes", "Memory of cached objects, by kind and tier."],
};

const BUDGET_GAUGES: GaugeTable<"used" | "allowed"> = {
  used: ["coracle_cache_used_bytes", "Memory of all caches together."],
  allowed: [
    "coracle_cache_budget_bytes",
    "Memory budget of all caches together; reduced under memory pressure.",
  ],
};

const MEMORY_GAUGES: GaugeTable<"used" | "limit" | "isHigh"> = {
  used: [
    "coracle_memory_used_bytes",
    "Resident memory of the process, if its limit is known.",
  ],
  limit: [
    "coracle_memory_limit_bytes",
    "Memory limit of the process, if it is known.",
  ],
  isHigh: [
    "coracle_memory_short",
    "Whether the process is close to its memory limit.",
  ],
};

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
 * Gauges with the same labels. Their time series exist as long as they are set:
 * those that a call of {@linkcode GaugeGroup.set} leaves out are removed.
 */
class GaugeGroup<Field extends string> {
  readonly #gauges: readonly (readonly [field: Field, gauge: Gauge])[];
  /** Labels of each series, frozen so that a registry finds them by identity. */
  #series: ReadonlyMap<string, MetricLabels> = new Map();

  constructor(metrics: Metrics, table: GaugeTable<Field>) {
    this.#gauges = (Object.keys(table) as Field[]).map((field) => {
      const [name, help] = table[field];
      return [field, metrics.gauge({ name, help })];
    });
  }

  set(
    all: readonly {
      readonly labels: MetricLabels;
      readonly values: Readonly<Record<Field, number | boolean>>;
    }[],
  ): void {
    const series = new Map<string, MetricLabels>();
    for (const { labels, values } of all) {
      const id = Object.values(labels).join(" ");
      const frozen = this.#series.get(id) ?? Object.freeze(labels);
      series.set(id, frozen);
      for (const [field, gauge] of this.#gauges) {
        gauge.set(Number(values[field]), frozen);
      }
    }
    for (const [id, labels] of this.#series) {
      if (series.has(id)) continue;
      for (const [, gauge] of this.#gauges) gauge.remove(labels);
    }
    this.#series = series;
  }
}

/**
 * Gauges of the controllers and caches of an operator. They are set from the
 * state itself before every export, so that they cannot deviate from it.
 */
export class OperatorGauges {
  readonly #controllers: GaugeGroup<keyof typeof CONTROLLER_GAUGES>;
  readonly #tiers: GaugeGroup<keyof TierUsage>;
  readonly #budget: GaugeGroup<"used" | "allowed">;
  readonly #memory: GaugeGroup<"used" | "limit" | "isHigh">;

  constructor(metrics: Metrics) {
    this.#controllers = new GaugeGroup(metrics, CONTROLLER_GAUGES);
    this.#tiers = new GaugeGroup(metrics, TIER_GAUGES);
    this.#budget = new GaugeGroup(metrics, BUDGET_GAUGES);
    this.#memory = new GaugeGroup(metrics, MEMORY_GAUGES);
  }

  /**
   * Sets the gauges, and removes those of controllers and caches that no longer
   * exist.
   *
   * @param informers The caches; undefined before the operator starts.
   */
  set(
    controllers: readonly ControllerHealth[],
    informers: InformerPool | undefined,
  ): void {
    this.#controllers.set(controllers.map((health) => ({
      labels: { controller: health.name },
      values: { ...health, oldestFailure: health.oldestFailure / 1_000 },
    })));
    const usage = [...informers?.usage() ?? []];
    this.#tiers.set(
      usage.flatMap(([kind, usage]) =>
        TIERS.map(([tier, usageOf]) => ({
          labels: { kind, tier },
          values: usageOf(usage),
        }))
      ),
    );
    const { budget = { used: 0, allowed: 0, pressure: undefined } } =
      informers ?? {};
    this.#budget.set([{ labels: {}, values: budget }]);
    const { pressure } = budget;
    pressure?.measure(budget.used);
    this.#memory.set(pressure ? [{ labels: {}, values: pressure }] : []);
  }
}
