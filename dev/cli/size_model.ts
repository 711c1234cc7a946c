/**
 * Model of the replicas and the memory that an operator needs, from costs that were
 * measured; docs/sizing.md has their sources, and how far the model is off.
 *
 * @module
 */

const KIB = 2 ** 10;
const MIB = 2 ** 20;

/** Measured costs: memory in bytes, processor time in microseconds. */
const COSTS = {
  /** An operator under load, without caches, with `limitHeapGrowth()`. */
  process: 120 * MIB,
  /** A kind with a controller and its watch. */
  kind: 70 * KIB,
  /** A cluster whose objects of three kinds one controller follows. */
  cluster: 369 * KIB,
  /** Key, version and bookkeeping of an object. */
  key: 94,
  /** Share of an object that its compressed form takes. */
  compressed: 1 / 28,
  /** Memory in which pages are compressed and read. */
  compressing: 60 * MIB,
  event: 25.4,
  run: 588,
  cold: 41,
  warm: 4,
} as const;

/** Share of a processor that a replica may take, so that it follows bursts. */
const USE = 0.6;
const MOST_REPLICAS = 10_000;

/** What an operator has to do. */
export interface Workload {
  /** Number of objects of all kinds and clusters. */
  readonly objects: number;
  /** Size of an object as JSON without `managedFields`, in bytes. */
  readonly objectSize: number;
  readonly kinds: number;
  /** Clusters of a controller, or 0 if its objects are in the operator's own. */
  readonly clusters: number;
  /** Changes of objects a second. */
  readonly events: number;
  /** Runs a second that write a status. */
  readonly runs: number;
  /** Whether each replica keeps its share of the objects only. */
  readonly isSplit: boolean;
}

/** What one of some replicas needs. */
export interface ReplicaNeed {
  /** Number of objects that it keeps. */
  readonly objects: number;
  /** Memory with all objects compressed, in bytes: the budget may not be smaller. */
  readonly least: number;
  /** Memory with no object compressed, in bytes. */
  readonly whole: number;
  /** Processors that it takes. */
  readonly processors: number;
  /** Processor time of a start without and with a snapshot, in seconds. */
  readonly cold: number;
  readonly warm: number;
}

/** What one of some replicas needs. */
export function needOf(work: Workload, replicas: number): ReplicaNeed {
  const share = work.isSplit ? replicas : 1;
  const objects = Math.ceil(work.objects / share);
  const fixed = COSTS.process + work.kinds * COSTS.kind +
    Math.ceil(work.clusters / share) * COSTS.cluster;
  const full = objects * (work.objectSize + COSTS.key);
  const packed = objects * (work.objectSize * COSTS.compressed + COSTS.key) +
    COSTS.compressing;
  const busy = work.events / share * COSTS.event +
    work.runs / replicas * COSTS.run;
  return {
    objects,
    least: fixed + Math.min(full, packed),
    whole: fixed + full,
    processors: busy / 1e6,
    cold: objects * COSTS.cold / 1e6,
    warm: objects * COSTS.warm / 1e6,
  };
}

/** Memory of a replica with a budget of its caches, in bytes. */
export function memoryWith(
  { least, whole }: ReplicaNeed,
  budget: number,
): number {
  return Math.min(whole, Math.max(least, budget + COSTS.process));
}

/**
 * The least number of replicas of a memory limit that can do the work.
 *
 * @returns Undefined if no number can: each replica needs more memory, or more than a
 * processor, however many there are.
 */
export function replicasFor(
  work: Workload,
  memory: number,
): number | undefined {
  const fits = (replicas: number) => {
    const { least, processors } = needOf(work, replicas);
    return least <= memory && processors <= USE;
  };
  if (!fits(MOST_REPLICAS)) return undefined;
  let [low, high] = [1, MOST_REPLICAS];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (fits(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
