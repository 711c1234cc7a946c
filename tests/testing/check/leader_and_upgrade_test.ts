import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { defineKind, Operator, patchStatus } from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { checkOperator } from "../../../dev/testing/check/check_operator.ts";
import type { OperatorCluster } from "../../../dev/testing/check/world_options.ts";

const Gadget = defineKind({
  group: "test.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string() }),
  status: z.object({ made: z.boolean() }).partial(),
});
const workload = [{
  apply: {
    apiVersion: "test.coracle.dev/v1",
    kind: "Gadget",
    metadata: { namespace: "default", name: "sample" },
    spec: { color: "red" },
  },
}];

/** Elects a leader, and makes a ConfigMap; the status says that it did so. */
function electing(
  cluster: OperatorCluster,
  { statusFirst }: { readonly statusFirst: boolean },
): Operator {
  const operator = new Operator({
    ...cluster,
    leaderElection: { name: "gadgets", namespace: "default" },
  });
  operator.register(Gadget, {
    async reconcile({ metadata: { name }, status }, ctx) {
      if (status?.made) return undefined;
      const mark = () =>
        ctx.patch(Gadget, name, { status: { made: true } }, {
          subresource: "status",
        });
      if (statusFirst) await mark();
      await ctx.apply(ConfigMap, { metadata: { name }, data: {} });
      return statusFirst ? undefined : patchStatus({ made: true });
    },
  }, { owns: [ConfigMap] });
  return operator;
}

test("A plan that deposes the leader finds work which its successor leaves", async () => {
  const only = ["leader"];
  const { findings } = await checkOperator({
    operator: (cluster) => electing(cluster, { statusFirst: true }),
    workload,
    only,
  });
  const [found] = findings;
  assert.equal(
    found?.title,
    'ConfigMap default/sample is missing after "apply Gadget default/sample", and nobody creates it again',
  );
  assert.equal(found.writes[0], "apply ConfigMap default/sample");
  const correct = await checkOperator({
    operator: (cluster) => electing(cluster, { statusFirst: false }),
    workload,
    only,
  });
  assert.deepEqual(correct.findings, []);
  assert.ok(correct.plans >= 2);
});

test("A plan that upgrades finds what the older build has left", async () => {
  const fixture = (name: string) =>
    new URL(`fixtures/${name}.ts`, import.meta.url);
  const only = ["upgrade"];
  const operator = fixture("copier");
  const workload = [1, 2].map((size) => ({
    apply: {
      apiVersion: "test.coracle.dev/v1",
      kind: "Copier",
      metadata: { namespace: "default", name: "sample" },
      spec: { size },
    },
  }));
  const { findings, coverage } = await checkOperator({
    operator,
    from: fixture("copier_old").pathname,
    workload,
    only,
  });
  assert.ok((coverage.byKind["upgrade"] ?? 0) > 0);
  assert.match(
    findings[0]?.title ?? "",
    /^ConfigMap default\/sample-old is left after/,
  );
  const from = operator.pathname;
  const same = await checkOperator({ operator, from, workload, only });
  assert.deepEqual(same.findings, []);
});
