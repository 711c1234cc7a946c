import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Client } from "@coracle/operator/client";
import { Namespace } from "@coracle/operator/kinds";
import { Kubectl, NO_KUBECTL } from "./kubectl.ts";
import {
  ON_REAL_CLUSTER,
  type ScenarioCluster,
  startScenarioCluster,
} from "./scenario_cluster.ts";

/** Options of {@linkcode kubectlTest}. */
export interface KubectlTestOptions {
  /** Whether the embedded server simulates that Deployments become ready. */
  readonly simulate?: boolean | undefined;
  /** What older servers lack: a path of discovery, and a resource there. */
  readonly needs?: readonly [path: string, resource: string] | undefined;
}

/** Cluster that tests share, and a client, which costs less than kubectl. */
interface SharedCluster {
  readonly cluster: ScenarioCluster;
  readonly client: Client;
}

/** Clusters of all tests, without and with simulation, and what kubectl knows. */
const clusters = new Map<boolean, Promise<SharedCluster | undefined>>();
let cache: Promise<string> | undefined;
/** Whether the end of the tests stops the clusters. */
let isEnding = false;

function clusterOf(simulate: boolean): Promise<SharedCluster | undefined> {
  const shared = clusters.get(simulate) ?? startShared(simulate);
  clusters.set(simulate, shared);
  return shared;
}

async function startShared(
  simulate: boolean,
): Promise<SharedCluster | undefined> {
  const cluster = await startScenarioCluster({ simulate });
  if (cluster === undefined) return undefined;
  const { kubeconfig } = cluster;
  return { cluster, client: await Client.load({ kubeconfig }) };
}

/** Stops the clusters after the tests: of all files, and on Bun of each file. */
function stopAtEnd(): void {
  if (isEnding) return;
  isEnding = true;
  after(async () => {
    isEnding = false;
    const [used, folder] = [[...clusters.values()], cache];
    clusters.clear();
    cache = undefined;
    for (const shared of used) {
      await (await shared)?.client.close();
      await (await shared)?.cluster.stop();
    }
    if (folder) await rm(await folder, { recursive: true, force: true });
  });
}

/**
 * Defines a test of kubectl against an embedded API server over TLS on a
 * loopback port, or against the real cluster of the run, that it shares with
 * others. Each test has its own namespace.
 */
export function kubectlTest(
  title: string,
  body: (kubectl: Kubectl, cluster: ScenarioCluster) => Promise<void>,
  options: KubectlTestOptions = {},
): void {
  const { simulate = false, needs } = options;
  stopAtEnd();
  test(title, { skip: NO_KUBECTL }, async (context) => {
    const shared = await clusterOf(simulate);
    if (shared === undefined) return context.skip("no pods run there");
    const { cluster, client } = shared;
    const namespace = `kubectl-${randomBytes(4).toString("hex")}`;
    cache ??= mkdtemp(join(tmpdir(), "coracle-kubectl-"));
    const kubectl = new Kubectl(cluster.kubeconfig, namespace, {
      cache: await cache,
    });
    if (needs !== undefined) {
      const [path, resource] = needs;
      const list = await kubectl.run(`get --raw ${path}`);
      const { resources } = JSON.parse(list) as {
        resources: readonly { readonly name: string }[];
      };
      if (!resources.some(({ name }) => name === resource)) {
        return context.skip(`the server has no ${resource} in ${path}`);
      }
    }
    await client.create(Namespace, { metadata: { name: namespace } });
    try {
      await body(kubectl, cluster);
    } finally {
      if (ON_REAL_CLUSTER) await client.delete(Namespace, { name: namespace });
    }
  });
}
