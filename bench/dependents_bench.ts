import { startEmbedded } from "./support/api_cluster.ts";
import type { Bench } from "./support/bench.ts";
import { WEB_APPS } from "./support/load_target.ts";
import { reconcileBench } from "./support/reconcile_bench.ts";
import { WORKFLOW_RUNNERS } from "./support/reconcilers.ts";

export const bench: Bench = reconcileBench({
  name: "dependents",
  what:
    "ten dependents in a workflow, one of them changed: one write; embedded API server",
  start: startEmbedded,
  target: WEB_APPS,
  objects: 200,
  warmUp: 5,
  storms: 5,
  single: 50,
  rounds: 2,
  reconcilers: WORKFLOW_RUNNERS,
});
