import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { Client } from "../core/client/client.ts";
import { openHttpTransport } from "../core/client/transport/open_transport.ts";
import { watch } from "../core/controller/watch/watch_source.ts";
import { ReplicaSet } from "../core/kinds/apps_v1.ts";
import { Pod } from "../core/kinds/core_v1.ts";
import { silentLogger } from "../core/logger.ts";
import { Operator } from "../core/operator/operator.ts";
import { limitHeapGrowth } from "../core/operator/process_memory.ts";
import { type Bench, type Measure, verify } from "./support/bench.ts";
import { OBJECTS, startMillion } from "./support/million_operator.ts";
import { PodFactory } from "./support/pods.ts";
import { cpuTime, memoryNow, peakOfStart } from "./support/sampling.ts";

const MIB = 2 ** 20;
/** Variable with the folder of the snapshot. */
const FOLDER = "CORACLE_BENCH_SNAPSHOT";

/** Starts an operator with a million Pods, and stops it: it saves them. */
async function start(isWarm: boolean): Promise<readonly Measure[]> {
  limitHeapGrowth();
  const path = process.env[FOLDER] ?? "";
  if (!isWarm) rmSync(path, { recursive: true, force: true });
  const server = await startMillion(0);
  const transport = await openHttpTransport({ server: server.ready.url });
  const operator = new Operator({
    client: new Client({ transport }),
    logger: silentLogger,
    cache: { budget: "200MiB", snapshot: { path } },
    syncTimeout: "1h",
    shutdownGrace: "2m",
  });
  const source = watch(Pod);
  operator.register(ReplicaSet, { reconcile() {} }, { sources: [source] });
  const [from, cpu] = [performance.now(), cpuTime()];
  await operator.start();
  const [seconds, time] = [performance.now() - from, cpuTime() - cpu];
  const answer = await fetch(`${server.ready.url}/sent`);
  const { bytes } = await answer.json() as { bytes: number };
  verify(isWarm === (bytes < MIB), "only the cold start may list");
  const factory = new PodFactory();
  for (let i = 0; i < OBJECTS; i += Math.ceil(OBJECTS / 100)) {
    const { namespace, name } = JSON.parse(factory.text(i)).metadata;
    const pod = await source.get?.({ namespace, name });
    verify(pod?.metadata.name === name, `${name} must be there`);
  }
  const { rss } = memoryNow();
  const peak = peakOfStart(rss);
  await operator.stop();
  await transport.close();
  await server.stop();
  const files = readdirSync(path, { recursive: true, withFileTypes: true });
  const saved = files.filter((file) => file.isFile()).reduce(
    (sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size,
    0,
  );
  return [
    { unit: "s to ready", value: seconds / 1_000 },
    { unit: "s CPU to ready", value: time / 1e6 },
    { unit: "MiB received", value: bytes / MIB },
    { unit: "MiB saved", value: saved / MIB },
    { unit: "MiB RSS", value: rss / MIB },
    ...peak,
  ];
}

export const bench: Bench = {
  name: "start",
  what: "start of an operator with 1,000,000 Pods, cold and from a snapshot",
  rounds: 1,
  subjects: [
    { name: "coracle, cold", run: () => start(false) },
    { name: "coracle, warm", run: () => start(true) },
  ],
  prepare() {
    const folder = mkdtempSync(join(tmpdir(), "coracle-start-"));
    return Promise.resolve({
      env: { [FOLDER]: join(folder, "snapshot") },
      stop: () =>
        Promise.resolve(rmSync(folder, { recursive: true, force: true })),
    });
  },
};
