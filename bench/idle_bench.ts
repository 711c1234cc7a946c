import { Buffer } from "node:buffer";
import type { ResolvedKind } from "../core/api/kind.ts";
import { silentLogger } from "../core/logger.ts";
import { Operator } from "../core/operator/operator.ts";
import { type Bench, type Measure, verify } from "./support/bench.ts";
import { memoryCluster } from "./support/memory_cluster.ts";
import { cpuTime, memoryNow, peakRss } from "./support/sampling.ts";

const Widget: ResolvedKind = {
  group: "bench.coracle.dev",
  version: "v1",
  kind: "Widget",
  plural: "widgets",
  scope: "Namespaced",
};

/** List of small objects. */
function list(count: number): Buffer {
  const parts = Array.from({ length: count }, (_, i) =>
    JSON.stringify({
      metadata: {
        name: `widget-${i.toString(36)}`,
        namespace: `team-${i % 250}`,
        uid: `53f80bda-c36c-4e8d-999c-${String(i).padStart(12, "0")}`,
        resourceVersion: String(1_000 + i),
        generation: 1,
      },
    }));
  return Buffer.from(
    `{"kind":"WidgetList","apiVersion":"bench.coracle.dev/v1","metadata":{"resourceVersion":"9"},"items":[${
      parts.join(",")
    }]}`,
  );
}

/** Stream of changes that stays empty. */
const silence: AsyncIterable<Uint8Array> = {
  [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }),
};

/** Memory of the process, apart from code. */
function held(): number {
  const { heap, external } = memoryNow();
  return heap + external;
}

/**
 * Runs all objects of a list once, by a controller without an interval that
 * fills the caches, and then by one with all default options: what that one
 * holds is the price of its idle primaries beside their bytes in the store.
 */
async function coracle(count: number): Promise<readonly Measure[]> {
  const operator = new Operator({
    client: memoryCluster({
      kind: Widget,
      list: list(count),
      changes: silence,
    }),
    logger: silentLogger,
    reconnect: { watchList: false },
  });
  /** Registers a controller, and waits until it has run all objects. */
  const runAll = async (name: string, maxInterval: false | undefined) => {
    let runs = 0;
    const all = Promise.withResolvers<void>();
    const reconcile = () => {
      if (++runs === count) all.resolve();
    };
    const controller = operator.register(Widget, { reconcile }, {
      name,
      ...(maxInterval === false && { maxInterval }),
    });
    await operator.start();
    await all.promise;
    await new Promise(setImmediate);
    verify(runs === count, "each object must run once");
    const { waiting, delayed } = controller.health();
    verify(waiting === 0, "no object must wait");
    verify(delayed === (maxInterval === false ? 0 : count), "all are idle");
  };
  await runAll("warm-up", false);
  const before = held();
  const cpu = cpuTime();
  await runAll("measured", undefined);
  const time = cpuTime() - cpu;
  const after = held();
  await operator.stop();
  return [
    { unit: "B/idle primary", value: (after - before) / count },
    { unit: "µs CPU/first run", value: time / count },
    peakRss(),
  ];
}

export const bench: Bench = {
  name: "idle",
  what: "memory of a primary that has run and waits for its interval",
  rounds: 2,
  subjects: [100_000, 1_000_000].map((count) => ({
    name: `coracle, ${count / 1_000}k`,
    run: () => coracle(count),
  })),
};
