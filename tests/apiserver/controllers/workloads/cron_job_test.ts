import assert from "node:assert/strict";
import { test } from "node:test";
import type { CronJob } from "@coracle/operator/kinds";
import type { ControllerApi } from "../../../../dev/apiserver/controllers/controller_api.ts";
import { CRON_JOBS } from "../../../../dev/apiserver/controllers/workloads/cron_job.ts";

test("a time of a CronJob that comes during a sync is not passed over", async () => {
  const due = Date.parse("2026-01-01T01:00:00Z");
  let reading = 0;
  const api = {
    get now() {
      return due - 0.1 + reading++;
    },
    managed: () => [],
    setStatus: () => Promise.resolve(),
  } as unknown as ControllerApi;
  const cron: CronJob = {
    apiVersion: "batch/v1",
    kind: "CronJob",
    metadata: {
      namespace: "default",
      name: "hourly",
      creationTimestamp: "2026-01-01T00:30:00Z",
    },
    spec: { schedule: "0 * * * *", jobTemplate: { spec: {} } as never },
  };
  const delay = await CRON_JOBS.sync(cron, api, () => {});
  assert(delay !== undefined && delay < 1, `it syncs again after ${delay} ms`);
});
