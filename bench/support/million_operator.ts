import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import type { KubernetesObject } from "@coracle/operator/kinds";
import { Client } from "../../core/client/client.ts";
import { openHttpTransport } from "../../core/client/transport/open_transport.ts";
import { ReplicaSet } from "../../core/kinds/apps_v1.ts";
import { ConfigMap, Pod } from "../../core/kinds/core_v1.ts";
import { defaultFinalizer } from "../../core/controller/finalizer.ts";
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
 * @param finalizer Finalizer of all Pods; none if absent.
 */
export async function startMillion(
  changesPerSecond: number,
  finalizer?: string,
): Promise<ChildServer<{ readonly url: string }>> {
  return await startChildServer(
    "live_pods_process.ts",
    OBJECTS,
    changesPerSecond,
    ...finalizer === undefined ? [] : [finalizer],
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

/** Parts of the memory of this process; the rest is code and what malloc keeps. */
function memoryParts(operator: Operator): readonly Measure[] {
  const { heapTotal, arrayBuffers } = process.memoryUsage();
  const { memory } = operator.inspect() as { memory: { cache: number } };
  return [
    { unit: "MiB V8 heap", value: heapTotal / MIB },
    { unit: "MiB array buffers", value: arrayBuffers / MIB },
    { unit: "MiB of them caches", value: memory.cache / MIB },
  ];
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
  const parts = memoryParts(operator);
  await operator.stop();
  await transport.close();
  await server.stop();
  const { value, unit } = peakRss();
  return [
    { unit, value, curve: memory.curve },
    { unit: "MiB RSS", value: memory.curve.at(-1)?.[1] ?? NaN },
    ...parts,
    { unit: "s to sync", value: synced },
    { unit: "µs CPU/object to sync", value: syncCpu },
    { unit: "changes/s", value: perSecond },
    { unit: "µs/point read", value: median(reads) },
    { unit: "µs/index lookup of 8", value: median(lookups) },
  ];
}

/**
 * Measures an operator with a million primaries and all default options: they have
 * an interval, a finalizer and an owned kind, and each change runs one.
 */
export async function reconcileMillion(): Promise<readonly Measure[]> {
  limitHeapGrowth();
  const server = await startMillion(CHANGES_PER_SECOND, defaultFinalizer(Pod));
  const memory = watchMemory();
  const transport = await openHttpTransport({ server: server.ready.url });
  const operator = new Operator({
    client: new Client({ transport }),
    logger: silentLogger,
    cache: { budget: "200MiB" },
    syncTimeout: "10m",
  });
  let runs = 0;
  const controller = operator.register(Pod, {
    reconcile() {
      runs++;
    },
    cleanup() {},
  }, { owns: [ConfigMap] });
  const cpu = cpuTime();
  await operator.start();
  while (runs < OBJECTS) await sleep(SAMPLE_MS);
  const firstCpu = (cpuTime() - cpu) / OBJECTS;
  const before = runs;
  const begun = performance.now();
  await sleep(CURRENT_MS);
  const perSecond = 1000 * (runs - before) / (performance.now() - begun);
  verify(perSecond > CHANGES_PER_SECOND / 2, `it must keep up: ${perSecond}`);
  const { delayed } = controller.health();
  verify(delayed > 0.99 * OBJECTS, "all must wait for their interval");
  memory.stop();
  const parts = memoryParts(operator);
  await operator.stop();
  await transport.close();
  await server.stop();
  return [
    peakRss(),
    { unit: "MiB RSS", value: memory.curve.at(-1)?.[1] ?? NaN },
    ...parts,
    { unit: "µs CPU/object to first run", value: firstCpu },
    { unit: "runs/s", value: perSecond },
  ];
}
