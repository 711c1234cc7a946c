import { timestamp } from "@coracle/operator/client";
import { type CronTimes, cronTimes } from "@coracle/operator/internal";
import { CronJob, type CronJobStatus, Job } from "@coracle/operator/kinds";
import { StatusError } from "../../status.ts";
import { type ControllerApi, controllerReference } from "../controller_api.ts";
import type { ControllerDefinition } from "../controller_loop.ts";
import { finishOf } from "./job.ts";
import { byAge } from "./pods.ts";

const SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp";
/** Number of missed start times after which only the last one is searched for. */
const MANY_MISSED = 100;

/** Controller of CronJobs. */
export const CRON_JOBS: ControllerDefinition = {
  name: "cronjob-controller",
  kind: CronJob,
  owns: [Job],
  sync: (object, api) => syncCronJob(object as CronJob, api),
};

async function syncCronJob(
  cron: CronJob,
  api: ControllerApi,
): Promise<number | undefined> {
  const { metadata, spec } = cron;
  const jobs = api.managed(Job, cron).sort(byAge);
  const status: CronJobStatus = { ...cron.status };
  const running = jobs.filter((job) => !finishOf(job));
  const succeeded = jobs.filter((job) => finishOf(job)?.type === "Complete");
  for (const { status: { completionTime } = {} } of succeeded) {
    if (completionTime && completionTime > (status.lastSuccessfulTime ?? "")) {
      status.lastSuccessfulTime = completionTime;
    }
  }
  const failed = jobs.filter((job) => finishOf(job)?.type === "Failed");
  await cut(api, succeeded, spec.successfulJobsHistoryLimit ?? 3);
  await cut(api, failed, spec.failedJobsHistoryLimit ?? 1);
  let delay: number | undefined;
  if (metadata.deletionTimestamp === undefined && !spec.suspend) {
    const times = cronTimes(spec.schedule, spec.timeZone);
    // Read once: a time that comes between two readings would be passed over.
    const { now } = api;
    const missed = lastMissed(cron, times, now);
    const next = missed === undefined ||
        await start(cron, missed, { api, jobs, running, status })
      ? times.next(now)
      : undefined;
    delay = next === undefined ? undefined : next - now;
  }
  status.active = running.map(({ metadata: job }) => ({
    apiVersion: "batch/v1",
    kind: "Job",
    name: job.name,
    namespace: job.namespace,
    resourceVersion: cron.status?.active?.find(({ uid }) => uid === job.uid)
      ?.resourceVersion ?? job.resourceVersion,
    uid: job.uid,
  }));
  if (status.active.length === 0) delete status.active;
  await api.setStatus(CronJob, cron, status);
  return delay;
}

/** Deletes the oldest finished Jobs beyond the limit. */
async function cut(
  api: ControllerApi,
  jobs: readonly Job[],
  limit: number,
): Promise<void> {
  for (const job of jobs.slice(0, Math.max(0, jobs.length - limit))) {
    await api.delete(Job, job);
  }
}

/** Newest scheduled time without a Job that is not too late. */
function lastMissed(
  { metadata, spec, status }: CronJob,
  times: CronTimes,
  now: number,
): number | undefined {
  let earliest = Date.parse(
    status?.lastScheduleTime ?? metadata.creationTimestamp ?? "",
  );
  const { startingDeadlineSeconds: deadline } = spec;
  if (deadline !== undefined) {
    earliest = Math.max(earliest, now - Number(deadline) * 1000);
  }
  let missed: number | undefined;
  for (let count = 0;; count++) {
    const next = times.next(missed ?? earliest);
    if (next === undefined || next > now) return missed;
    missed = next;
    if (count < MANY_MISSED) continue;
    // Far behind: halve the gap instead of visiting every time.
    for (let end = now; end - missed > 60_000;) {
      const middle: number = (missed + end) / 2;
      const time = times.next(middle);
      if (time !== undefined && time <= now) missed = time;
      else end = middle;
    }
  }
}

/**
 * Starts the Job of a time.
 *
 * @returns Whether the time is done; false if a Job of another owner has the
 * name, after which upstream does nothing until the CronJob changes.
 */
async function start(
  cron: CronJob,
  time: number,
  { api, jobs, running, status }: {
    readonly api: ControllerApi;
    readonly jobs: readonly Job[];
    readonly running: Job[];
    readonly status: CronJobStatus;
  },
): Promise<boolean> {
  const { metadata, spec } = cron;
  const { concurrencyPolicy, jobTemplate, timeZone } = spec;
  if (running.length > 0 && concurrencyPolicy === "Forbid") return true;
  if (concurrencyPolicy === "Replace") {
    for (const job of running.splice(0)) await api.delete(Job, job);
  }
  const { labels, annotations } = jobTemplate.metadata ?? {};
  const local = timeZone === undefined
    ? timestamp(time)
    : zonedTimestamp(time, timeZone);
  const name = `${metadata.name}-${Math.floor(time / 60_000)}`;
  try {
    const job = await api.create(Job, {
      metadata: {
        name,
        namespace: metadata.namespace,
        ...(labels && { labels: { ...labels } }),
        annotations: { ...annotations, [SCHEDULED]: local },
        ownerReferences: [controllerReference(CronJob, cron)],
      },
      spec: jobTemplate.spec,
    });
    running.push(job);
  } catch (error) {
    if (!(error instanceof StatusError) || error.status.code !== 409) {
      throw error;
    }
    if (!jobs.some((job) => job.metadata.name === name)) return false;
    // It was created for this time, and the status was not written.
  }
  status.lastScheduleTime = timestamp(time);
  return true;
}

/** Time with the offset of a time zone, as in `2026-01-01T01:00:00+01:00`. */
function zonedTimestamp(time: number, timeZone: string): string {
  const name = new Intl.DateTimeFormat("en-US", {
    timeZone,
    timeZoneName: "longOffset",
  }).formatToParts(time).find(({ type }) => type === "timeZoneName")?.value;
  const [, sign = "+", hours = "00", minutes = "00"] =
    /([+-])(\d\d):(\d\d)/.exec(name ?? "") ?? [];
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000 *
    (sign === "-" ? -1 : 1);
  if (offset === 0) return timestamp(time);
  return `${timestamp(time + offset).slice(0, 19)}${sign}${hours}:${minutes}`;
}
