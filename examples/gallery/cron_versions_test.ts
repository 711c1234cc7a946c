import { type OperatorOptions, untyped } from "@coracle/operator";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import { Job } from "@coracle/operator/kinds";
import assert from "node:assert/strict";
import { test } from "node:test";
import { operator } from "./cron_versions.ts";

const containers = [{ name: "main", image: "busybox" }];
const jobTemplate = {
  spec: { template: { spec: { restartPolicy: "Never" as const, containers } } },
};
const schedule = {
  minute: "0",
  hour: "*/2",
  dayOfMonth: "*",
  month: "*",
  dayOfWeek: "*",
};
const names = {
  group: "gallery.coracle.dev",
  kind: "CronJob",
  plural: "cronjobs",
  scope: "Namespaced",
} as const;
const CronJob = untyped({ ...names, version: "v2" });
const Old = untyped({ ...names, version: "v1" });

interface Spec {
  readonly schedule: unknown;
  readonly successfulJobsHistoryLimit: number;
}

function cluster() {
  return {
    operator: (options: OperatorOptions) =>
      operator({ ...options, probes: undefined, leaderElection: undefined }),
    clock: new VirtualClock(),
    server: { simulate: true },
  };
}

test(
  "A CronJob of v1 is read in v2, defaulted, and starts Jobs on time",
  withTestCluster(cluster(), async (cluster) => {
    const { client, namespace } = cluster;
    const key = { namespace, name: "report" };
    await client.create(Old, {
      metadata: key,
      spec: { schedule: "0 */2 * * *", jobTemplate },
    });
    const specIn = async (kind: typeof Old) =>
      (await client.get(kind, key))["spec"] as Spec;
    const spec = await specIn(CronJob);
    assert.deepEqual(spec.schedule, schedule);
    assert.equal(spec.successfulJobsHistoryLimit, 3);
    const seen = new Set<string>();
    await cluster.until(async () => {
      const { items } = await client.list(Job, { namespace });
      for (const { metadata } of items) seen.add(metadata.name);
      return seen.size === 4;
    }, { within: "9h" });
    await cluster.until(async () =>
      (await client.list(Job, { namespace })).items.length === 3
    );
    await client.patch(CronJob, key, { spec: { schedule: { minute: "30" } } });
    assert.equal((await specIn(Old)).schedule, "30 */2 * * *");
  }),
);

test(
  "A CronJob with a wrong schedule or name is refused in both versions",
  withTestCluster(cluster(), async ({ client, namespace }) => {
    const refusal = async (made: Promise<unknown>) =>
      String(await made.catch((error: unknown) => error));
    const metadata = { namespace, name: "report" };
    const wrong = { schedule: { ...schedule, hour: "25" }, jobTemplate };
    assert.match(
      await refusal(client.create(CronJob, { metadata, spec: wrong })),
      /spec\.schedule: schedule has an invalid field: "25"/,
    );
    const old = { schedule: "0 3 * * 9", jobTemplate };
    assert.match(
      await refusal(client.create(Old, { metadata, spec: old })),
      /spec\.schedule: schedule has an invalid field: "9"/,
    );
    const name = "a".repeat(53);
    assert.match(
      await refusal(client.create(CronJob, {
        metadata: { namespace, name },
        spec: { schedule, jobTemplate },
      })),
      /metadata\.name: must have at most 52 characters/,
    );
  }),
);
