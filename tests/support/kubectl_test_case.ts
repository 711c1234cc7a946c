import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Kubectl, NO_KUBECTL } from "./kubectl.ts";
import { startScenarioCluster } from "./scenario_cluster.ts";

/** Options of {@linkcode kubectlTest}. */
export interface KubectlTestOptions {
  /** Whether the embedded server simulates that Deployments become ready. */
  readonly simulate?: boolean | undefined;
}

/**
 * Defines a test of kubectl against the embedded API server over TLS on a
 * loopback port, or against the real cluster of the run. Each test has its own
 * namespace.
 */
export function kubectlTest(
  title: string,
  body: (kubectl: Kubectl) => Promise<void>,
  options: KubectlTestOptions = {},
): void {
  const { simulate = false } = options;
  test(title, { skip: NO_KUBECTL }, async (context) => {
    const cluster = await startScenarioCluster({ simulate });
    if (cluster === undefined) return context.skip("no pods run there");
    const namespace = `kubectl-${randomBytes(4).toString("hex")}`;
    const cache = await mkdtemp(join(tmpdir(), "coracle-kubectl-"));
    const kubectl = new Kubectl(cluster.kubeconfig, namespace, { cache });
    try {
      await kubectl.run(`create namespace ${namespace}`);
      try {
        await body(kubectl);
      } finally {
        await kubectl.run(`delete namespace ${namespace} --wait=false`);
      }
    } finally {
      await cluster.stop();
      await rm(cache, { recursive: true, force: true });
    }
  });
}
