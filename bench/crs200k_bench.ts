import process from "node:process";
import type { Bench } from "./support/bench.ts";
import { followShapes } from "./support/shaped_operator.ts";

/** Number of objects; fewer for a profile, by the variable. */
const OBJECTS = Number(process.env.CORACLE_BENCH_OBJECTS ?? 200_000);

export const bench: Bench = {
  name: "crs200k",
  what:
    "the memory of an operator with 200,000 CloneSets of OpenKruise, all readable",
  rounds: 1,
  subjects: [{
    name: `${OBJECTS.toLocaleString("en")} CloneSets`,
    run: () => followShapes("clonesets", OBJECTS, { budget: "112MiB" }),
    settings: 'limitHeapGrowth(), cache: { budget: "112MiB" }',
  }],
};
