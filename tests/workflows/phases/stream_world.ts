import type { Reconciler } from "@coracle/operator/core";
import type { PhasedObject } from "@coracle/operator/workflows";
import { type Job, JobManager } from "../../../examples/job_manager.ts";
import { streamJobs } from "../../../examples/stream_job.ts";
import { PhasedStore } from "./phased_store.ts";

/** What a stream job asks for, as far as the tests are concerned. */
export interface StreamJobSpec {
  readonly program: string;
  readonly parallelism: number;
  readonly upgradeMode: "stateless" | "savepoint" | "last-state";
  readonly suspend: boolean;
  readonly restoreFrom?: string;
  readonly restartFailed: boolean;
  readonly rollbackAfter?: string;
  readonly keepFinished: number;
}

/** What the API server fills in. */
const DEFAULTS: StreamJobSpec = {
  program: "count:1",
  parallelism: 1,
  upgradeMode: "savepoint",
  suspend: false,
  restartFailed: true,
  keepFinished: 86_400,
};

type StreamJob = PhasedObject<StreamJobSpec> & {
  status?: { job?: { id: string; state: string } };
};

/** A request that changes something at the job manager. */
const CHANGES: ReadonlySet<string> = new Set([
  "PUT",
  "PATCH",
  "POST",
  "DELETE",
]);

/**
 * The example `stream_job.ts` with its job manager, in one process: time stands
 * still between passes, and the operator can be killed around each request.
 */
export class StreamWorld extends PhasedStore<StreamJob> {
  manager: JobManager = new JobManager({ now: () => this.clock.wallTime() });
  /** Every request that changed something, such as `PUT 1.1`. */
  readonly actions: string[] = [];
  /** Answers in place of the job manager, if it is set. */
  answer: ((request: Request) => Promise<Response> | undefined) | undefined;

  constructor(spec: Partial<StreamJobSpec> = {}) {
    super({ spec: { ...DEFAULTS, ...spec } }, () =>
      streamJobs({
        url: "http://jobs",
        clock: this.clock,
        limit: 50,
        fetch: (url, init) => this.#fetch(new Request(url, init)),
      }) as unknown as Reconciler<StreamJob>);
  }

  /** A world in which a job runs and has counted something. */
  static async stable(spec: Partial<StreamJobSpec> = {}): Promise<StreamWorld> {
    const world = new StreamWorld(spec);
    await world.settle();
    await world.between();
    await world.settle();
    if (world.stored.status?.lifecycle !== "Stable") {
      throw new Error(`Not stable: ${JSON.stringify(world.stored.status)}`);
    }
    world.actions.length = 0;
    world.events.length = 0;
    return world;
  }

  /** The jobs that have not ended. */
  get running(): readonly Job[] {
    return this.manager.jobs.filter(({ state }) =>
      state === "running" || state === "starting" || state === "stopping"
    );
  }

  /** A job by the attempt that started it. */
  job(attempt: string): Job {
    const job = this.manager.jobs.find(({ id }) => id.endsWith(`-${attempt}`));
    if (job === undefined) throw new Error(`No job of attempt ${attempt}`);
    return job;
  }

  /** The job manager ends with all its jobs; only saved states remain. */
  loseJobs(): void {
    for (const { id } of this.manager.jobs) {
      this.manager.handle(
        new Request(`http://jobs/jobs/${id}`, {
          method: "DELETE",
        }),
      );
    }
  }

  /** Passes until neither the status nor the jobs change any more. */
  override async settle(): Promise<void> {
    await super.settle(() =>
      this.manager.jobs.map(({ records: _, ...job }) => job)
    );
  }

  override async between(): Promise<void> {
    this.manager.tick();
    await super.between();
  }

  async #fetch(request: Request): Promise<Response> {
    const answered = this.answer?.(request);
    if (answered !== undefined) {
      return await Promise.race([answered, aborted(request.signal)]);
    }
    if (!CHANGES.has(request.method)) return await this.manager.handle(request);
    const attempt = /-(\d+\.\d+)/.exec(request.url)?.[1];
    return await this.effect(() => {
      this.actions.push(`${request.method} ${attempt}`);
      return this.manager.handle(request);
    });
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener("abort", () => reject(signal.reason))
  );
}
