import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { Client } from "../../core/client/client.ts";
import { loadConfig } from "../../core/config/load_config.ts";
import { startControlPlane } from "../../tests/cluster/control_plane.ts";
import { PROJECT } from "../../tests/support/child_process.ts";
import { coracle, Program } from "../../tests/support/program.ts";
import type { Prepared } from "./bench.ts";

/** Environment variable with the kubeconfig of the cluster. */
const VARIABLE = "CORACLE_BENCH_KUBECONFIG";

/**
 * Starts an API server in a process of its own: a real one (that of
 * `KUBECONFIG`, or installed binaries) if available, else the embedded one.
 */
export async function startCluster(): Promise<Prepared> {
  const { KUBECONFIG, KUBEBUILDER_ASSETS } = process.env;
  const built = join(PROJECT, ".cache", "controlplane", "kube-apiserver");
  const real = KUBECONFIG || KUBEBUILDER_ASSETS || existsSync(built)
    ? await startControlPlane()
    : undefined;
  if (real !== undefined) {
    const { kubeconfig, origin } = real;
    return {
      env: { [VARIABLE]: kubeconfig },
      note: `against ${origin}`,
      stop: () => real.stop(),
    };
  }
  const folder = await mkdtemp(join(tmpdir(), "coracle-bench-"));
  const kubeconfig = join(folder, "kubeconfig");
  const server = new Program(
    coracle("apiserver", "--port=0", `--kubeconfig=${kubeconfig}`),
  );
  await server.says(/Serving on https:/);
  return {
    env: { [VARIABLE]: kubeconfig },
    note: "against the embedded API server",
    async stop() {
      await server.end();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Kubeconfig of the cluster of {@linkcode startCluster}. */
export function clusterKubeconfig(): string {
  return process.env[VARIABLE] ?? "";
}

/** Client of the cluster of {@linkcode startCluster}. */
export async function clusterClient(): Promise<Client> {
  return new Client(await loadConfig({ kubeconfig: clusterKubeconfig() }));
}
