import type { WebhookHealth } from "../admission/webhooks.ts";
import type { InformerPool } from "../cache/informer/informer_pool.ts";
import type { MemoryBudget } from "../cache/store/memory_budget.ts";
import type { MemoryPressure } from "../cache/store/memory_pressure.ts";
import {
  type StoreUsage,
  sumOfUsages,
  type TierUsage,
} from "../cache/store/store_usage.ts";
import type { ControllerHealth } from "../controller/controller_health.ts";
import { lostLogLines } from "../logger.ts";
import type { Metrics } from "../metrics.ts";
import type { LeaseHealth } from "./coordination.ts";

/** Table of gauges: name, description and the function that reads the value. */
type GaugeTable<Values> = readonly (readonly [
  name: string,
  help: string,
  valueOf: (values: Values) => number | boolean,
])[];

const CONTROLLER_GAUGES: GaugeTable<ControllerHealth> = [
  [
    "coracle_reconciliations_active",
    "Runs in progress.",
    ({ running }) => running,
  ],
  [
    "coracle_reconciliations_overdue",
    "Runs that have ignored their abort signal for ten seconds or more.",
    ({ overdue }) => overdue,
  ],
  [
    "coracle_queue_depth",
    "Objects that wait for a run.",
    ({ waiting }) => waiting,
  ],
  [
    "coracle_queue_delayed",
    "Objects that run at a set time: retries, reschedules, intervals.",
    ({ delayed }) => delayed,
  ],
  [
    "coracle_primaries",
    "Primary objects in the cache.",
    ({ primaries }) => primaries,
  ],
  [
    "coracle_failing_objects",
    "Objects whose last run has failed.",
    ({ failing }) => failing,
  ],
  [
    "coracle_oldest_failure_seconds",
    "Time since the object that fails for longest began to; 0 if none does.",
    ({ oldestFailure }) => oldestFailure / 1_000,
  ],
  [
    "coracle_controller_ready",
    "Whether the caches of a controller are synced.",
    ({ ready }) => ready,
  ],
  [
    "coracle_controller_active",
    "Whether a controller runs objects; 0 on a standby replica.",
    ({ active }) => active,
  ],
  [
    "coracle_controller_healthy",
    "Whether all watches and event sources of a controller work.",
    ({ healthy }) => healthy,
  ],
];

const LEASE_GAUGES: GaugeTable<LeaseHealth> = [
  [
    "coracle_lease_held",
    "Whether this replica holds its Lease: it is the leader, or a member of its shard group.",
    ({ held }) => held,
  ],
  [
    "coracle_lease_failing_seconds",
    "Time since the Lease could last be read or renewed; 0 while it can.",
    ({ failingFor }) => failingFor / 1_000,
  ],
];

const WEBHOOK_GAUGES: GaugeTable<WebhookHealth> = [
  [
    "coracle_webhooks_registered",
    "Whether the API server has been told of all webhooks.",
    ({ registered }) => registered,
  ],
];

const CERTIFICATE_GAUGES: GaugeTable<number> = [
  [
    "coracle_webhook_certificate_expiration_timestamp_seconds",
    "End of the validity of the webhook certificate, in seconds since the Unix epoch.",
    (expires) => expires / 1_000,
  ],
];

const LOG_GAUGES: GaugeTable<number> = [[
  "coracle_log_lines_lost",
  "Log lines of the process that could not be written.",
  (lost) => lost,
]];

const TIER_GAUGES: GaugeTable<TierUsage> = [
  [
    "coracle_cache_objects",
    "Cached objects, by kind and tier; decoded objects also count in another tier.",
    ({ objects }) => objects,
  ],
  [
    "coracle_cache_bytes",
    "Memory of cached objects, by kind and tier.",
    ({ bytes }) => bytes,
  ],
];

const INFORMER_GAUGES: GaugeTable<number> = [[
  "coracle_informer_staleness_seconds",
  "Time since data of the watches of a kind last arrived; an idle one has a bookmark about every minute.",
  (staleness) => staleness / 1_000,
]];

const KIND_GAUGES: GaugeTable<NonNullable<ControllerHealth["kinds"]>> = [
  [
    "coracle_kinds_followed",
    "Kinds that a watch of many kinds follows.",
    ({ followed }) => followed,
  ],
  [
    "coracle_kinds_unread",
    "Kinds among them that could not be read so far, such as for want of a right.",
    ({ unread }) => unread.length,
  ],
];

const CLUSTER_GAUGES: GaugeTable<ClusterCounts> = [
  [
    "coracle_clusters",
    "Clusters of a controller; one series each for the first hundred by name, and one for the others.",
    ({ clusters }) => clusters,
  ],
  [
    "coracle_clusters_ready",
    "Clusters whose caches are complete and whose watches work.",
    ({ ready }) => ready,
  ],
  [
    "coracle_cluster_primaries",
    "Primary objects of a cluster in the cache.",
    ({ primaries }) => primaries,
  ],
  [
    "coracle_cluster_queue_depth",
    "Objects of a cluster that wait for a run.",
    ({ waiting }) => waiting,
  ],
  [
    "coracle_cluster_reconciliations_active",
    "Runs in progress in a cluster.",
    ({ running }) => running,
  ],
  [
    "coracle_cluster_failing_objects",
    "Objects of a cluster whose last run has failed.",
    ({ failing }) => failing,
  ],
];

const BUDGET_GAUGES: GaugeTable<Pick<MemoryBudget, "used" | "allowed">> = [
  [
    "coracle_cache_used_bytes",
    "Memory of all caches together.",
    ({ used }) => used,
  ],
  [
    "coracle_cache_budget_bytes",
    "Memory budget of all caches together; reduced under memory pressure.",
    ({ allowed }) => allowed,
  ],
];

const MEMORY_GAUGES: GaugeTable<
  Pick<MemoryPressure, "used" | "limit" | "isHigh">
> = [
  [
    "coracle_memory_used_bytes",
    "Resident memory of the process, if its limit is known.",
    ({ used }) => used,
  ],
  [
    "coracle_memory_limit_bytes",
    "Memory limit of the process, if it is known.",
    ({ limit }) => limit,
  ],
  [
    "coracle_memory_short",
    "Whether the process is close to its memory limit.",
    ({ isHigh }) => isHigh,
  ],
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

/** Clusters of a controller with series of their own; the others have one together. */
const MAX_CLUSTER_SERIES = 100;

/** Value of the label `cluster` for the others; no cluster can have this name. */
const OTHER_CLUSTERS = "(others)";

type ClusterHealth = NonNullable<ControllerHealth["clusters"]>[number];

/** Counts of one or more clusters. */
type ClusterCounts =
  & Pick<ClusterHealth, "primaries" | "waiting" | "running" | "failing">
  & { readonly clusters: number; readonly ready: number };

/** Counts by cluster, with a bounded number of series. */
function clusterCounts(
  all: readonly ClusterHealth[],
): readonly (readonly [cluster: string, counts: ClusterCounts])[] {
  const sorted = [...all].sort((a, b) => a.name < b.name ? -1 : 1);
  const named = sorted.slice(0, MAX_CLUSTER_SERIES);
  const others = sorted.slice(MAX_CLUSTER_SERIES);
  const counts = (of: readonly ClusterHealth[]): ClusterCounts => {
    const sum = (valueOf: (health: ClusterHealth) => number) =>
      of.reduce((total, health) => total + valueOf(health), 0);
    return {
      clusters: of.length,
      ready: sum(({ ready, healthy }) => Number(ready && healthy)),
      primaries: sum(({ primaries }) => primaries),
      waiting: sum(({ waiting }) => waiting),
      running: sum(({ running }) => running),
      failing: sum(({ failing }) => failing),
    };
  };
  return [
    ...named.map((one) => [one.name, counts([one])] as const),
    ...others.length === 0 ? [] : [[OTHER_CLUSTERS, counts(others)] as const],
  ];
}

/** State that the gauges of an operator show. */
export interface ObservedState {
  /** Health of the controllers. */
  readonly controllers: readonly ControllerHealth[];
  /** Health of the Lease; undefined without leader election and sharding. */
  readonly lease: LeaseHealth | undefined;
  /** Health of the webhooks; undefined without admission. */
  readonly webhooks?: WebhookHealth | undefined;
  /** Caches; undefined before the operator starts. */
  readonly informers: InformerPool | undefined;
  /** Controllers, with the caches of other clusters. */
  readonly others?:
    | Iterable<{ readonly remoteInformers: ReadonlyMap<string, InformerPool> }>
    | undefined;
}

/** State of an operator that nobody uses any more. */
const GONE: ObservedState = {
  controllers: [],
  lease: undefined,
  informers: undefined,
};

/** Caches of all clusters. */
function poolsOf(
  { informers, others = [] }: ObservedState,
): readonly InformerPool[] {
  if (informers === undefined) return [];
  const remote = Array.from(
    others,
    ({ remoteInformers }) => [...remoteInformers.values()],
  );
  return [informers, ...remote.flat()];
}

/** Memory of caches, by kind. */
function usageByKind(
  pools: readonly InformerPool[],
): ReadonlyMap<string, StoreUsage> {
  const byKind = Map.groupBy(
    pools.flatMap((pool) => [...pool.usage()]),
    ([kind]) => kind,
  );
  return new Map(Array.from(byKind, ([kind, usages]) => [
    kind,
    sumOfUsages(usages.map(([, usage]) => usage)),
  ]));
}

/** Longest time since data of a kind arrived, in milliseconds, by kind. */
function stalenessByKind(
  pools: readonly InformerPool[],
): ReadonlyMap<string, number> {
  const byKind = new Map<string, number>();
  for (const [kind, time] of pools.flatMap((pool) => [...pool.staleness()])) {
    byKind.set(kind, Math.max(byKind.get(kind) ?? 0, time));
  }
  return byKind;
}

/**
 * Adds the gauges of the controllers, the Lease and the caches of an operator.
 * They are read from the state itself at every collection, so that they cannot
 * deviate from it, and series of what no longer exists end.
 *
 * @param owner The operator, which the metrics do not keep in memory.
 * @param observe Reads its state; it must not hold the operator either.
 */
export function addOperatorGauges<O extends object>(
  metrics: Metrics,
  owner: O,
  observe: (owner: O) => ObservedState,
): void {
  const held = new WeakRef(owner);
  const read = (): ObservedState => {
    const present = held.deref();
    return present === undefined ? GONE : observe(present);
  };
  /** Adds a table of gauges with the same labels. */
  function add<Label extends string, Values>(
    table: GaugeTable<Values>,
    labels: readonly Label[],
    all: () => readonly (readonly [Record<Label, string>, Values])[],
  ): void {
    for (const [name, help, valueOf] of table) {
      metrics.observableGauge(
        { name, help, labels },
        () =>
          all().map(([labels, values]) => ({
            value: Number(valueOf(values)),
            labels,
          })),
      );
    }
  }
  add(
    CONTROLLER_GAUGES,
    ["controller"],
    () =>
      read().controllers.map((health) => [{ controller: health.name }, health]),
  );
  add(LEASE_GAUGES, ["lease"], () => {
    const { lease } = read();
    return lease === undefined ? [] : [[{ lease: lease.name }, lease]];
  });
  add(WEBHOOK_GAUGES, [], () => {
    const { webhooks } = read();
    return webhooks === undefined ? [] : [[{}, webhooks]];
  });
  add(CERTIFICATE_GAUGES, [], () => {
    const { certificateExpires } = read().webhooks ?? {};
    return certificateExpires === undefined ? [] : [[{}, certificateExpires]];
  });
  add(
    TIER_GAUGES,
    ["kind", "tier"],
    () =>
      Array.from(usageByKind(poolsOf(read()))).flatMap(([kind, usage]) =>
        TIERS.map(([tier, usageOf]) =>
          [{ kind, tier }, usageOf(usage)] as const
        )
      ),
  );
  add(
    INFORMER_GAUGES,
    ["kind"],
    () =>
      Array.from(
        stalenessByKind(poolsOf(read())),
        ([kind, staleness]) => [{ kind }, staleness],
      ),
  );
  add(
    KIND_GAUGES,
    ["controller"],
    () =>
      read().controllers.flatMap(({ name: controller, kinds }) =>
        kinds === undefined ? [] : [[{ controller }, kinds] as const]
      ),
  );
  add(
    CLUSTER_GAUGES,
    ["controller", "cluster"],
    () =>
      read().controllers.flatMap(({ name: controller, clusters = [] }) =>
        clusterCounts(clusters).map(([cluster, counts]) =>
          [{ controller, cluster }, counts] as const
        )
      ),
  );
  add(BUDGET_GAUGES, [], () => [[{}, read().informers?.budget ?? NO_BUDGET]]);
  add(MEMORY_GAUGES, [], () => {
    // It was measured when the health was read.
    const { pressure } = read().informers?.budget ?? {};
    return pressure === undefined ? [] : [[{}, pressure]];
  });
  add(LOG_GAUGES, [], () => [[{}, lostLogLines()]]);
}

const NO_BUDGET = { used: 0, allowed: 0 };
