import assert from "node:assert/strict";
import { test } from "node:test";
import { partOfRounds } from "../support/part_of_rounds.ts";
import { runSeed } from "./invariants/run_seed.ts";
import { planOf } from "./invariants/seed_plan.ts";
import { smallestPlan } from "./invariants/smallest_plan.ts";

/** Seeds by coordination; `npm run check:seeds` runs as many as wanted. */
const SEEDS = { none: 30, leader: 8, sharding: 6 };

for (const coordination of ["none", "leader", "sharding"] as const) {
  test(`Generated operators keep the invariants, coordination ${coordination}`, async () => {
    let ran = 0;
    const seeds = partOfRounds(SEEDS[coordination]);
    for (let seed = 0; ran < seeds; seed++) {
      const plan = planOf(seed);
      if (plan.coordination !== coordination) continue;
      ran++;
      const violations = await runSeed(plan);
      assert.deepEqual(
        violations,
        [],
        `npm run check:seeds -- --seed ${seed}`,
      );
    }
  });
}

test("A plan that fails is made smaller as long as it fails alike", async () => {
  const plan = planOf(3);
  const put = plan.steps.find((step) => step.do === "put");
  assert(put !== undefined && plan.steps.length > 1);
  const failure = [{ invariant: "caches equal the server", detail: "" }];
  const smallest = await smallestPlan(
    plan,
    failure,
    ({ steps, controllers }) =>
      Promise.resolve(
        steps.includes(put)
          ? failure
          : [{ invariant: "another", detail: String(controllers.length) }],
      ),
  );
  assert.deepEqual(smallest.steps, [put]);
  assert.deepEqual(smallest.perturbations, []);
  assert.equal(smallest.controllers.length, 1);
});
