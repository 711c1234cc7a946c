import { runSeed, type Violation } from "./run_seed.ts";
import type { SeedPlan } from "./seed_plan.ts";

/** Runs that the search for the smallest plan takes at most. */
const MAX_RUNS = 80;

/**
 * Returns the smallest plan that was found to fail in the same way.
 *
 * @param run Runs a plan.
 */
export async function smallestPlan(
  plan: SeedPlan,
  [first]: readonly Violation[],
  run: (plan: SeedPlan) => Promise<readonly Violation[]> = runSeed,
): Promise<SeedPlan> {
  let smallest = plan;
  let runs = 0;
  const tries = async (smaller: SeedPlan) => {
    if (runs++ >= MAX_RUNS) return false;
    const violations = await run(smaller);
    if (violations[0]?.invariant !== first?.invariant) return false;
    smallest = smaller;
    return true;
  };
  for (const part of ["perturbations", "steps", "controllers"] as const) {
    for (let at = smallest[part].length - 1; at >= 0; at--) {
      if (part === "controllers" && smallest[part].length === 1) break;
      await tries({ ...smallest, [part]: smallest[part].toSpliced(at, 1) });
    }
  }
  const { network } = smallest;
  await tries({ ...smallest, network: { ...network, slow: 0 } });
  await tries({ ...smallest, network: { ...network, cutAt: undefined } });
  const needsOther = smallest.perturbations.some((one) =>
    one.do === "twins" || one.do === "leader"
  );
  if (!needsOther) await tries({ ...smallest, coordination: "none" });
  return smallest;
}
