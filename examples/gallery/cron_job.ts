/**
 * Operator that creates Jobs on a schedule, as the CronJob of Kubernetes does.
 *
 *     apiVersion: tutorial.coracle.dev/v1
 *     kind: CronJob
 *     metadata: { name: report }
 *     spec:
 *       schedule: "0 3 * * *"
 *       jobTemplate: { spec: { template: { … } } }
 */
import {
  type Context,
  defineKind,
  type ObjectOf,
  Operator,
  type OperatorOptions,
  patchStatus,
  setStatus,
} from "@coracle/operator";
import { Job, type JobTemplateSpec, schemaOf } from "@coracle/operator/kinds";
import { z } from "zod";
import { parseSchedule, type Schedule } from "./cron_schedule.ts";

const CronJob = defineKind({
  group: "tutorial.coracle.dev",
  version: "v1",
  kind: "CronJob",
  shortNames: ["tcron"],
  spec: z.object({
    schedule: z.string().max(100).describe("Cron expression, in UTC."),
    suspend: z.boolean().default(false),
    concurrencyPolicy: z.enum(["Allow", "Forbid", "Replace"]).default("Allow"),
    successfulJobsHistoryLimit: z.int().min(0).max(100).default(3),
    failedJobsHistoryLimit: z.int().min(0).max(100).default(1),
    jobTemplate: z.custom<JobTemplateSpec>().meta(schemaOf("JobTemplateSpec")),
  }),
  status: z.object({
    lastScheduleTime: z.iso.datetime(),
    nextScheduleTime: z.iso.datetime(),
    active: z.array(z.string()),
    message: z.string(),
  }).partial(),
  printerColumns: [
    { name: "Schedule", type: "string", jsonPath: ".spec.schedule" },
    { name: "Suspend", type: "boolean", jsonPath: ".spec.suspend" },
    { name: "Last", type: "date", jsonPath: ".status.lastScheduleTime" },
    { name: "Message", type: "string", jsonPath: ".status.message" },
  ],
});
type CronJob = ObjectOf<typeof CronJob>;

/** Annotation with the time that a Job is for. */
const SCHEDULED_AT = "tutorial.coracle.dev/scheduled-at";

function isoTime(time: number): string {
  return new Date(time).toISOString();
}

/** Whether a Job has ended, and how. */
function ending(job: Job): "Complete" | "Failed" | undefined {
  return job.status?.conditions?.find(({ type, status }) =>
    (type === "Complete" || type === "Failed") && status === "True"
  )?.type as "Complete" | "Failed" | undefined;
}

function scheduledAt({ metadata }: Job): number {
  return Date.parse(metadata.annotations?.[SCHEDULED_AT] ?? "") || 0;
}

/** Deletes the oldest Jobs beyond a limit. */
async function prune(
  jobs: readonly Job[],
  limit: number,
  ctx: Context<CronJob>,
): Promise<void> {
  const old = jobs.toSorted((a, b) => scheduledAt(b) - scheduledAt(a))
    .slice(limit);
  for (const { metadata } of old) await ctx.delete(Job, metadata.name);
}

/** Latest time that is due; undefined if none is. */
function latestDue(
  schedule: Schedule,
  since: number,
  now: number,
): number | undefined {
  // Of the times that were missed in an outage only the latest is made up for.
  // After a hundred of them the search goes on close to now.
  let due: number | undefined;
  let time = schedule.next(since);
  for (let count = 0; time !== undefined && time <= now; count++) {
    due = time;
    time = schedule.next(count < 100 ? time : Math.max(time, now - 120_000));
  }
  return due;
}

async function start(
  { metadata, spec }: CronJob,
  time: number,
  ctx: Context<CronJob>,
): Promise<string> {
  // The name is made of the time, so that no time is served twice.
  const name = `${metadata.name}-${time / 60_000}`;
  const { jobTemplate } = spec;
  await ctx.apply(Job, {
    metadata: {
      ...jobTemplate.metadata,
      name,
      annotations: {
        ...jobTemplate.metadata?.annotations,
        [SCHEDULED_AT]: isoTime(time),
      },
    },
    spec: jobTemplate.spec,
  });
  ctx.events.normal("Started", `Created Job ${name}`);
  return name;
}

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator({
    leaderElection: { name: "cron-jobs" },
    probes: { port: 8080 },
    ...options,
  });
  operator.register(CronJob, {
    async reconcile(cronJob, ctx) {
      const { spec, metadata, status } = cronJob;
      const now = ctx.clock.wallTime();

      const jobs = await ctx.secondaries(Job);
      const running = jobs.filter((job) => ending(job) === undefined);
      const ended = Object.groupBy(jobs, (job) => ending(job) ?? "running");
      await prune(ended.Complete ?? [], spec.successfulJobsHistoryLimit, ctx);
      await prune(ended.Failed ?? [], spec.failedJobsHistoryLimit, ctx);

      let schedule: Schedule;
      try {
        schedule = parseSchedule(spec.schedule);
      } catch (error) {
        // A retry would not help; a change of the spec runs it again.
        return patchStatus({
          nextScheduleTime: null,
          active: running.map((job) => job.metadata.name).toSorted(),
          message: (error as Error).message,
        });
      }

      // The Jobs tell what was done, also if the status was not written.
      let last = Math.max(
        Date.parse(
          status?.lastScheduleTime ?? metadata.creationTimestamp ?? "",
        ),
        ...jobs.map(scheduledAt),
      );
      const active = running.map((job) => job.metadata.name);
      const due = latestDue(schedule, last, now);
      const isHeld = spec.suspend ||
        (spec.concurrencyPolicy === "Forbid" && active.length > 0);
      if (due !== undefined && !isHeld) {
        if (spec.concurrencyPolicy === "Replace") {
          for (const name of active.splice(0)) await ctx.delete(Job, name);
        }
        active.push(await start(cronJob, due, ctx));
        last = due;
      }

      const next = schedule.next(now);
      const result = setStatus({
        ...(last > Date.parse(metadata.creationTimestamp ?? "")
          ? { lastScheduleTime: isoTime(last) }
          : {}),
        ...(next === undefined ? {} : { nextScheduleTime: isoTime(next) }),
        active: active.toSorted(),
        message: spec.suspend ? "Suspended" : "",
      });
      return next === undefined || spec.suspend
        ? result
        : result.rescheduleAfter(next - now);
    },
  }, { owns: [Job], install: true });
  return operator;
}

if (import.meta.main) await operator().run();
