import { startReal } from "./support/api_cluster.ts";
import type { Bench } from "./support/bench.ts";
import { reconcileBench } from "./support/reconcile_bench.ts";

export const bench: Bench = reconcileBench("reconcile", startReal);
