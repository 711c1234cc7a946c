import assert from "node:assert/strict";
import { test } from "node:test";
import { runScenario } from "../../../dev/testing/check/check_run.ts";
import { operatorSource } from "../../../dev/testing/check/operator_source.ts";
import type { Perturbation } from "../../../dev/testing/check/plan.ts";
import {
  type RunRecord,
  writesOf,
  writeText,
} from "../../../dev/testing/check/run_record.ts";
import { referenceOf } from "../../../dev/testing/check/object_reference.ts";
import type { Recording } from "../../../dev/testing/check/resumption.ts";
import { clusterState } from "../../../dev/testing/check/state.ts";

const gadget = (image: string) => ({
  apiVersion: "corpus.coracle.dev/v1",
  kind: "Gadget",
  metadata: { name: "sample", namespace: "default" },
  spec: { image },
});
const scenario = {
  name: "life",
  known: 0,
  steps: [
    { apply: gadget("one") },
    { apply: gadget("two") },
    { delete: gadget("two") },
  ],
};
const FILE = "../../check/corpus/correct/deployment_ready.ts";
const source = await operatorSource(new URL(FILE, import.meta.url));
const setup = { source, seed: 1, simulate: true, endpoints: false };

let recording: Recording | undefined;
const reference = await runScenario(scenario, [], {
  ...setup,
  recorded: (made) => void (recording = made),
});

/** What a run shows: the states after its steps, and the writes. */
function shown(run: RunRecord) {
  return {
    states: run.steps.map(({ objects, quiet }) => [
      quiet,
      [...clusterState(objects)],
    ]),
    writes: writesOf(run).map((write) =>
      `${write.step} ${
        writeText(write)
      } ${write.code} ${write.effect} ${write.disturbed}`
    ),
  };
}

async function both(...plan: Perturbation[]) {
  const whole = await runScenario(scenario, plan, setup);
  const part = await runScenario(scenario, plan, { ...setup, from: recording });
  return { whole, part };
}

const [, second] = reference.steps;
const [write] = writesOf(reference).filter(({ step }) => step === 1);
const deployment = second?.objects.find(({ kind }) => kind === "Deployment");
assert(write && second && deployment);
const { namespace = "", ...rest } = referenceOf(deployment);
const address = { ...rest, namespace };
const { number } = write;
const PLANS: readonly Perturbation[] = [
  // Where it is killed.
  { do: "crash", write: number, place: "before" },
  { do: "stale", write: second.writes, revision: 20, ms: 60_000 },
  // Where it is at rest before the step, or before the change by others.
  { do: "refuse", write: number, times: 3 },
  { do: "delete", step: 1, ...address },
  { do: "cascade", step: 2 },
];

for (const plan of PLANS) {
  test(`A run of "${plan.do}" that goes on from another shows the whole one`, async () => {
    const { whole, part } = await both(plan);
    assert.deepEqual([whole.isPart, part.isPart], [false, true]);
    assert.deepEqual(shown(part), shown(whole));
  });
}

test("A run that cannot go on from a rest begins at the first start", async () => {
  const { whole, part } = await both({ do: "late" });
  assert.deepEqual({ ...part, cpu: 0 }, { ...whole, cpu: 0 });
});
