import process from "node:process";
import type { BenchCluster } from "./api_cluster.ts";
import { type Bench, MissingError, type Prepared } from "./bench.ts";
import { createObjects } from "./change_load.ts";
import type { LoadTarget } from "./load_target.ts";
import type { Reconciler } from "./reconcilers.ts";

/** Environment variables for the subjects. */
const KUBECONFIG = "CORACLE_BENCH_KUBECONFIG";
const SERVER_PID = "CORACLE_BENCH_SERVER_PID";

/** Bench of operators against a server. */
export interface ReconcileBench {
  readonly name: string;
  readonly what: string;
  /** Starts the server; undefined if it is not installed. */
  readonly start: () => Promise<BenchCluster | undefined>;
  readonly target: LoadTarget;
  readonly objects: number;
  /** Whether the objects exist before the subjects start. */
  readonly existing?: boolean | undefined;
  readonly warmUp: number;
  readonly storms: number;
  readonly single: number;
  readonly rounds?: number | undefined;
  readonly reconcilers: readonly Reconciler[];
}

/** Creates a {@linkcode Bench}. */
export function reconcileBench(options: ReconcileBench): Bench {
  const { name, what, rounds = 5, reconcilers } = options;
  return {
    name,
    what,
    rounds,
    prepare: () => prepare(options),
    subjects: reconcilers.map(({ measure, ...subject }) => ({
      ...subject,
      run: () =>
        measure({
          ...options,
          kubeconfig: process.env[KUBECONFIG] ?? "",
          serverPid: Number(process.env[SERVER_PID]),
        }),
    })),
  };
}

async function prepare(
  { start, target, objects, existing = true }: ReconcileBench,
): Promise<Prepared> {
  const cluster = await start();
  if (cluster === undefined) {
    throw new MissingError(
      "no real API server, which npm run test:cluster builds",
    );
  }
  try {
    const { kubeconfig, origin, pid } = cluster;
    await createObjects({
      kubeconfig,
      target,
      objects: existing ? objects : 0,
    });
    return {
      env: { [KUBECONFIG]: kubeconfig, [SERVER_PID]: String(pid) },
      note: `against ${origin}`,
      stop: () => cluster.stop(),
    };
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}
