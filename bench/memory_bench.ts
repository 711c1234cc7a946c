import { Buffer } from "node:buffer";
import { untyped } from "../core/api/kind.ts";
import type { UntypedObject } from "../core/api/object.ts";
import { MemoryBudget } from "../core/cache/memory_budget.ts";
import { ObjectStore } from "../core/cache/object_store.ts";
import { EventScanner } from "../core/json/event_scanner.ts";
import {
  type Bench,
  type Measure,
  type Subject,
  verify,
} from "./support/bench.ts";
import { PodFactory } from "./support/pods.ts";
import { memoryNow, peakRss } from "./support/sampling.ts";

const Pod = untyped({ group: "", version: "v1", kind: "Pod" });
const MIB = 1024 * 1024;

/** Fills a store with Pods as their watch events tell them. */
function fill(store: ObjectStore<UntypedObject>, count: number): void {
  const pods = new PodFactory();
  const scanner = new EventScanner();
  for (let i = 0; i < count; i++) {
    const bytes = pods.bytes(i);
    const range = { bytes, start: 0, end: bytes.length };
    store.put(scanner.scanObject(range));
  }
}

function check(store: ObjectStore<UntypedObject>, count: number): void {
  verify(store.size === count, "every Pod must be there");
  const pods = new PodFactory({ pruned: true });
  for (let i = 0; i < count; i += Math.ceil(count / 100)) {
    const expected = pods.text(i);
    const { namespace, name } = JSON.parse(expected).metadata;
    const bytes = store.bytes({ namespace, name });
    verify(
      bytes !== undefined && Buffer.from(bytes).toString() === expected,
      `Pod ${i} must be as it was put`,
    );
  }
}

/** One store with everything in one tier. */
function coracle(tier: "bytes" | "compressed", count: number): Subject {
  const run = () => {
    const before = memoryNow();
    const budget = new MemoryBudget(tier === "bytes" ? "64GiB" : count * 100);
    const store = new ObjectStore({
      kind: Pod,
      budget,
      prune: ["metadata.managedFields"],
    });
    const start = performance.now();
    fill(store, count);
    const spent = performance.now() - start;
    budget.settle();
    const after = memoryNow();
    const usage = store.usage();
    check(store, count);
    const held = after.heap + after.external - before.heap - before.external;
    return Promise.resolve([
      { unit: "B/object", value: held / count },
      { unit: "B body/object", value: usage[tier].bytes / count },
      { unit: "B index/object", value: usage.index / count },
      { unit: "B heap/object", value: (after.heap - before.heap) / count },
      { unit: "µs/put with making it", value: spent * 1000 / count },
      { unit: "MiB RSS", value: after.rss / MIB },
      peakRss(),
    ]);
  };
  return { name: `coracle ${tier} ${count / 1000}k`, run };
}

/** What a cache of parsed objects costs, with and without managedFields. */
function parsed(pruned: boolean, count: number): Subject {
  const run = (): Promise<readonly Measure[]> => {
    const before = memoryNow();
    const pods = new PodFactory();
    const cache = new Map<string, unknown>();
    for (let i = 0; i < count; i++) {
      const pod = JSON.parse(pods.text(i));
      if (pruned) delete pod.metadata.managedFields;
      cache.set(`${pod.metadata.namespace}/${pod.metadata.name}`, pod);
    }
    const after = memoryNow();
    verify(cache.size === count, "every Pod must be there");
    const held = after.heap + after.external - before.heap - before.external;
    return Promise.resolve([
      { unit: "B/object", value: held / count },
      { unit: "MiB RSS", value: after.rss / MIB },
      peakRss(),
    ]);
  };
  return {
    name: `Map of objects${pruned ? ", pruned" : ""} ${count / 1000}k`,
    run,
  };
}

export const bench: Bench = {
  name: "memory",
  what: "the memory of a cache of Pods, by tier",
  target: "400 B an object compressed, and 64 B of index",
  rounds: 3,
  subjects: [
    coracle("bytes", 50_000),
    coracle("compressed", 50_000),
    parsed(false, 50_000),
    parsed(true, 50_000),
    coracle("bytes", 200_000),
    coracle("compressed", 200_000),
  ],
};
