import { startReal } from "./support/api_cluster.ts";
import type { Bench } from "./support/bench.ts";
import { GREETINGS } from "./support/load_target.ts";
import { reconcileBench } from "./support/reconcile_bench.ts";
import { CLEANERS } from "./support/reconcilers.ts";

export const bench: Bench = reconcileBench({
  name: "cleanup",
  what:
    "objects with a finalizer: create, status, delete; three writes, real API server",
  start: startReal,
  target: GREETINGS,
  objects: 500,
  existing: false,
  warmUp: 5,
  storms: 2,
  single: 0,
  rounds: 2,
  reconcilers: CLEANERS,
});
