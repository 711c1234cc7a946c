import { checkOperator, TestCluster, VirtualClock } from "@coracle/dev";
import { ConfigMap, Job } from "@coracle/operator/kinds";
import assert from "node:assert/strict";
import { test } from "node:test";
import options from "./nightly_cleaner.check.ts";
import { operator } from "./nightly_cleaner.ts";

const DAY = 24 * 3_600_000;

const job = (name: string) => ({
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: { name, namespace: "default" },
  spec: {
    template: {
      spec: {
        restartPolicy: "Never",
        containers: [{ name: "main", image: "busybox" }],
      },
    },
  },
});

test("The nightly cleaner deletes Jobs a week after their end, at three", async () => {
  const clock = new VirtualClock();
  const cluster = await TestCluster.start({
    clock,
    operator: (options) => operator({ ...options, leaderElection: undefined }),
  });
  try {
    const { client, namespace } = cluster;
    const make = async (name: string, ended: boolean) => {
      const { metadata, spec } = job(name);
      await client.create(Job, {
        metadata: { ...metadata, namespace },
        spec: spec as NonNullable<Job["spec"]>,
      });
      if (!ended) return;
      const time = new Date(clock.wallTime()).toISOString();
      const common = { status: "True" as const, lastTransitionTime: time };
      await client.status.patch(Job, { namespace, name }, {
        status: {
          startTime: time,
          completionTime: time,
          succeeded: 1,
          conditions: [
            { type: "SuccessCriteriaMet", ...common },
            { type: "Complete", ...common },
          ],
        },
      });
    };
    await make("old", true);
    await make("running", false);
    await clock.advance(5 * DAY);
    await make("young", true);
    const names = async () =>
      (await client.list(Job, { namespace })).items
        .map(({ metadata }) => metadata.name);
    assert.deepEqual(await names(), ["old", "running", "young"]);
    await clock.advance(3 * DAY);
    assert.deepEqual(await names(), ["running", "young"]);
    const { metadata } = await client.get(ConfigMap, {
      namespace,
      name: "nightly-cleaner",
    });
    const ran = metadata.annotations?.["jobs.coracle.dev/nightly-cleaner"];
    // Three o'clock in Berlin in winter.
    assert.match(String(ran), /T02:00:00Z$/);
  } finally {
    await cluster.stop();
  }
});

test("The nightly cleaner stands its check", { timeout: 120_000 }, async () => {
  const report = await checkOperator({ operator, ...options, plans: 3 });
  assert.deepEqual(report.findings, []);
  assert.equal(report.plans, 3);
});
