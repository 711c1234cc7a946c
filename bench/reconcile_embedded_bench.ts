import { startEmbedded } from "./support/api_cluster.ts";
import type { Bench } from "./support/bench.ts";
import { reconcileBench } from "./support/reconcile_bench.ts";

/** The bench `reconcile` against the embedded API server. */
export const bench: Bench = reconcileBench("reconcile-embedded", startEmbedded);
