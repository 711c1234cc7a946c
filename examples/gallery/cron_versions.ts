/**
 * CronJob of the kubebuilder book with all of its parts: Jobs on a schedule, a
 * webhook that validates the schedule and fills in defaults, and two versions. In v1
 * the schedule is a line of cron, in v2 an object with a field for each part.
 *
 *     apiVersion: gallery.coracle.dev/v2
 *     kind: CronJob
 *     metadata: { name: report }
 *     spec:
 *       schedule: { minute: "0", hour: "3" }
 *       jobTemplate: { spec: { template: { … } } }
 */
import {
  allow,
  defineKind,
  deny,
  type ObjectOf,
  Operator,
  type OperatorOptions,
  type Reconciler,
  setStatus,
} from "@coracle/operator";
import type { ControllerAdmission } from "@coracle/operator/core";
import { Job, type JobTemplateSpec, schemaOf } from "@coracle/operator/kinds";
import { z } from "zod";
import { parseSchedule } from "./cron_schedule.ts";

const PARTS = ["minute", "hour", "dayOfMonth", "month", "dayOfWeek"] as const;
type Schedule = Readonly<Record<typeof PARTS[number], string>>;

function lineOf(schedule: Schedule): string {
  return PARTS.map((name) => schedule[name]).join(" ");
}

const part = z.string().min(1).max(100).default("*");
const common = {
  startingDeadlineSeconds: z.int().min(0).optional(),
  suspend: z.boolean().default(false),
  concurrencyPolicy: z.enum(["Allow", "Forbid", "Replace"]).default("Allow"),
  successfulJobsHistoryLimit: z.int().min(0).max(100).optional(),
  failedJobsHistoryLimit: z.int().min(0).max(100).optional(),
  jobTemplate: z.custom<JobTemplateSpec>().meta(schemaOf("JobTemplateSpec")),
};
const status = z.object({
  lastScheduleTime: z.iso.datetime(),
  active: z.array(z.string()),
}).partial();

const CronJob = defineKind({
  group: "gallery.coracle.dev",
  version: "v2",
  kind: "CronJob",
  spec: z.object({
    ...common,
    schedule: z.object({
      minute: part,
      hour: part,
      dayOfMonth: part,
      month: part,
      dayOfWeek: part,
    }),
  }),
  status,
  versions: [{
    name: "v1",
    spec: z.object({ ...common, schedule: z.string().max(509) }),
    status,
    up: ({ spec }) => {
      const given = spec.schedule.trim().split(/\s+/);
      const parts = PARTS.map((name, at) => [name, given[at] || "*"]);
      const schedule = Object.fromEntries(parts) as Schedule;
      return { spec: { ...spec, schedule } };
    },
    down: ({ spec }) => ({
      spec: { ...spec, schedule: lineOf(spec.schedule) },
    }),
  }],
});
type CronJob = ObjectOf<typeof CronJob>;

/** Names of Jobs have a suffix of eleven characters. */
const LONGEST_NAME = 63 - 11;

const admission: ControllerAdmission<CronJob> = {
  failurePolicy: "Fail",
  default(cronJob) {
    cronJob.spec.successfulJobsHistoryLimit ??= 3;
    cronJob.spec.failedJobsHistoryLimit ??= 1;
    return cronJob;
  },
  validate({ metadata, spec }, { old }) {
    if (metadata.name.length > LONGEST_NAME) {
      return deny(`must have at most ${LONGEST_NAME} characters`, {
        field: "metadata.name",
      });
    }
    try {
      parseSchedule(lineOf(spec.schedule));
    } catch (error) {
      return deny((error as Error).message, { field: "spec.schedule" });
    }
    return old && spec.suspend && !old.spec.suspend
      ? allow({ warnings: ["running Jobs are not suspended"] })
      : allow();
  },
};

/** Time that a Job is for, and whether it has ended and how. */
function stateOf({ metadata, status }: Job) {
  const [minutes] = /\d+$/.exec(metadata.name) ?? ["0"];
  const ended = (["Complete", "Failed"] as const).find((type) =>
    status?.conditions?.some((one) =>
      one.type === type && one.status === "True"
    )
  );
  return {
    name: metadata.name,
    time: Number(minutes) * 60_000,
    ended: ended ?? "running",
  };
}

const reconciler: Reconciler<CronJob> = {
  async reconcile({ metadata, spec, status }, ctx) {
    const now = ctx.clock.wallTime();
    const jobs = (await ctx.secondaries(Job)).map(stateOf);
    const { running = [], Complete = [], Failed = [] } = Object.groupBy(
      jobs.toSorted((a, b) => b.time - a.time),
      ({ ended }) => ended,
    );
    const old = [
      ...Complete.slice(spec.successfulJobsHistoryLimit),
      ...Failed.slice(spec.failedJobsHistoryLimit),
    ];
    for (const { name } of old) await ctx.delete(Job, name);

    const schedule = parseSchedule(lineOf(spec.schedule));
    const deadline = (spec.startingDeadlineSeconds ?? 86_400) * 1_000;
    const made = Date.parse(metadata.creationTimestamp ?? "");
    const last = Math.max(
      Date.parse(status?.lastScheduleTime ?? "") || made,
      ...jobs.map(({ time }) => time),
    );
    // Of the times that were missed only the latest is made up for.
    let due = schedule.next(Math.max(last, now - deadline));
    for (let next = due; next !== undefined && next <= now;) {
      due = next;
      next = schedule.next(next);
    }
    const active = running.map(({ name }) => name);
    const isDue = due !== undefined && due <= now && !spec.suspend &&
      (spec.concurrencyPolicy !== "Forbid" || active.length === 0);
    if (isDue) {
      if (spec.concurrencyPolicy === "Replace") {
        for (const name of active.splice(0)) await ctx.delete(Job, name);
      }
      // The name is made of the time, so that no time is served twice.
      const name = `${metadata.name}-${due as number / 60_000}`;
      const { metadata: given, spec: job } = spec.jobTemplate;
      await ctx.apply(Job, { metadata: { ...given, name }, spec: job });
      active.push(name);
    }
    const time = isDue ? due as number : last;
    const result = setStatus({
      active: active.toSorted(),
      ...time > made && { lastScheduleTime: new Date(time).toISOString() },
    });
    const next = schedule.next(now);
    return next === undefined ? result : result.rescheduleAfter(next - now);
  },
};

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator({
    leaderElection: { name: "cron-jobs" },
    probes: { port: 8080 },
    webhooks: { service: { name: "cron-jobs" } },
    ...options,
  });
  operator.register(CronJob, reconciler, {
    owns: [Job],
    install: true,
    migrateStorage: true,
    admission,
  });
  return operator;
}

if (import.meta.main) await operator().run();
