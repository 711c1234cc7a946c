import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { defineKind, Operator, patchStatus } from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { checkOperator } from "../../../dev/testing/check/check_operator.ts";
import type { OperatorCluster } from "../../../dev/testing/check/world_options.ts";

const Report = defineKind({
  group: "test.coracle.dev",
  version: "v1",
  kind: "Report",
  spec: z.object({ title: z.string() }),
  status: z.object({ written: z.int(), title: z.string() }).partial(),
});
const apply = (title: string) => ({
  apply: {
    apiVersion: "test.coracle.dev/v1",
    kind: "Report",
    metadata: { namespace: "default", name: "sample" },
    spec: { title },
  },
});
const PERIOD_MS = 1_500_000;
const MAX_REPORTS = 4;

/** Writes a report every 25 minutes, four in all, each into its own ConfigMap. */
function reports(
  cluster: OperatorCluster,
  { givesUp }: { readonly givesUp: boolean },
): Operator {
  const operator = new Operator(cluster);
  operator.register(Report, {
    async reconcile({ metadata, spec }, ctx) {
      const since = Date.parse(String(metadata.creationTimestamp));
      const age = Math.max(ctx.clock.wallTime() - since, 0);
      const written = Math.min(Math.floor(age / PERIOD_MS), MAX_REPORTS);
      for (let number = 0; number <= written; number++) {
        await ctx.apply(ConfigMap, {
          metadata: { name: `${metadata.name}-${number}` },
          data: { title: spec.title },
        });
      }
      const title = givesUp && age > 2 * PERIOD_MS ? undefined : spec.title;
      return patchStatus({ written, title }).rescheduleAfter(
        PERIOD_MS - age % PERIOD_MS,
      );
    },
  }, { owns: [ConfigMap] });
  return operator;
}

async function titles(
  plan: "throttle" | "clock",
  givesUp: boolean,
): Promise<readonly string[]> {
  const { findings } = await checkOperator({
    operator: (cluster) => reports(cluster, { givesUp }),
    workload: [apply("a")],
    only: [plan],
  });
  return findings.map(({ title }) => title);
}

for (const plan of ["throttle", "clock"] as const) {
  test(`What is due in the time of ${plan} after the last step is no finding`, async () => {
    assert.deepEqual(await titles(plan, false), []);
  });
}

test("Work that is left out after an hour of throttling is found", async () => {
  assert.deepEqual(await titles("throttle", true), [
    'Report default/sample has another status.title after "apply Report default/sample", and nobody puts it right',
  ]);
});

test("What is due while throttling delays the next step is no finding", async () => {
  const DAY_MS = 86_400_000;
  const { findings } = await checkOperator({
    operator: (cluster) => {
      const operator = new Operator(cluster);
      operator.register(Report, {
        // Writes a ConfigMap at two o'clock.
        async reconcile({ metadata: { name } }, ctx) {
          const left = 7_200_000 - ctx.clock.wallTime() % DAY_MS;
          if (left > 0) {
            return patchStatus({ written: 0 }).rescheduleAfter(left);
          }
          await ctx.apply(ConfigMap, { metadata: { name } });
          return patchStatus({ written: 1 });
        },
      }, { owns: [ConfigMap] });
      return operator;
    },
    workload: [apply("a"), { delete: apply("a").apply }],
    only: ["throttle"],
  });
  assert.deepEqual(findings.map(({ title }) => title), []);
});
