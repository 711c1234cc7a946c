import { type OperatorOptions, untyped } from "@coracle/operator";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import { Job } from "@coracle/operator/kinds";
import assert from "node:assert/strict";
import { test } from "node:test";
import { operator } from "./cron_job.ts";
import { parseSchedule } from "./cron_schedule.ts";

const CronJob = untyped({
  group: "tutorial.coracle.dev",
  version: "v1",
  kind: "CronJob",
  plural: "cronjobs",
  scope: "Namespaced",
});

function jobTemplate() {
  const containers = [{ name: "main", image: "busybox" }];
  return {
    spec: { template: { spec: { restartPolicy: "Never", containers } } },
  } as const;
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
  "A CronJob starts a Job an hour and keeps three of those that ended",
  withTestCluster(cluster(), async (cluster) => {
    const { client, namespace } = cluster;
    const key = { namespace, name: "report" };
    await client.create(CronJob, {
      metadata: key,
      spec: { schedule: "0 * * * *", jobTemplate: jobTemplate() },
    });
    const seen = new Set<string>();
    await cluster.until(async () => {
      const { items } = await client.list(Job, { namespace });
      for (const { metadata } of items) seen.add(metadata.name);
      return seen.size === 6;
    }, { within: "7h" });
    await cluster.until(async () => {
      const { items } = await client.list(Job, { namespace });
      return items.length === 3 &&
        items.every(({ status }) => status?.succeeded === 1);
    });
  }),
);

test(
  "A CronJob that was down for an hour makes up for the latest time only",
  withTestCluster(cluster(), async (cluster) => {
    const { client, namespace, server } = cluster;
    const key = { namespace, name: "report" };
    await client.create(CronJob, {
      metadata: key,
      spec: { schedule: "*/5 * * * *", jobTemplate: jobTemplate() },
    });
    const count = async () =>
      (await client.list(Job, { namespace })).items.length;
    await cluster.until(async () => await count() === 1);
    await cluster.complete(server!.faults.restart({ downFor: 52 * 60_000 }));
    await cluster.until(async () => await count() > 1, { within: "10m" });
    assert.equal(await count(), 2);
  }),
);

test(
  "A CronJob that forbids concurrency waits, one that replaces does not",
  withTestCluster(
    { ...cluster(), server: {} },
    async (cluster) => {
      const { client, namespace } = cluster;
      for (const concurrencyPolicy of ["Forbid", "Replace"] as const) {
        await client.create(CronJob, {
          metadata: { namespace, name: concurrencyPolicy.toLowerCase() },
          spec: {
            schedule: "0 * * * *",
            concurrencyPolicy,
            jobTemplate: jobTemplate(),
          },
        });
      }
      const replaced = new Set<string>();
      await cluster.until(async () => {
        const { items } = await client.list(Job, { namespace });
        for (const { metadata: { name } } of items) {
          if (name.startsWith("replace")) replaced.add(name);
        }
        return replaced.size === 3;
      }, { within: "4h" });
      const { items } = await client.list(Job, { namespace });
      const names = items.map(({ metadata }) => metadata.name);
      assert.equal(names.filter((name) => name.startsWith("forbid")).length, 1);
    },
  ),
);

test(
  "A CronJob with an invalid schedule says so until it is changed",
  withTestCluster(cluster(), async (cluster) => {
    const { client, namespace } = cluster;
    const key = { namespace, name: "report" };
    await client.create(CronJob, {
      metadata: key,
      spec: { schedule: "99 * * * *", jobTemplate: jobTemplate() },
    });
    const message = async () =>
      ((await client.get(CronJob, key))["status"] as { message?: string })
        ?.message;
    await cluster.until(async () =>
      /invalid field/.test(await message() ?? "")
    );
    await client.patch(CronJob, key, { spec: { schedule: "0 * * * *" } });
    await cluster.until(async () => await message() === "");
  }),
);

test("A schedule gives its times in UTC and refuses what is no cron", () => {
  const after = (text: string, time: string) =>
    new Date(parseSchedule(text).next(Date.parse(time)) ?? NaN).toISOString();
  for (
    const [text, time, expected] of [
      ["*/15 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:15:00.000Z"],
      ["0 3 * * *", "2026-01-01T03:00:00Z", "2026-01-02T03:00:00.000Z"],
      ["0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00.000Z"],
      ["0 9 * * 1-5", "2026-01-02T10:00:00Z", "2026-01-05T09:00:00.000Z"],
      ["0 0 1 * 0", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00.000Z"],
      ["5,10/20 * * * *", "2026-01-01T00:10:00Z", "2026-01-01T00:30:00.000Z"],
    ] as const
  ) assert.equal(after(text, time), expected, text);
  assert.equal(parseSchedule("0 0 31 2 *").next(0), undefined);
  for (
    const text of [
      "",
      "* * * *",
      "60 * * * *",
      "a * * * *",
      "*/0 * * * *",
      "5-1 * * * *",
      "-1 * * * *",
      "1- * * * *",
    ]
  ) assert.throws(() => parseSchedule(text), RangeError, text);
});
