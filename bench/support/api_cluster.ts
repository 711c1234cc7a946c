import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { startControlPlane } from "../../tests/cluster/control_plane.ts";
import {
  DEFAULT_KUBERNETES,
  programsFolder,
  releaseOf,
} from "../../tests/cluster/go_programs.ts";
import { coracle, Program } from "../../tests/support/program.ts";

/** API server in a process of its own. */
export interface BenchCluster {
  /** Path of the kubeconfig of an administrator. */
  readonly kubeconfig: string;
  /** Description for the report. */
  readonly origin: string;
  /** Process of the API server; 0 if it is on another machine. */
  readonly pid: number;
  stop(): Promise<void>;
}

/**
 * Starts a real API server (that of `KUBECONFIG`, or installed binaries) if it
 * is available.
 */
export async function startReal(): Promise<BenchCluster | undefined> {
  const { KUBECONFIG, KUBEBUILDER_ASSETS } = process.env;
  const release = releaseOf(DEFAULT_KUBERNETES);
  const built = join(programsFolder(release), "kube-apiserver");
  if (!KUBECONFIG && !KUBEBUILDER_ASSETS && !existsSync(built)) {
    return undefined;
  }
  const real = await startControlPlane();
  return real && { ...real, pid: real.pid ?? 0 };
}

/** Starts the embedded API server. */
export async function startEmbedded(): Promise<BenchCluster> {
  const folder = await mkdtemp(join(tmpdir(), "coracle-bench-"));
  const kubeconfig = join(folder, "kubeconfig");
  const server = new Program(
    coracle("apiserver", "--port=0", `--kubeconfig=${kubeconfig}`),
  );
  await server.says(/Serving on https:/);
  return {
    kubeconfig,
    origin: "the embedded API server",
    pid: server.pid,
    async stop() {
      await server.end();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
