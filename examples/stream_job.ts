/**
 * Operator for streaming jobs with state, like Flink's. They run on a job manager
 * with a REST API (`job_manager.ts`) at JOB_MANAGER_URL and are upgraded without
 * losing their state:
 *
 *     apiVersion: sample.coracle.dev/v1
 *     kind: StreamJob
 *     metadata: { name: clicks }
 *     spec: { program: "count-clicks:1", parallelism: 2, rollbackAfter: 5m }
 *
 * When the program changes, the job is stopped with a savepoint and started again
 * from it. If the new program is not ready in time, the old one is restored.
 */
import type { Reconciler } from "@coracle/operator";
import {
  defineKind,
  milliseconds,
  type ObjectOf,
  Operator,
} from "@coracle/operator";
import {
  changeMap,
  chooseUpgrade,
  newFailures,
  phased,
  type PhasedDefinition,
  type PhasedObject,
  type PhasedRun,
  phasedStatus,
  readyColumns,
  Stalled,
  Waiting,
} from "@coracle/operator/workflows";
import process from "node:process";
import { z } from "zod";

/** Job in the status. */
const KnownJob = z.object({
  id: z.string(),
  state: z.enum([
    "starting",
    "running",
    "stopping",
    "canceled",
    "finished",
    "failed",
  ]),
  endedAt: z.number().optional(),
  checkpoint: z.string().optional(),
  savepoint: z.string().optional(),
  failure: z.string().optional(),
});
type KnownJob = z.infer<typeof KnownJob>;

/** Job in the answers of the job manager; other answers are refused. */
const Job = KnownJob.extend({
  failures: z.array(z.object({ at: z.number(), text: z.string() })).max(1_000),
});

const StreamJob = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "StreamJob",
  spec: z.object({
    program: z.string().describe("Its name and, after a colon, its version"),
    parallelism: z.int().min(1).default(1),
    upgradeMode: z.enum(["stateless", "savepoint", "last-state"])
      .default("savepoint"),
    suspend: z.boolean().default(false),
    restoreFrom: z.string().optional(),
    restartFailed: z.boolean().default(true),
    rollbackAfter: z.string().regex(/^\d+(ms|s|m|h)$/).optional(),
    keepFinished: z.int().min(0).default(86_400).describe("In seconds"),
  }),
  status: phasedStatus(
    z.object({ job: KnownJob, failuresTold: z.number() }).partial(),
  ),
  printerColumns: [
    { name: "Job", type: "string", jsonPath: ".status.job.state" },
    ...readyColumns,
  ],
});
type StreamJob = ObjectOf<typeof StreamJob>;
type Run = PhasedRun<StreamJob>;

/** Path of the state that one deployment passes to the next, if any. */
interface Savepoint {
  readonly from: string | undefined;
}

/** Dependencies of the operator; tests replace the network and the clock. */
export interface StreamJobOptions
  extends Pick<PhasedDefinition<PhasedObject, unknown>, "poll" | "clock"> {
  /** URL of the job manager. */
  readonly url: string;
  /** Limit of an answer, in milliseconds. */
  readonly limit?: number;
  readonly fetch?: typeof fetch;
}

/**
 * Phases of a stream job. The framework decides what is done and when, and
 * records each step before it; these functions only say how it is done.
 */
export function streamJobs(
  options: StreamJobOptions,
): Reconciler<PhasedObject> {
  const { poll, clock } = options;
  const definition: PhasedDefinition<StreamJob, KnownJob | undefined> = {
    poll,
    // A lost job is noticed soon.
    interval: poll,
    clock,

    // All other fields need an upgrade.
    diff: changeMap({
      parallelism: "scale",
      upgradeMode: "none",
      restartFailed: "none",
      rollbackAfter: "none",
      keepFinished: "none",
      restoreFrom: { change: "redeploy", ignoreNull: true },
    }),

    validate: (_, next, last) =>
      last && nameOf(next) !== nameOf(last)
        ? `A job cannot become another one: received ${next.program}`
        : undefined,

    suspended: ({ suspend }) => suspend,

    // Only reads. The result is written before the next step, so the end of a job
    // remains known after the job manager has dropped it.
    async observe(run) {
      const { status } = run.object;
      const job = await call(run, {});
      if (job !== undefined) return remember(run, job);
      return isOver(status?.job) ? status?.job : undefined;
    },

    stable: (job) =>
      job?.state === "running" || job?.state === "finished" ||
      `The job is ${job?.state ?? "lost"}`,

    failed: (job) =>
      job?.state === "failed"
        ? { reason: "JobFailed", message: job.failure ?? "" }
        : undefined,

    // The id of a job is that of the attempt, so that it cannot be started twice.
    async isDeployed(run, attempt) {
      const job = await call(run, { attempt });
      return job !== undefined && job.state !== "canceled";
    },

    async deploy(run, { spec, attempt, savepoint }) {
      const { program, parallelism, restoreFrom } = spec;
      const { from } = savepoint as Savepoint | undefined ??
        { from: restoreFrom };
      const name = run.object.metadata.uid;
      const body = { name, program, parallelism, from };
      const job = await call(run, { attempt, method: "PUT", body });
      if (job !== undefined) remember(run, job);
    },

    // Repeated until the job has stopped and its state is known.
    async suspend(run, { observed: job, next, discard }) {
      const state = stateOf(run.object.status?.job);
      const choice = chooseUpgrade({
        requested: discard ? "stateless" : next.upgradeMode,
        job: situationOf(job),
        stateKnown: state !== undefined,
        highlyAvailable: false,
        manager: "reachable",
      });
      if ("impossible" in choice) {
        throw new Stalled("UpgradeFailed", choice.impossible);
      }
      if ("wait" in choice) return { state: "pending", reason: choice.wait };
      const { stop, restore } = choice.plan;
      if (stop === "nothing") {
        const from = restore === "nothing" ? undefined : state;
        return {
          state: "done",
          savepoint: { from } satisfies Savepoint,
          again: true,
        };
      }
      await call(run, {
        method: "POST",
        action: "/stop",
        body: { savepoint: stop === "savepoint" },
      });
      return { state: "pending", reason: `Stopping the job by ${stop}` };
    },

    async scale(run, { parallelism }) {
      try {
        await call(run, { method: "PATCH", body: { parallelism } });
        return true;
      } catch (error) {
        if (error instanceof Waiting && error.reason === "Refused") {
          return false;
        }
        throw error;
      }
    },

    // Never without state, unless the user wants it.
    recover({ object: { spec, status } }, { observed: job, deployed }) {
      const failed = job?.state === "failed" && deployed.restartFailed;
      if (job !== undefined && !failed) return undefined;
      const from = stateOf(status?.job);
      if (from === undefined && spec.upgradeMode !== "stateless") {
        throw new Stalled("StateUnknown", "No state to start again from");
      }
      const savepoint: Savepoint = { from };
      return failed
        ? { reason: "RestartFailed", message: "The job has failed", savepoint }
        : {
          reason: "RecoverDeployment",
          message: "The job is lost",
          savepoint,
        };
    },

    // A finished job is kept for a while, so that people can inspect it.
    async reconcileOtherChanges(run, { observed: job, deployed }) {
      const now = clock?.wallTime() ?? Date.now();
      const { state, endedAt = now } = job ?? {};
      const isDue = now >= endedAt + deployed.keepFinished * 1_000;
      if (state !== "finished" || !isDue) return false;
      return await call(run, { method: "DELETE" }) !== undefined;
    },

    rollback: ({ rollbackAfter: after }) => after ? { after } : undefined,

    // Repeated: a job that could not be read may be running.
    async cleanup(run) {
      const job = await call(run, {});
      if (job === undefined || isOver(job)) return true;
      const body = { savepoint: false };
      await call(run, { method: "POST", action: "/stop", body });
      return false;
    },
  };
  return phased(StreamJob, definition) as Reconciler<PhasedObject>;

  /** Sends a request about a job; undefined if none exists. */
  async function call(run: Run, request: {
    readonly attempt?: string;
    readonly method?: string;
    readonly action?: string;
    readonly body?: unknown;
  }): Promise<z.infer<typeof Job> | undefined> {
    const { ctx, object } = run;
    const { attempt = object.status?.rollout?.attempt } = request;
    const { method = "GET", action = "", body } = request;
    const limit = AbortSignal.timeout(options.limit ?? 5_000);
    let answer: { readonly status: number; readonly text: string };
    try {
      const path = `/jobs/${object.metadata.uid}-${attempt}${action}`;
      const response = await (options.fetch ?? fetch)(options.url + path, {
        method,
        signal: AbortSignal.any([ctx.signal, limit]),
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      answer = { status: response.status, text: await response.text() };
    } catch (error) {
      ctx.signal.throwIfAborted();
      throw trouble("JobManagerUnreachable", String(error));
    }
    return jobIn(answer);
  }
}

/** Writes the job to the status and reports its failures as events. */
function remember(
  { object, events }: Run,
  { failures, ...known }: z.infer<typeof Job>,
): KnownJob {
  const status = object.status!;
  const news = newFailures(failures, { after: status.failuresTold });
  for (const text of news.reported) events.warning("JobException", text);
  if (news.after !== undefined) status.failuresTold = news.after;
  return status.job = { ...known, failure: failures.at(-1)?.text };
}

/** Reads an answer; an invalid one is retried. */
function jobIn(
  { status, text }: { readonly status: number; readonly text: string },
): z.infer<typeof Job> | undefined {
  if (status === 404) return undefined;
  if (status === 409) throw trouble("Refused", text);
  if (status === 422) throw new Stalled("StateMissing", text);
  try {
    if (status < 300) return Job.parse(JSON.parse(text));
  } catch {
    // It is reported below.
  }
  throw trouble("JobManagerConfused", `${status} ${text.slice(0, 200)}`);
}

function trouble(reason: string, message: string): Waiting {
  return new Waiting(reason, message, { event: "Warning" });
}

function nameOf({ program }: StreamJob["spec"]): string | undefined {
  return program.split(":")[0];
}

function stateOf(job: KnownJob | undefined): string | undefined {
  return job?.savepoint ?? job?.checkpoint;
}

function isOver(job: KnownJob | undefined): boolean {
  return ["canceled", "finished", "failed"].includes(job?.state ?? "");
}

function situationOf(job: KnownJob | undefined) {
  switch (job?.state) {
    case "running":
    case "canceled":
      return job.state;
    case "stopping":
      return "canceling";
    case "starting":
      return "unready";
    default:
      return "ended";
  }
}

/** Operator of stream jobs, as this file and `coracle check` run it. */
export function operator(): Operator {
  const { JOB_MANAGER_URL = "http://127.0.0.1:8081", POLL } = process.env;
  const operator = new Operator();
  const reconciler = streamJobs({
    url: JOB_MANAGER_URL,
    poll: POLL ? milliseconds(POLL) : undefined,
  });
  operator.register(StreamJob, reconciler, { install: true });
  return operator;
}

if (import.meta.main) await operator().run();
