import { Client } from "../core/client/client.ts";
import { configFromText } from "../core/config/load_config.ts";
import { ConfigMap, Secret, Service } from "../core/kinds/core_v1.ts";
import { silentLogger } from "../core/logger.ts";
import { Operator } from "../core/operator/operator.ts";
import { limitHeapGrowth } from "../core/operator/process_memory.ts";
import { ClusterList } from "../tests/support/cluster_list.ts";
import {
  type Bench,
  type Measure,
  type Subject,
  verify,
} from "./support/bench.ts";
import { cpuTime, memoryNow, peakRss } from "./support/sampling.ts";
import { startChildServer } from "./support/child_server.ts";

/** Memory that is held, after a turn in which finalizers run. */
async function held() {
  memoryNow();
  await new Promise((resolve) => setTimeout(resolve, 100));
  return memoryNow();
}

/** Operator that one cluster has joined, and then more. */
async function run(clusters: number): Promise<readonly Measure[]> {
  limitHeapGrowth();
  const servers = await startChildServer<readonly string[]>(
    "clusters_server_process.ts",
    clusters + 1,
  );
  const all = await Promise.all(
    servers.ready.map(async (text, index) => ({
      name: `cluster-${index}`,
      target: await configFromText(text),
    })),
  );
  const list = new ClusterList(all.slice(0, 1));
  const client = new Client(all[0]!.target);
  const operator = new Operator({ client, logger: silentLogger });
  const ran = new Set<string | undefined>();
  const ended = Promise.withResolvers<void>();
  const controller = operator.register(ConfigMap, {
    reconcile(_map, { cluster }) {
      ran.add(cluster);
      if (ran.size === all.length) ended.resolve();
    },
  }, {
    clusters: list.source,
    namespaces: ["default"],
    owns: [Secret, Service],
  });
  await operator.start();
  const before = await held();
  const [start, cpu] = [performance.now(), cpuTime()];
  list.set(all);
  await ended.promise;
  const [wall, used] = [performance.now() - start, cpuTime() - cpu];
  const ready = controller.health().clusters?.filter(({ ready }) => ready);
  verify(ready?.length === all.length, "each cluster must have joined");
  const after = await held();
  await operator.stop();
  await client.close();
  await servers.stop();
  const grown = after.heap + after.external - before.heap - before.external;
  return [
    { unit: "KiB/cluster", value: grown / clusters / 1024 },
    {
      unit: "KiB RSS/cluster",
      value: (after.rss - before.rss) / clusters / 1024,
    },
    { unit: "ms CPU to join", value: used / clusters / 1e3 },
    { unit: "s until all have joined", value: wall / 1e3 },
    peakRss(),
  ];
}

function subject(clusters: number): Subject {
  return {
    name: `${clusters} clusters of 3 kinds`,
    run: () => run(clusters),
    settings:
      "limitHeapGrowth(), a controller of ConfigMaps that owns Secrets and Services, HTTP/2",
  };
}

export const bench: Bench = {
  name: "clusters",
  what:
    "clusters that join an operator of one, idle afterwards; their servers beside it",
  rounds: 3,
  subjects: [subject(100), { ...subject(400), rounds: 1 }],
};
