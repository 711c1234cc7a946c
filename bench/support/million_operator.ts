import process from "node:process";
import type { KubernetesObject } from "@coracle/operator/kinds";
import { Client } from "../../core/client/client.ts";
import { openHttpTransport } from "../../core/client/transport/open_transport.ts";
import { ReplicaSet } from "../../core/kinds/apps_v1.ts";
import { Pod } from "../../core/kinds/core_v1.ts";
import { silentLogger } from "../../core/logger.ts";
import { Operator } from "../../core/operator/operator.ts";
import { limitHeapGrowth } from "../../core/operator/process_memory.ts";
import { watch } from "../../core/controller/watch/watch_source.ts";
import { type Measure, verify } from "./bench.ts";
import { PodFactory } from "./pods.ts";
import { cpuTime, median, peakRss } from "./sampling.ts";
import { type ChildServer, startChildServer } from "./child_server.ts";

/** Number of Pods; fewer for a profile, by the variable. */
export const OBJECTS: number = Number(
  process.env.CORACLE_BENCH_OBJECTS ?? 1_000_000,
);
const CHANGES_PER_SECOND = 1_000;
/** Duration of the changes after the sync, in milliseconds. */
const CURRENT_MS = 20_000;
const SAMPLE_MS = 500;
const MIB = 1024 ** 2;

/**
 * Starts `live_pods_process.ts`.
 *
 * @param changesPerSecond Changes of the Pods after the first list.
 */
export async function startMillion(
  changesPerSecond: number,
): Promise<ChildServer<{ readonly url: string }>> {
  return await startChildServer(
    "live_pods_process.ts",
    OBJECTS,
    changesPerSecond,
  );
}

/** Samples the memory of this process. */
function watchMemory() {
  const curve: [number, number][] = [];
  const start = performance.now();
  const look = () => {
    const seconds = (performance.now() - start) / 1000;
    const rss = process.memoryUsage.rss() / MIB;
    curve.push([Number(seconds.toFixed(1)), Math.round(rss)]);
  };
  look();
  const timer = setInterval(look, SAMPLE_MS);
  return {
    curve,
    stop() {
      clearInterval(timer);
      look();
    },
  };
}

/** Times reads of some Pods, one after the other, in microseconds. */
async function timeReads(
  read: (pod: KubernetesObject) => unknown,
  pods: readonly KubernetesObject[],
): Promise<number> {
  const times: number[] = [];
  for (const pod of pods) {
    const start = performance.now();
    await read(pod);
    times.push(1000 * (performance.now() - start));
    await new Promise(setImmediate);
  }
  return median(times);
}

/**
 * Measures an operator that caches a million changing Pods of another process,
 * and reads them by key and by owner.
 */
export async function followMillion(): Promise<readonly Measure[]> {
  limitHeapGrowth();
  const server = await startMillion(CHANGES_PER_SECOND);
  const memory = watchMemory();
  const transport = await openHttpTransport({ server: server.ready.url });
  const operator = new Operator({
    client: new Client({ transport }),
    logger: silentLogger,
    cache: { budget: "200MiB" },
    syncTimeout: "10m",
  });
  const source = watch(Pod);
  let changes = 0;
  const counting = watch(Pod, {
    name: "counted",
    filters: {
      event(event) {
        if (event.type === "updated") changes++;
        return false;
      },
    },
  });
  operator.register(ReplicaSet, { reconcile() {} }, {
    sources: [source, counting],
  });
  const from = performance.now();
  const cpu = cpuTime();
  await operator.start();
  const synced = (performance.now() - from) / 1000;
  const syncCpu = (cpuTime() - cpu) / OBJECTS;
  const factory = new PodFactory();
  const some = Array.from(
    { length: 200 },
    (_, i): KubernetesObject => JSON.parse(factory.text(i * 4_999 + 7)),
  );
  const before = changes;
  const begun = performance.now();
  const reads: number[] = [];
  const lookups: number[] = [];
  while (performance.now() - begun < CURRENT_MS) {
    reads.push(
      await timeReads(async ({ metadata }) => {
        const { namespace, name } = metadata;
        const pod = await source.get?.({ namespace, name });
        verify(pod?.metadata.name === name, `${name} must be there`);
      }, some),
    );
    lookups.push(
      await timeReads(async ({ metadata }) => {
        const [owner] = metadata.ownerReferences ?? [];
        const { namespace } = metadata;
        const replicaSet = { metadata: { ...owner, namespace } };
        const found = await source.secondaries?.(replicaSet as ReplicaSet);
        verify(found?.length === 8, `all of ${owner?.name} must be found`);
      }, some),
    );
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  const perSecond = 1000 * (changes - before) / (performance.now() - begun);
  verify(perSecond > CHANGES_PER_SECOND / 2, `it must keep up: ${perSecond}`);
  memory.stop();
  await operator.stop();
  await transport.close();
  await server.stop();
  const { value, unit } = peakRss();
  return [
    { unit, value, curve: memory.curve },
    { unit: "MiB RSS", value: memory.curve.at(-1)?.[1] ?? NaN },
    { unit: "s to sync", value: synced },
    { unit: "µs CPU/object to sync", value: syncCpu },
    { unit: "changes/s", value: perSecond },
    { unit: "µs/point read", value: median(reads) },
    { unit: "µs/index lookup of 8", value: median(lookups) },
  ];
}
