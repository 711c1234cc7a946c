import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
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
}

/** Clusters of all tests, without and with simulation, and what kubectl knows. */
const clusters = new Map<boolean, Promise<ScenarioCluster | undefined>>();
const cache = mkdtemp(join(tmpdir(), "coracle-kubectl-"));

function clusterOf(simulate: boolean): Promise<ScenarioCluster | undefined> {
  const known = clusters.get(simulate);
  const cluster = known ?? startScenarioCluster({ simulate });
  clusters.set(simulate, cluster);
  return cluster;
}

after(async () => {
  for (const cluster of clusters.values()) await (await cluster)?.stop();
  await rm(await cache, { recursive: true, force: true });
});

/**
 * Defines a test of kubectl against an embedded API server over TLS on a
 * loopback port, or against the real cluster of the run, that it shares with
 * others. Each test has its own namespace.
 */
export function kubectlTest(
  title: string,
  body: (kubectl: Kubectl) => Promise<void>,
  options: KubectlTestOptions = {},
): void {
  const { simulate = false } = options;
  test(title, { skip: NO_KUBECTL }, async (context) => {
    const cluster = await clusterOf(simulate);
    if (cluster === undefined) return context.skip("no pods run there");
    const namespace = `kubectl-${randomBytes(4).toString("hex")}`;
    const options = { cache: await cache };
    const kubectl = new Kubectl(cluster.kubeconfig, namespace, options);
    await kubectl.run(`create namespace ${namespace}`);
    try {
      await body(kubectl);
    } finally {
      if (ON_REAL_CLUSTER) {
        await kubectl.run(`delete namespace ${namespace} --wait=false`);
      }
    }
  });
}
