import process from "node:process";
import type { UntypedObject } from "@coracle/operator/client";
import { untyped } from "../core/api/kind.ts";
import { MemoryBudget } from "../core/cache/store/memory_budget.ts";
import { ObjectStore } from "../core/cache/store/object_store.ts";
import { rangeText, wholeRange } from "../core/json/byte_range.ts";
import { EventScanner } from "../core/json/event_scanner.ts";
import { limitHeapGrowth } from "../core/operator/process_memory.ts";
import {
  type Bench,
  type Measure,
  type Subject,
  verify,
} from "./support/bench.ts";
import { feedPods } from "./support/pod_feed.ts";
import { PodFactory } from "./support/pods.ts";
import { memoryNow, peakRss } from "./support/sampling.ts";

const Pod = untyped({ group: "", version: "v1", kind: "Pod" });
const MIB = 1024 * 1024;
const MILLION = 1_000_000;

/** Verifies a hundred Pods: stored bytes, or the key alone. */
function check(
  store: ObjectStore<UntypedObject>,
  { count, changes }: StoreSubject,
): void {
  verify(store.size === count, "every Pod must be there");
  const keysAlone = store.usage().keyOnly.objects === count;
  const pods = new PodFactory({ pruned: true });
  for (let i = 0; i < count; i += Math.ceil(count / 100)) {
    const expected = pods.text(
      i,
      changes ? changedVersion(i, count) : undefined,
    );
    const { namespace, name } = JSON.parse(expected).metadata;
    const header = store.header({ namespace, name });
    verify(store.has({ namespace, name }), `Pod ${i} must be there`);
    if (keysAlone) continue;
    verify(
      header !== undefined && rangeText(header) === expected,
      `Pod ${i} must be as it was put`,
    );
  }
}

/** Memory of one subject after garbage collection. */
interface Held {
  readonly bytes: number;
  readonly heap: number;
  readonly cpu: number;
  readonly rss: number;
}

/** Fills a cache with Pods from another process. */
async function hold(
  count: number,
  take: Parameters<typeof feedPods>[1],
  settle: () => void,
): Promise<Held> {
  const before = memoryNow();
  const cpuBefore = process.cpuUsage();
  await feedPods(count, take);
  settle();
  const { user, system } = process.cpuUsage(cpuBefore);
  const after = memoryNow();
  return {
    bytes: after.heap + after.external - before.heap - before.external,
    heap: after.heap - before.heap,
    cpu: user + system,
    rss: after.rss,
  };
}

function changedVersion(number: number, count: number): number {
  return 2 * count + number;
}

/**
 * Changes each Pod of a full store once, distant ones one after the other.
 *
 * @returns Microseconds of processor time a change.
 */
function changeAll(store: ObjectStore<UntypedObject>, count: number): number {
  const pods = new PodFactory();
  const scanner = new EventScanner();
  const { user, system } = process.cpuUsage();
  for (let i = 0; i < count; i++) {
    const number = i * 7_919 % count;
    const text = pods.text(number, changedVersion(number, count));
    store.put(scanner.scanObject(wholeRange(text)));
  }
  const { user: userNow, system: systemNow } = process.cpuUsage();
  return (userNow + systemNow - user - system) / count;
}

function measures(held: Held, count: number): Measure[] {
  return [
    { unit: "B/object", value: held.bytes / count },
    { unit: "B heap/object", value: held.heap / count },
    { unit: "µs CPU/object", value: held.cpu / count },
    { unit: "MiB RSS", value: held.rss / MIB },
    peakRss(),
  ];
}

/** Options of the store of a subject. */
interface StoreSubject {
  readonly count: number;
  readonly budget: number | string;
  /** Whether bodies may be dropped. */
  readonly bounded?: boolean;
  /** Whether each Pod changes once, and is measured then. */
  readonly changes?: boolean;
  readonly rounds?: number;
}

/** Subject: a store whose budget leads to one tier. */
function coracle(name: string, options: StoreSubject): Subject {
  const { count } = options;
  const run = async () => {
    limitHeapGrowth();
    const budget = new MemoryBudget(options.budget);
    const store = new ObjectStore({
      kind: Pod,
      budget,
      prune: ["metadata.managedFields"],
      ...(options.bounded && { fetch: () => Promise.resolve(undefined) }),
    });
    const held = await hold(
      count,
      (header) => store.put(header),
      () => budget.settle(),
    );
    const result = measures(held, count);
    if (options.changes) {
      result.push({ unit: "µs CPU/change", value: changeAll(store, count) });
      budget.settle();
    }
    const { bytes, compressed, index } = store.usage();
    result.push(
      {
        unit: "B body/object",
        value: (bytes.bytes + compressed.bytes) / count,
      },
      { unit: "B index/object", value: index / count },
    );
    check(store, options);
    return result;
  };
  return { name, run, rounds: options.rounds };
}

/** Subject: a cache of parsed objects, with or without managedFields. */
function parsed(name: string, count: number, pruned: boolean): Subject {
  const run = async () => {
    const cache = new Map<string, unknown>();
    const held = await hold(count, (header) => {
      const pod = JSON.parse(rangeText(header));
      if (pruned) delete pod.metadata.managedFields;
      cache.set(`${pod.metadata.namespace}/${pod.metadata.name}`, pod);
    }, () => {});
    verify(cache.size === count, "every Pod must be there");
    return measures(held, count);
  };
  return { name, run, rival: true };
}

/** Only for its subjects: the others measure stores without an operator. */
function loadOperator() {
  return import("./support/million_operator.ts");
}

/** Subject: another one with the settings that a deployed operator has on Node. */
function deployed(name: string): Subject {
  const run = async () => {
    const { DEPLOYED } = await import("./support/deployed.ts");
    const { runSubject } = await import("./support/subject_process.ts");
    const subject = { bench: "memory", subject: name, prepared: undefined };
    return await runSubject({ ...subject, command: DEPLOYED.node });
  };
  return {
    name: `${name}, as deployed`,
    run,
    rounds: 1,
    settings: "environment of the Deployment, flags of the Dockerfile",
  };
}

const everything = "64GiB";
/**
 * Budget that is too small for anything, so that everything moves to the lowest
 * tier.
 */
const least = 1;

export const bench: Bench = {
  name: "memory",
  what:
    "the memory of a cache of Pods, by tier; and of an operator that caches 1,000,000 of them, or reconciles them with all default options, at 1,000 changes a second",
  rounds: 3,
  load: loadOperator,
  subjects: [
    coracle("bytes, 50k", { count: 50_000, budget: everything }),
    coracle("compressed, 50k", { count: 50_000, budget: least }),
    coracle("compressed, 50k, all changed", {
      count: 50_000,
      budget: least,
      changes: true,
    }),
    parsed("Map of objects, 50k", 50_000, false),
    parsed("Map of pruned objects, 50k", 50_000, true),
    coracle("bytes, 200k", { count: 200_000, budget: everything, rounds: 1 }),
    coracle("compressed, 200k", { count: 200_000, budget: least, rounds: 1 }),
    coracle("200 MiB budget, 1M", {
      count: MILLION,
      budget: "200MiB",
      rounds: 1,
    }),
    coracle("keys alone, 1M", {
      count: MILLION,
      budget: least,
      bounded: true,
      rounds: 1,
    }),
    {
      name: "operator, 1M",
      rounds: 1,
      run: async () => (await loadOperator()).followMillion(),
    },
    {
      name: "operator, 1M primaries",
      rounds: 1,
      run: async () => (await loadOperator()).reconcileMillion(),
    },
    deployed("operator, 1M"),
    deployed("operator, 1M primaries"),
  ],
};
