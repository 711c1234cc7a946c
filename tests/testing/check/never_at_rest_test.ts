import assert from "node:assert/strict";
import { test } from "node:test";
import { checkOperator } from "../../../dev/testing/check/check_operator.ts";
import { z } from "zod";
import { defineKind, Operator, patchStatus } from "@coracle/operator/core";

const Pulse = defineKind({
  group: "test.coracle.dev",
  version: "v1",
  kind: "Pulse",
  spec: z.object({ size: z.int() }),
  status: z.object({ at: z.string() }).partial(),
});

test("An operator that acts every minute is reported without plans", async () => {
  let runs = 0;
  const { findings, plans, coverage } = await checkOperator({
    operator(options) {
      const operator = new Operator(options);
      operator.register(Pulse, {
        reconcile(_pulse, { clock }) {
          runs++;
          const at = new Date(clock.wallTime()).toISOString();
          return patchStatus({ at }).rescheduleAfter("1m");
        },
      });
      return operator;
    },
    kinds: [Pulse],
    workload: [{
      apply: {
        apiVersion: "test.coracle.dev/v1",
        kind: "Pulse",
        metadata: { name: "a", namespace: "default" },
        spec: { size: 1 },
      },
    }],
  });
  const [found] = findings;
  assert.equal(found?.oracle, "settles");
  assert.match(
    found?.title ?? "",
    /it repeats "patch Pulse default\/a\/status/,
  );
  assert.equal(plans, 0);
  assert.equal(coverage.unsettled, 1);
  // Neither an idle day nor more writes than are reported in any case.
  assert(runs < 1_000, `${runs} runs`);
});
