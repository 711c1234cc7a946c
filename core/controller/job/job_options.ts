import { type Duration, milliseconds } from "../../api/duration.ts";
import { checkKind, type Kind, type ResolvedKind } from "../../api/kind.ts";
import { scheduleProblem, timeZoneProblem } from "../../api/cron_schedule.ts";
import { cronTimes } from "../../api/cron_times.ts";
import { isQualifiedName } from "../../api/label_selector.ts";
import type { KubernetesObject } from "../../api/object.ts";
import {
  checkOptions,
  type OptionTable,
  resolveOptions,
} from "../../api/options.ts";
import type {
  RetryPolicy,
  RetryPolicyOptions,
} from "../../queue/retry_policy.ts";
import type { Context } from "../context.ts";
import {
  CONTROLLER_OPTIONS,
  type ControllerOptions,
} from "../controller_options.ts";
import type { EventSource } from "../event_source.ts";
import type { Namespaces } from "../namespaces.ts";
import { WatchingSource } from "../watch/watch_source.ts";

/**
 * Kind of the only primary of a job, which is in no cluster. Events about a job
 * name it as their object.
 */
export const JOB_KIND: ResolvedKind = Object.freeze({
  group: "coracle.dev",
  version: "v1",
  kind: "OperatorJob",
  plural: "operatorjobs",
  scope: "Cluster",
});

/**
 * Options of a job: what causes its runs, and their limits.
 *
 * @example Count the Jobs each night
 * ```ts
 * import { Operator } from "@coracle/operator";
 * import { Job } from "@coracle/operator/kinds";
 *
 * const operator = new Operator();
 * operator.job("count", { cron: "0 3 * * *" }, async (ctx) => {
 *   ctx.log.info("Counted", { jobs: (await ctx.list(Job)).length });
 * });
 * ```
 */
export interface JobOptions {
  /**
   * Period of the runs, from the start of one to the start of the next; longer
   * than zero. The first run is at the start, unless `state` has an earlier
   * one. Defaults to none.
   */
  readonly every?: Duration | undefined;
  /**
   * Cron schedule of five fields, such as `"0 3 * * *"`, or `"@daily"`, read as
   * Kubernetes' CronJobs read theirs: a time that a change of the clock skips has
   * no run, and one that it repeats has two. Defaults to none.
   */
  readonly cron?: string | undefined;
  /**
   * Time zone of `cron`, such as `"Europe/Berlin"`.
   *
   * @default {"UTC"}
   */
  readonly timeZone?: string | undefined;
  /**
   * Object with an annotation `jobs.coracle.dev/<name of the job>` for the time of
   * the last run of the schedule that succeeded. Times that were missed while
   * the operator was away are then made up by one run, and a new leader does not
   * repeat what the last one has done. An object that does not exist is created, which
   * works for kinds such as ConfigMap, and its namespace defaults to that of the
   * operator. By default the schedule starts over at each start.
   */
  readonly state?: {
    /** Kind of the object. */
    readonly kind: Kind;
    /** Name of the object. */
    readonly name: string;
    /** Namespace of the object. */
    readonly namespace?: string | undefined;
  } | undefined;
  /**
   * Watches of kinds, such as `[watch(Service)]`: each change causes a run, and
   * `ctx.get` and `ctx.list` read from their caches. The job only reads
   * these objects, unless the watch has the option `readOnly: false`.
   *
   * @default {[]}
   */
  readonly watches?:
    | readonly (EventSource & { readonly kind: Kind })[]
    | undefined;
  /**
   * Other event sources: each event causes a run, whatever primary it names.
   *
   * @default {[]}
   */
  readonly sources?: readonly EventSource[] | undefined;
  /**
   * Quiet time before a run: a run that a change causes begins when there was no
   * further one for so long, at most ten times as long after the first.
   *
   * @default {0}
   */
  readonly debounce?: Duration | undefined;
  /**
   * Whether the job runs only on the replica that leads, or with sharding on one
   * member of the group; otherwise on each replica, and its writes are not
   * fenced.
   *
   * @default {true}
   */
  readonly leaderOnly?: boolean | undefined;
  /** Namespaces of the watches. Defaults to those of the operator. */
  readonly namespaces?: Namespaces | undefined;
  /**
   * Time limit of a run, after which `ctx.signal` aborts and the run counts as
   * failed. Defaults to no limit.
   */
  readonly timeout?: Duration | undefined;
  /**
   * Retry policy for failed runs, or `false` for no retries. By default a run is
   * retried after 1 s, 2 s, 4 s and so on, up to every 5 minutes.
   */
  readonly retry?: RetryPolicyOptions | RetryPolicy | false | undefined;
}

/**
 * Context of a run of a job: that of a reconciler without a primary. Nothing has
 * an owner, reads without a namespace are of all, and Events are about the job.
 */
export interface JobContext extends
  Pick<
    Context<KubernetesObject>,
    | "apply"
    | "cause"
    | "client"
    | "clock"
    | "controller"
    | "create"
    | "delete"
    | "events"
    | "fieldManager"
    | "interrupted"
    | "list"
    | "log"
    | "modify"
    | "nextImminent"
    | "patch"
    | "replace"
    | "retry"
    | "signal"
  > {
  /** Reads one object; undefined if it does not exist. */
  get<T extends KubernetesObject>(
    kind: Kind<T>,
    name: string,
    namespace?: string,
  ): Promise<T | undefined>;
}

/** Options of a job, checked and with defaults; times in milliseconds. */
export interface JobSettings {
  readonly name: string;
  readonly every: number | undefined;
  readonly cron: string | undefined;
  readonly timeZone: string;
  readonly state: JobOptions["state"];
  readonly debounce: number;
  readonly leaderOnly: boolean;
  /** Whether the job runs when it starts, without an event. */
  readonly runsAtStart: boolean;
}

type Undefaulted = "cron" | "every" | "namespaces" | "state";

const OPTIONS: OptionTable<JobOptions, Undefaulted> = {
  every: { type: "duration?", check: checkPeriod },
  cron: { type: "string?", check: checkCron },
  timeZone: {
    type: "string",
    default: "UTC",
    check(zone, subject) {
      const problem = timeZoneProblem(zone);
      if (problem !== undefined) {
        throw new RangeError(
          `Cannot read the options of ${subject}: "timeZone" must be a name such as "Europe/Berlin": received ${
            JSON.stringify(zone)
          }`,
        );
      }
    },
  },
  state: {
    type: "object?",
    options: { kind: "any", name: "name", namespace: "name?" },
  },
  watches: { type: "array", default: [] },
  sources: { type: "array", default: [] },
  debounce: { type: "duration", default: 0 },
  leaderOnly: { type: "boolean", default: true },
  namespaces: CONTROLLER_OPTIONS.namespaces,
  timeout: CONTROLLER_OPTIONS.timeout,
  retry: CONTROLLER_OPTIONS.retry,
} as OptionTable<JobOptions, Undefaulted>;

/** Longest period, of about a hundred years, in milliseconds. */
const MAX_PERIOD_MS = 36_500 * 24 * 3_600_000;

function checkPeriod(every: Duration, subject: string): void {
  const period = milliseconds(every, "every");
  if (period > 0 && period <= MAX_PERIOD_MS) return;
  throw new RangeError(
    `Cannot read the options of ${subject}: "every" must be longer than zero, and at most 36500d: received ${
      JSON.stringify(every)
    }`,
  );
}

/** Maximum length of a schedule, in characters. */
const MAX_SCHEDULE = 1_000;

function checkCron(schedule: string, subject: string): void {
  const problem = cronProblem(schedule);
  if (problem === undefined) return;
  throw new RangeError(
    `Cannot read the options of ${subject}: "cron" must be a schedule such as "0 3 * * *", but ${problem}: received ${
      JSON.stringify(schedule.slice(0, 100))
    }`,
  );
}

function cronProblem(schedule: string): string | undefined {
  if (schedule.length > MAX_SCHEDULE) {
    return `it has more than ${MAX_SCHEDULE} characters`;
  }
  if (/TZ=/.test(schedule)) return 'the time zone is the option "timeZone"';
  const problem = scheduleProblem(schedule);
  if (problem !== undefined) return problem;
  const comes = cronTimes(schedule).next(0) !== undefined;
  return comes ? undefined : "no day of any year matches it";
}

/** Annotation of the object that keeps the state of a job. */
export function stateAnnotation(job: string): string {
  return `jobs.coracle.dev/${job}`;
}

/**
 * Checks the options of a job.
 *
 * @returns Settings of the job, and options of the controller that runs it.
 * @throws {TypeError | RangeError | SyntaxError} If the name or an option is not
 * valid; the error names it.
 */
export function jobSettings(name: string, options: JobOptions): {
  readonly job: JobSettings;
  readonly controller: ControllerOptions;
} {
  const subject = `job "${String(name).slice(0, 100)}"`;
  const refuse = (why: string): never => {
    throw new TypeError(`Cannot register ${subject}: ${why}`);
  };
  if (typeof name !== "string" || !isQualifiedName(stateAnnotation(name))) {
    refuse(
      "its name must be of up to 63 lower-case letters, digits, dashes and dots",
    );
  }
  checkOptions(options, OPTIONS, subject);
  const { watches, sources, ...job } = resolveOptions(options, OPTIONS);
  // The controller fills in what is left out.
  const { namespaces, timeout, retry } = options;
  const { every, cron, timeZone, state, debounce, leaderOnly } = job;
  const isScheduled = every !== undefined || cron !== undefined;
  if (every !== undefined && cron !== undefined) {
    refuse('"every" and "cron" are two schedules, so give one of them');
  }
  if (cron === undefined && options.timeZone !== undefined) {
    refuse('"timeZone" is that of "cron", which is missing');
  }
  if (state !== undefined) {
    checkKind(state.kind, `${subject}, state`);
    if (!isScheduled) refuse('"state" is that of "every" or "cron"');
  }
  const hasEvents = watches.length + sources.length > 0;
  return {
    job: {
      name,
      every: every as number | undefined,
      cron,
      timeZone,
      state,
      debounce: debounce as number,
      leaderOnly,
      runsAtStart: hasEvents || !isScheduled,
    },
    controller: {
      name,
      namespaces,
      timeout,
      retry,
      watches: watches.map((source) => {
        if (!(source instanceof WatchingSource)) return source;
        if (!source.mapsByOwner) {
          refuse(
            "a watch of a job needs neither mapper nor references, since each change is one of the job",
          );
        }
        return source.usedBy(name);
      }),
      sources,
      concurrency: 1,
      maxInterval: false,
      pauseAnnotation: false,
    } as ControllerOptions,
  };
}
