import { startReal } from "./support/api_cluster.ts";
import type { Bench } from "./support/bench.ts";
import { GREETINGS } from "./support/load_target.ts";
import { reconcileBench } from "./support/reconcile_bench.ts";
import { RECONCILERS } from "./support/reconcilers.ts";

export const bench: Bench = reconcileBench({
  name: "reconcile",
  what: "changed spec to status, 2,000 at once and one by one, real API server",
  start: startReal,
  target: GREETINGS,
  objects: 2_000,
  warmUp: 7,
  storms: 2,
  single: 1_000,
  reconcilers: RECONCILERS,
});
