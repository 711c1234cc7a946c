import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CronJob,
  Job,
  Pod,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
} from "@coracle/operator/kinds";
import {
  type WorkloadFixture,
  workloadTest,
} from "../../support/workload_case.ts";

const key = { namespace: "default", name: "work" };

type JobSpec = NonNullable<Job["spec"]>;

function work(spec: Partial<JobSpec> = {}): Job {
  return {
    metadata: key,
    spec: {
      template: {
        spec: {
          restartPolicy: "Never",
          containers: [{ name: "main", image: "worker" }],
        },
      },
      ...spec,
    },
  };
}

async function outcome({ client }: WorkloadFixture) {
  const { status } = await client.get(Job, key);
  return {
    succeeded: status?.succeeded ?? 0,
    failed: status?.failed ?? 0,
    active: status?.active ?? 0,
    conditions: status?.conditions?.filter(({ status }) => status === "True")
      .map(({ type, reason }) => `${type} ${reason}`) ?? [],
  };
}

test(
  "a Job with five completions runs at most two pods at a time",
  workloadTest({ simulate: true }, async (fixture) => {
    const { client, clock } = fixture;
    await client.create(Job, work({ completions: 5, parallelism: 2 }));
    let most = 0;
    for (let step = 0; step < 60; step++) {
      await clock.advance(100);
      most = Math.max(most, (await outcome(fixture)).active);
    }
    assert.equal(most, 2);
    assert.deepEqual(await outcome(fixture), {
      succeeded: 5,
      failed: 0,
      active: 0,
      conditions: [
        "SuccessCriteriaMet CompletionsReached",
        "Complete CompletionsReached",
      ],
    });
    const { items } = await client.list(Pod);
    assert.equal(items.length, 5);
    assert.ok(items.every(({ metadata }) => !metadata.finalizers?.length));
  }),
);

test(
  "a Job counts a pod once whose finalizer cannot be removed yet",
  workloadTest({ simulate: true }, async (fixture) => {
    const { client, clock } = fixture;
    const metadata = { name: "keep-finalizers" };
    await client.create(ValidatingAdmissionPolicy, {
      metadata,
      spec: {
        matchConstraints: {
          resourceRules: [{
            apiGroups: [""],
            apiVersions: ["v1"],
            operations: ["UPDATE"],
            resources: ["pods"],
          }],
        },
        validations: [{ expression: "has(object.metadata.finalizers)" }],
      },
    });
    await client.create(ValidatingAdmissionPolicyBinding, {
      metadata,
      spec: { policyName: metadata.name, validationActions: ["Deny"] },
    });
    await client.create(Job, work({ completions: 3 }));
    await clock.advance(60_000);
    const pods = async () =>
      (await client.list(Pod)).items.map(({ status, metadata }) =>
        `${status?.phase} ${metadata.finalizers?.length ?? 0}`
      );
    const ended = await pods();
    assert.ok(ended.every((text) => text === "Succeeded 1"), `${ended}`);
    assert.equal((await outcome(fixture)).succeeded, ended.length);
    await client.delete(ValidatingAdmissionPolicyBinding, metadata);
    await clock.advance(600_000);
    assert.equal((await outcome(fixture)).succeeded, 3);
    assert.deepEqual(await pods(), Array(3).fill("Succeeded 0"));
  }),
);

test(
  "a Job fails when its pods fail more often than the backoff limit",
  workloadTest({ simulate: true, pods: { run: () => 3 } }, async (fixture) => {
    const { client, clock } = fixture;
    await client.create(Job, work({ backoffLimit: 2 }));
    await clock.advance(60_000);
    assert.deepEqual(await outcome(fixture), {
      succeeded: 0,
      failed: 3,
      active: 0,
      conditions: [
        "FailureTarget BackoffLimitExceeded",
        "Failed BackoffLimitExceeded",
      ],
    });
  }),
);

test(
  "a rule of the pod failure policy ends a Job immediately",
  workloadTest({ simulate: true, pods: { run: () => 42 } }, async (fixture) => {
    const { client, clock } = fixture;
    await client.create(
      Job,
      work({
        podFailurePolicy: {
          rules: [{
            action: "FailJob",
            onExitCodes: { operator: "In", values: [42] },
          }],
        },
      }),
    );
    await clock.advance(5_000);
    const { failed, conditions } = await outcome(fixture);
    assert.equal(failed, 1);
    assert.deepEqual(conditions, [
      "FailureTarget PodFailurePolicy",
      "Failed PodFailurePolicy",
    ]);
  }),
);

test(
  "an indexed Job runs every index once and lists them",
  workloadTest({ simulate: true }, async (fixture) => {
    const { client, clock } = fixture;
    await client.create(
      Job,
      work({ completionMode: "Indexed", completions: 4, parallelism: 4 }),
    );
    await clock.advance(5_000);
    const { status } = await client.get(Job, key);
    assert.equal(status?.completedIndexes, "0-3");
    const { items } = await client.list(Pod);
    assert.deepEqual(items.map(({ spec }) => spec.hostname).sort(), [
      "work-0",
      "work-1",
      "work-2",
      "work-3",
    ]);
  }),
);

test(
  "a suspended Job has no pods, and starts when it is resumed",
  workloadTest({ simulate: true }, async (fixture) => {
    const { client, clock } = fixture;
    await client.create(Job, work({ suspend: true }));
    await clock.advance(5_000);
    assert.deepEqual((await outcome(fixture)).conditions, [
      "Suspended JobSuspended",
    ]);
    assert.equal((await client.list(Pod)).items.length, 0);
    await client.patch(Job, key, { spec: { suspend: false } });
    await clock.advance(5_000);
    assert.equal((await outcome(fixture)).succeeded, 1);
  }),
);

test(
  "a Job past its deadline fails, and is deleted after its time to live",
  workloadTest({
    simulate: true,
    pods: {
      run: ({ signal }) =>
        new Promise((resolve) =>
          signal.addEventListener("abort", () => resolve(0))
        ),
    },
  }, async (fixture) => {
    const { client, clock } = fixture;
    await client.create(
      Job,
      work({ activeDeadlineSeconds: 5, ttlSecondsAfterFinished: 10 }),
    );
    await clock.advance(8_000);
    const { conditions } = await outcome(fixture);
    assert.deepEqual(conditions, [
      "FailureTarget DeadlineExceeded",
      "Failed DeadlineExceeded",
    ]);
    await clock.advance(12_000);
    assert.equal((await client.list(Job)).items.length, 0);
    assert.equal((await client.list(Pod)).items.length, 0);
  }),
);

test(
  "a CronJob starts Jobs at its times, in its time zone, and keeps three",
  workloadTest({ simulate: true }, async ({ client, clock }) => {
    await client.create(CronJob, {
      metadata: key,
      spec: {
        schedule: "30 2 * * *",
        timeZone: "Asia/Kolkata",
        jobTemplate: { spec: work().spec as JobSpec },
      },
    });
    // 02:30 in India is 21:00 UTC of the day before.
    await clock.advance(21 * 3_600_000 - 1_000);
    assert.equal((await client.list(Job)).items.length, 0);
    await clock.advance(5_000);
    const { items: [first] } = await client.list(Job);
    assert.equal(
      first?.metadata.annotations
        ?.["batch.kubernetes.io/cronjob-scheduled-timestamp"],
      "2026-01-02T02:30:00+05:30",
    );
    await clock.advance(5 * 24 * 3_600_000);
    assert.equal((await client.list(Job)).items.length, 3);
    const { status } = await client.get(CronJob, key);
    assert.equal(status?.lastScheduleTime, "2026-01-06T21:00:00Z");
    assert.equal(status?.active, undefined);
  }),
);

test(
  "a Job of another owner with the name of a CronJob's Job counts as no run",
  workloadTest({ simulate: true }, async ({ client, clock }) => {
    // As the Job of an earlier CronJob of that name, which is not deleted yet.
    const hour = Date.parse("2026-01-01T01:00:00Z");
    const name = `work-${hour / 60_000}`;
    await client.create(Job, {
      ...work({ suspend: true }),
      metadata: { ...key, name },
    });
    await client.create(CronJob, {
      metadata: key,
      spec: {
        schedule: "0 * * * *",
        jobTemplate: { spec: work().spec as JobSpec },
      },
    });
    await clock.advance("1h10s");
    const { status } = await client.get(CronJob, key);
    assert.equal(status?.lastScheduleTime, undefined);
    // The next change of the CronJob finds its latest time.
    await clock.advance("1h");
    await client.patch(CronJob, key, { metadata: { labels: { a: "1" } } });
    await clock.advance("1s");
    const cron = await client.get(CronJob, key);
    assert.equal(cron.status?.lastScheduleTime, "2026-01-01T02:00:00Z");
    assert.equal((await client.list(Job)).items.length, 2);
  }),
);
