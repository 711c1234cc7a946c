import process from "node:process";
import type { BenchCluster } from "./api_cluster.ts";
import { type Bench, MissingError, type Prepared } from "./bench.ts";
import { createGreetings } from "./greeting_load.ts";
import { RECONCILERS } from "./reconcilers.ts";

const OBJECTS = 2_000;
/** Number of storms of each subject; the first one warms up as well. */
const WARM_UP = 1;
const STORMS = 1;
const SINGLE = 300;

/** Environment variables for the subjects. */
const KUBECONFIG = "CORACLE_BENCH_KUBECONFIG";
const SERVER_PID = "CORACLE_BENCH_SERVER_PID";

async function prepare(
  start: () => Promise<BenchCluster | undefined>,
): Promise<Prepared> {
  const cluster = await start();
  if (cluster === undefined) {
    throw new MissingError(
      "no real API server, which npm run test:cluster builds",
    );
  }
  try {
    const { kubeconfig, origin, pid } = cluster;
    await createGreetings(kubeconfig, OBJECTS);
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

/**
 * Bench of operators that write a status per changed spec, against a server.
 *
 * @param start Starts the server; undefined if there is none here.
 */
export function reconcileBench(
  name: string,
  start: () => Promise<BenchCluster | undefined>,
): Bench {
  return {
    name,
    what:
      `from changed spec to status, for ${OBJECTS} objects at once and one by one`,
    rounds: 5,
    prepare: () => prepare(start),
    subjects: RECONCILERS.map(({ measure, ...subject }) => ({
      ...subject,
      run: () =>
        measure({
          kubeconfig: process.env[KUBECONFIG] ?? "",
          serverPid: Number(process.env[SERVER_PID]),
          objects: OBJECTS,
          warmUp: WARM_UP,
          storms: STORMS,
          single: SINGLE,
        }),
    })),
  };
}
