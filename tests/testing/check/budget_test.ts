import assert from "node:assert/strict";
import { test } from "node:test";
import { Operator } from "@coracle/operator/core";
import { ConfigMap, Secret, ServiceAccount } from "@coracle/operator/kinds";
import {
  checkOperator,
  type EngineOptions,
  type Runner,
} from "../../../dev/testing/check/check_operator.ts";
import {
  CheckSession,
  type Job,
} from "../../../dev/testing/check/check_session.ts";

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

const SERVICE_ACCOUNT = {
  apiVersion: "v1",
  kind: "ServiceAccount",
  metadata: { name: "a", namespace: "default" },
} as const;

/** Operator that gives each ServiceAccount a Secret with a random password. */
const operator: EngineOptions["operator"] = (options) => {
  const operator = new Operator(options);
  operator.register(ServiceAccount, {
    async reconcile({ metadata: { name, namespace } }, ctx) {
      if (await ctx.secondary(Secret) !== undefined) return;
      await ctx.create(Secret, {
        metadata: { name, namespace },
        stringData: { password: crypto.randomUUID().slice(0, 8) },
      });
    },
  }, { owns: [Secret] });
  return operator;
};

/** Checks it where each reference run takes a time in milliseconds. */
async function checkWith(duration: number, options: Partial<EngineOptions>) {
  const own = Object.getOwnPropertyDescriptor(performance, "now");
  const now = performance.now.bind(performance);
  let passed = 0;
  Object.defineProperty(performance, "now", {
    configurable: true,
    value: () => now() + passed,
  });
  const jobs: Job[] = [];
  try {
    const report = await checkOperator({
      operator,
      only: ["none"],
      examples: [SERVICE_ACCOUNT],
      budget: "1000m",
      runner: async (settings) => {
        const session = await CheckSession.open({ ...settings, operator });
        return {
          size: 1,
          async run(job) {
            jobs.push(job);
            const result = await session.run(job);
            if (job.do === "reference") passed += duration;
            return result;
          },
          close: () => Promise.resolve(),
        };
      },
      ...options,
    });
    return { report, jobs };
  } finally {
    // On Bun the function is the object's own.
    if (own === undefined) Reflect.deleteProperty(performance, "now");
    else Object.defineProperty(performance, "now", own);
  }
}

test("Random values are no finding where no time is left to see what is random", async () => {
  const { report, jobs } = await checkWith(600 * 60_000, {});
  assert.deepEqual(report.findings.map(({ title }) => title), []);
  const { notRun, scenarios, uncompared } = report.coverage;
  assert.deepEqual([notRun, uncompared], [scenarios - 1, 1]);
  // The other oracles judge the run.
  assert.deepEqual(jobs.map((job) => job.do), ["reference", "clean"]);
  const again = await checkWith(600 * 60_000, { replay: "life/none" });
  assert.deepEqual(again.report.findings.map(({ title }) => title), []);
  assert.deepEqual(again.jobs.map((job) => job.do), [
    "reference",
    "reference",
    "clean",
  ]);
});
