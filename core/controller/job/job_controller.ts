import type { KubernetesObject } from "../../api/object.ts";
import type { MaybePromise } from "../reconciler.ts";
import { Controller, type ControllerDeps } from "../controller.ts";
import type { ControllerOptions } from "../controller_options.ts";
import type { ObjectHistory } from "../object_history.ts";
import type { ReconcileResult } from "../result.ts";
import type { RunObserver } from "../run/run_observers.ts";
import type { Primaries } from "../watch/primary_source.ts";
import { JOB_KIND, type JobContext, type JobSettings } from "./job_options.ts";
import { JobSchedule } from "./job_schedule.ts";
import { SolePrimary } from "./sole_primary.ts";

/** Function of a job; its result may only say when to run again. */
export type JobRun = (ctx: JobContext) => MaybePromise<ReconcileResult | void>;

/**
 * Controller of a job: its only primary is the job itself, and each event of its
 * sources is one of that primary.
 */
export class JobController extends Controller {
  readonly #job: JobSettings;
  readonly #schedule: JobSchedule | undefined;

  constructor(job: JobSettings, options: ControllerOptions, run: JobRun) {
    const { every, cron, debounce, runsAtStart } = job;
    const schedule = every === undefined && cron === undefined
      ? undefined
      : new JobSchedule(job);
    super(
      JOB_KIND,
      {
        async reconcile(_primary, ctx) {
          const succeeded = schedule?.begin(ctx.clock.wallTime());
          const result = await run(ctx as JobContext);
          if (result !== undefined) checkWritesNothing(job, result);
          await succeeded?.(ctx.client);
          return result;
        },
      },
      {
        ...options,
        sources: [
          ...options.sources ?? [],
          ...schedule === undefined ? [] : [schedule],
        ],
      },
      { debounce, runsAtStart },
    );
    this.#job = job;
    this.#schedule = schedule;
  }

  override get isJob(): true {
    return true;
  }

  override get leaderOnly(): boolean {
    return this.#job.leaderOnly;
  }

  override get stateKind(): Controller["stateKind"] {
    return this.#job.state;
  }

  override why(key: string): ObjectHistory | undefined {
    const history = super.why(key);
    const next = this.#schedule?.next;
    return history && next !== undefined
      ? { ...history, scheduled: new Date(next).toISOString() }
      : history;
  }

  protected override primariesFrom(): Primaries<KubernetesObject> {
    const { name, runsAtStart } = this.#job;
    const { group, version, kind } = JOB_KIND;
    const primary = Object.freeze({
      apiVersion: `${group}/${version}`,
      kind,
      metadata: Object.freeze({ name, uid: name }),
    });
    return new SolePrimary<KubernetesObject>(primary, { runsAtStart });
  }

  protected override observersFor(
    { clock, metrics }: ControllerDeps,
  ): readonly RunObserver<KubernetesObject>[] {
    const labels = { controller: this.name };
    const success = metrics.gauge({
      name: "coracle_job_last_success_timestamp_seconds",
      help: "End of the last run of a job that succeeded.",
      labels: ["controller"],
    });
    return [{
      ended(_run, { end }, plan) {
        if (end.type === "failed" || plan === undefined) return;
        success.set(clock.wallTime() / 1_000, labels);
      },
    }];
  }
}

/** Checks that the result of a job writes nothing, as there is no primary. */
function checkWritesNothing(
  { name }: JobSettings,
  { status, resource }: Partial<ReconcileResult>,
): void {
  if (status === undefined && resource === undefined) return;
  throw new TypeError(
    `Cannot use the result of job "${name}": a job has no primary to patch, so return nothing, or noUpdate().rescheduleAfter()`,
  );
}
