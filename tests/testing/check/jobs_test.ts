import assert from "node:assert/strict";
import { test } from "node:test";
import { checkOperator } from "../../../dev/testing/check/check_operator.ts";
import { z } from "zod";
import { defineKind, Operator, patchStatus } from "@coracle/operator/core";
import { Job } from "@coracle/operator/kinds";

const Task = defineKind({
  group: "test.coracle.dev",
  version: "v1",
  kind: "Task",
  spec: z.object({ image: z.string() }),
  status: z.object({ done: z.boolean() }).partial(),
});

test("A Job ends in plans with late pods and leaves none when deleted", async () => {
  const { findings, plans } = await checkOperator({
    operator(options) {
      const operator = new Operator(options);
      operator.register(Task, {
        async reconcile({ metadata: { name }, spec }, ctx) {
          const { image } = spec;
          const { status } = await ctx.apply(Job, {
            metadata: { name },
            spec: {
              template: {
                spec: {
                  restartPolicy: "Never",
                  containers: [{ name: "task", image }],
                },
              },
            },
          });
          return patchStatus({ done: (status?.succeeded ?? 0) > 0 });
        },
      }, { owns: [Job] });
      return operator;
    },
    kinds: [Task],
    only: ["late", "flap", "delete"],
    workload: [{
      apply: {
        apiVersion: "test.coracle.dev/v1",
        kind: "Task",
        metadata: { name: "a", namespace: "default" },
        spec: { image: "task" },
      },
    }],
  });
  assert.equal(plans, 3);
  assert.deepEqual(findings.map(({ title }) => title), []);
});
