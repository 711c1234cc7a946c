import type { InformerPool } from "../cache/informer/informer_pool.ts";
import type { MemoryBudget } from "../cache/store/memory_budget.ts";
import type { MemoryPressure } from "../cache/store/memory_pressure.ts";
import type { StoreUsage, TierUsage } from "../cache/store/store_usage.ts";
import type { Gauge, MetricLabels, Metrics } from "../metrics.ts";

/** The parts of a cache that are told apart, as the label `tier` names them. */
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

/** Tells what the caches of an operator use, by kind and tier. */
export class CacheGauges {
  readonly #objects: Gauge;
  readonly #bytes: Gauge;
  readonly #used: Gauge;
  readonly #budget: Gauge;
  readonly #memory: Gauge;
  readonly #memoryLimit: Gauge;
  readonly #memoryShort: Gauge;
  #told: Map<string, MetricLabels> = new Map();

  /** @param metrics Where the gauges are. */
  constructor(metrics: Metrics) {
    this.#objects = metrics.gauge({
      name: "coracle_cache_objects",
      help:
        "Cached objects, by kind and tier; decoded ones are in another, too.",
    });
    this.#bytes = metrics.gauge({
      name: "coracle_cache_bytes",
      help: "Memory of cached objects, by kind and tier.",
    });
    this.#used = metrics.gauge({
      name: "coracle_cache_used_bytes",
      help: "Memory of all caches together.",
    });
    this.#budget = metrics.gauge({
      name: "coracle_cache_budget_bytes",
      help: "Memory that all caches may use together; less when it is short.",
    });
    this.#memory = metrics.gauge({
      name: "coracle_memory_used_bytes",
      help: "Resident memory of the process, where its limit is known.",
    });
    this.#memoryLimit = metrics.gauge({
      name: "coracle_memory_limit_bytes",
      help: "Memory that the process may use, where that is known.",
    });
    this.#memoryShort = metrics.gauge({
      name: "coracle_memory_short",
      help: "Whether the process is near the limit of its memory.",
    });
  }

  /** Sets the gauges of these caches, and removes those of others. */
  set(informers: InformerPool | undefined): void {
    const told = new Map<string, MetricLabels>();
    for (const [kind, usage] of informers?.usage() ?? []) {
      for (const [tier, usageOf] of TIERS) {
        const series = `${kind} ${tier}`;
        const labels = this.#told.get(series) ?? Object.freeze({ kind, tier });
        this.#told.delete(series);
        told.set(series, labels);
        const { objects, bytes } = usageOf(usage);
        this.#objects.set(objects, labels);
        this.#bytes.set(bytes, labels);
      }
    }
    for (const labels of this.#told.values()) {
      this.#objects.remove(labels);
      this.#bytes.remove(labels);
    }
    this.#told = told;
    const { budget } = informers ?? {};
    this.#used.set(budget?.used ?? 0);
    this.#budget.set(budget?.allowed ?? 0);
    if (budget?.pressure !== undefined) {
      this.#setMemory(budget.pressure, budget);
    }
  }

  #setMemory(pressure: MemoryPressure, budget: MemoryBudget): void {
    pressure.look(budget.used);
    this.#memory.set(pressure.used);
    this.#memoryLimit.set(pressure.limit);
    this.#memoryShort.set(Number(pressure.isHigh));
  }
}
