import type { InformerPool } from "../cache/informer_pool.ts";
import type { StoreUsage, TierUsage } from "../cache/store_usage.ts";
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
      help: "Memory that all caches may use together.",
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
    this.#used.set(informers?.budget?.used ?? 0);
    this.#budget.set(informers?.budget?.limit ?? 0);
  }
}
