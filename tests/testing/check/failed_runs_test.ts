import assert from "node:assert/strict";
import { test } from "node:test";
import { checkOperator } from "../../../dev/testing/check/check_operator.ts";
import { z } from "zod";
import { defineKind, Operator, patchStatus } from "@coracle/operator/core";

const Scale = defineKind({
  group: "test.coracle.dev",
  version: "v1",
  kind: "Scale",
  spec: z.object({ size: z.int() }),
  status: z.object({ size: z.int(), observedGeneration: z.int() }).partial(),
});

const scale = (size: number) => ({
  apiVersion: "test.coracle.dev/v1",
  kind: "Scale",
  metadata: { name: "a", namespace: "default" },
  spec: { size },
});

test("The sequence of a finding has the runs that failed, and why", async () => {
  const { findings: [found] } = await checkOperator({
    operator(options) {
      const operator = new Operator(options);
      operator.register(Scale, {
        reconcile({ spec: { size } }) {
          if (size > 1) throw new Error("It is too large\nfor this");
          return patchStatus({ size });
        },
      });
      return operator;
    },
    kinds: [Scale],
    workload: [{ apply: scale(1) }, { apply: scale(2) }],
    // The undisturbed run shows it.
    plans: 1,
  });
  assert.match(found?.title ?? "", /observedGeneration before the generation/);
  const failed = found?.sequence.split("\n")
    .filter((line) => line.includes("s  failed"));
  assert.equal(failed?.length, 1);
  assert.match(
    failed?.[0] ?? "",
    /failed {4}default\/a: Error: It is too large, again until \d+\.\d+ s$/,
  );
});
