import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { defineKind, Operator, patchStatus } from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { checkOperator } from "../../../dev/testing/check/check_operator.ts";
import type { OperatorCluster } from "../../../dev/testing/check/world_options.ts";

const Pass = defineKind({
  group: "test.coracle.dev",
  version: "v1",
  kind: "Pass",
  spec: z.object({ hours: z.number() }),
  status: z.object({ expired: z.boolean() }).partial(),
});
const apply = (hours: number) => ({
  apply: {
    apiVersion: "test.coracle.dev/v1",
    kind: "Pass",
    metadata: { namespace: "default", name: "sample" },
    spec: { hours },
  },
});

/** Notes since when a pass exists, and whether it has expired. */
function passes(
  cluster: OperatorCluster,
  { skipsFuture }: { readonly skipsFuture: boolean },
): Operator {
  const operator = new Operator(cluster);
  operator.register(Pass, {
    async reconcile({ metadata, spec }, ctx) {
      const { name } = metadata;
      const now = Date.now();
      const since = Date.parse(String(metadata.creationTimestamp));
      if (skipsFuture && since > now) return undefined;
      await ctx.apply(ConfigMap, {
        metadata: { name },
        data: { hours: `${spec.hours}` },
      });
      return patchStatus({ expired: now > since + spec.hours * 3_600_000 });
    },
  }, { owns: [ConfigMap] });
  return operator;
}

async function titles(skipsFuture: boolean): Promise<readonly string[]> {
  const { findings } = await checkOperator({
    operator: (cluster) => passes(cluster, { skipsFuture }),
    workload: [apply(2), apply(3), apply(4)],
    only: ["clock"],
  });
  return findings.map(({ title }) => title);
}

test("What is due after a jump of the clock is no finding", async () => {
  assert.deepEqual(await titles(false), []);
});

test("Work that is left out after a jump of the clock is found", async () => {
  assert.deepEqual(await titles(true), [
    'ConfigMap default/sample has another data.hours after "apply Pass default/sample", and nobody puts it right',
  ]);
});
