import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Client } from "../core/client/client.ts";
import { loadConfig } from "../core/config/load_config.ts";
import { patchStatus } from "../core/controller/result.ts";
import { installCrd } from "../core/crd/install_crd.ts";
import { silentLogger } from "../core/logger.ts";
import { Operator } from "../core/operator/operator.ts";
import { clusterKubeconfig, startCluster } from "./support/api_cluster.ts";
import {
  type Bench,
  type Measure,
  type Prepared,
  verify,
} from "./support/bench.ts";
import { startGoRival } from "./support/go_rivals.ts";
import { Greeting, greetingText } from "./support/greeting.ts";
import { loadRival } from "./support/rival.ts";
import { currentRuntime } from "./support/runtime.ts";
import { cpuTime, peakRss } from "./support/sampling.ts";

/** Operator of greetings that runs until it is stopped. */
interface Greeter {
  /** Stops the operator; returns its measures if it is another process. */
  stop(): Promise<readonly Measure[] | undefined>;
}

/** Output of `greeting_load.ts`, in milliseconds. */
interface Load {
  readonly single: readonly number[];
  readonly many: readonly number[];
  readonly perSecond: number;
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? NaN;
}

async function measure(
  start: () => Promise<Greeter>,
): Promise<readonly Measure[]> {
  const greeter = await start();
  const { program, flags } = currentRuntime();
  const file = fileURLToPath(
    new URL("./support/greeting_load.ts", import.meta.url),
  );
  const cpu = cpuTime();
  const { stdout } = await promisify(execFile)(program, [...flags, file], {
    timeout: 5 * 60_000,
  });
  const { single, many, perSecond } = JSON.parse(stdout) as Load;
  verify(single.length > 0 && many.length > 0, "all must be greeted");
  const used = { unit: "s CPU", value: (cpuTime() - cpu) / 1e6 };
  const own = await greeter.stop() ?? [used, peakRss()];
  return [
    { unit: "ms p50", value: percentile(single, 0.5) },
    { unit: "ms p99", value: percentile(single, 0.99) },
    { unit: "ms p50 in a storm", value: percentile(many, 0.5) },
    { unit: "ms p99 in a storm", value: percentile(many, 0.99) },
    { unit: "statuses/s in a storm", value: perSecond },
    ...own,
  ];
}

async function coracle(): Promise<Greeter> {
  const client = new Client(
    await loadConfig({ kubeconfig: clusterKubeconfig() }),
  );
  const operator = new Operator({ client, logger: silentLogger });
  operator.register(Greeting, {
    reconcile: ({ spec }) => patchStatus({ text: greetingText(spec) }),
  });
  await operator.start();
  return {
    async stop() {
      await operator.stop();
      await client.close();
      return undefined;
    },
  };
}

/** Part of client-node that is used. */
interface ClientNode {
  readonly KubeConfig: new () => {
    loadFromFile(file: string): void;
    makeApiClient(api: unknown): CustomObjectsApi;
  };
  readonly CustomObjectsApi: unknown;
  readonly PatchStrategy: { readonly MergePatch: string };
  setHeaderOptions(name: string, value: string): unknown;
  makeInformer(
    config: unknown,
    path: string,
    list: () => Promise<unknown>,
  ): {
    on(event: string, callback: (object: Greeting) => void): void;
    start(): Promise<void>;
    stop(): Promise<void>;
  };
}

interface CustomObjectsApi {
  listClusterCustomObject(of: unknown): Promise<unknown>;
  patchNamespacedCustomObjectStatus(
    of: unknown,
    options: unknown,
  ): Promise<unknown>;
}

/** Subject client-node: a loop by hand, as with the official client. */
async function clientNode(): Promise<Greeter> {
  const rival = await loadRival<ClientNode>("@kubernetes/client-node");
  const config = new rival.KubeConfig();
  config.loadFromFile(clusterKubeconfig());
  const api = config.makeApiClient(rival.CustomObjectsApi);
  const { group, version, plural } = Greeting;
  const merge = rival.setHeaderOptions(
    "Content-Type",
    rival.PatchStrategy.MergePatch,
  );
  const reconcile = async ({ metadata, spec, status }: Greeting) => {
    const text = greetingText(spec);
    if (status?.text === text) return;
    const { name, namespace } = metadata;
    await api.patchNamespacedCustomObjectStatus(
      { group, version, plural, namespace, name, body: { status: { text } } },
      merge,
    );
  };
  const informer = rival.makeInformer(
    config,
    `/apis/${group}/${version}/${plural}`,
    () => api.listClusterCustomObject({ group, version, plural }),
  );
  informer.on("add", (greeting) => void reconcile(greeting));
  informer.on("update", (greeting) => void reconcile(greeting));
  let stopped = false;
  informer.on("error", (error) => {
    if (!stopped) throw error;
  });
  await informer.start();
  return {
    async stop() {
      stopped = true;
      await informer.stop();
      return undefined;
    },
  };
}

async function controllerRuntime(): Promise<Greeter> {
  const rival = startGoRival("reconcile", clusterKubeconfig());
  verify(await rival.next() === "synced", "its cache must be complete");
  return {
    async stop() {
      rival.endInput();
      return await rival.next() as readonly Measure[];
    },
  };
}

async function prepare(): Promise<Prepared> {
  const cluster = await startCluster();
  try {
    const { CORACLE_BENCH_KUBECONFIG: kubeconfig } = cluster.env;
    const client = new Client(await loadConfig({ kubeconfig }));
    await installCrd(client, Greeting);
    await client.close();
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return cluster;
}

export const bench: Bench = {
  name: "reconcile",
  what:
    "from the create of an object to its status, one by one and 1,000 at once",
  rounds: 2,
  prepare,
  subjects: [
    { name: "coracle", run: () => measure(coracle) },
    {
      name: "client-node, by hand",
      rival: true,
      run: () => measure(clientNode),
    },
    {
      name: "controller-runtime",
      rival: true,
      needs: "go",
      run: () => measure(controllerRuntime),
    },
  ],
};
