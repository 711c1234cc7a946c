import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigMap } from "../../../core/kinds/mod.ts";
import { Operator } from "../../../core/operator/operator.ts";
import {
  checkOperator,
  type Runner,
} from "../../../dev/testing/check/check_operator.ts";

test("A check whose first run takes all of its time runs nothing else", async () => {
  const jobs: string[] = [];
  const { plans, coverage } = await checkOperator({
    operator(options) {
      const operator = new Operator(options);
      operator.register(ConfigMap, { reconcile() {} });
      return operator;
    },
    budget: "1ms",
    workload: [{
      apply: {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "a", namespace: "default" },
      },
    }],
    runner: () =>
      Promise.resolve({
        size: 1,
        run(job) {
          jobs.push(job.do);
          return Promise.reject(new Error("there is no time left"));
        },
        close: () => Promise.resolve(),
      }),
  });
  assert.deepEqual(jobs, []);
  assert.equal(plans, 0);
  assert.equal(coverage.notRun, 0);
});

test("A check that fails closes its runner", async () => {
  let closed = 0;
  const runs = (run: Runner["run"]) =>
    checkOperator({
      operator: (options) => new Operator(options),
      workload: [],
      runner: () =>
        Promise.resolve({
          size: 1,
          run,
          close: () => Promise.resolve(void closed++),
        }),
    });
  await assert.rejects(
    runs(() => Promise.reject(new Error("no worker"))),
    /no worker/,
  );
  assert.equal(closed, 1);
});
