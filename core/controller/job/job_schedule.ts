import type { KubernetesObject } from "../../api/object.ts";
import { keyText } from "../../api/object_key.ts";
import { timestamp } from "../../api/timestamp.ts";
import { cronTimes } from "../../api/cron_times.ts";
import type { Client } from "../../client/client.ts";
import type { Timer } from "../../clock.ts";
import { messageWithCause } from "../../error_text.ts";
import type { Gauge } from "../../metrics.ts";
import type { EventSource, SourceContext } from "../event_source.ts";
import { type JobSettings, stateAnnotation } from "./job_options.ts";

/**
 * Longest wait without a look at the calendar, in milliseconds: timers do not run
 * while a machine sleeps, and know nothing of a clock that is set.
 */
const MAX_WAIT_MS = 3_600_000;

/**
 * Event source of the schedule of a job. It triggers a run when a time has come,
 * and at its start one run for all times since the last run that is known of.
 */
export class JobSchedule implements EventSource {
  readonly name = "schedule";
  readonly leaderOnly: boolean;
  readonly #job: JobSettings;
  /** First time of the schedule after an instant; undefined if none exists. */
  readonly #after: (last: number) => number | undefined;
  #context: SourceContext | undefined;
  #timer: Timer | undefined;
  #next: number | undefined;
  #gauge: Gauge | undefined;
  /** Number of times of the schedule that have come, and that runs have met. */
  #come = 0;
  #met = 0;

  constructor(job: JobSettings) {
    const { every, cron = "", timeZone, leaderOnly } = job;
    this.#job = job;
    this.leaderOnly = leaderOnly;
    this.#after = every === undefined
      ? cronTimes(cron, timeZone).next
      : (last) => last + every;
  }

  /** Time of the next run, in milliseconds since 1970; undefined if none exists. */
  get next(): number | undefined {
    return this.#next;
  }

  async start(context: SourceContext): Promise<void> {
    this.#context = context;
    this.#come = this.#met = 0;
    this.#gauge = context.metrics.gauge({
      name: "coracle_job_next_run_timestamp_seconds",
      help: "Time of the next run of the schedule of a job.",
      labels: ["controller"],
    });
    await this.#plan(context);
  }

  /** Another replica may have run the job until now. */
  async onLead(): Promise<void> {
    const context = this.#context;
    if (context === undefined || this.#job.state === undefined) return;
    await this.#plan(context);
  }

  stop(): Promise<void> {
    this.#context = undefined;
    this.#timer?.cancel();
    this.#next = undefined;
    this.#gauge?.remove({ controller: this.#job.name });
    return Promise.resolve();
  }

  /**
   * Notes the begin of a run.
   *
   * @returns Function for its success, which keeps the time of the run in the
   * object of the option `state`.
   */
  begin(now: number): (client: Client) => Promise<void> {
    const come = this.#come;
    return async (client) => {
      if (come === this.#met) return;
      await this.#keep(client, now);
      this.#met = come;
    };
  }

  async #plan(context: SourceContext): Promise<void> {
    const { every, state } = this.#job;
    const last = state && await this.#lastRun(context, state);
    if (this.#context !== context) return;
    const now = context.clock.wallTime();
    const isFirst = every !== undefined && last === undefined;
    // A clock that was put back must not delay the schedule.
    const due = isFirst ? now : this.#after(Math.min(last ?? now, now));
    if (due !== undefined && due <= now) {
      this.#trigger(context);
      this.#arm(context, this.#after(now));
    } else this.#arm(context, due);
  }

  #trigger(context: SourceContext): void {
    this.#come++;
    context.trigger(this.#job.name);
  }

  #arm(context: SourceContext, due: number | undefined): void {
    const { clock } = context;
    this.#timer?.cancel();
    this.#next = due;
    if (due === undefined) return;
    this.#gauge?.set(due / 1_000, { controller: this.#job.name });
    this.#timer = clock.setTimer(() => {
      const now = clock.wallTime();
      if (now < due) this.#arm(context, due);
      else {
        this.#trigger(context);
        this.#arm(context, this.#after(now));
      }
    }, Math.min(due - clock.wallTime(), MAX_WAIT_MS));
  }

  /** Reads the time of the last run; undefined if there was none. */
  async #lastRun(
    { client, log }: SourceContext,
    state: NonNullable<JobSettings["state"]>,
  ): Promise<number | undefined> {
    const { kind, name, namespace = client.namespace } = state;
    const object = await client.find(kind, { name, namespace });
    const annotation = stateAnnotation(this.#job.name);
    const text = object?.metadata.annotations?.[annotation];
    const time = Date.parse(text ?? "");
    if (text === undefined || !Number.isNaN(time)) {
      return text === undefined ? undefined : time;
    }
    log.warn("An annotation must be a time, so the schedule starts over", {
      annotation,
      value: text.slice(0, 100),
    });
    return undefined;
  }

  async #keep(client: Client, time: number): Promise<void> {
    const { state, name: job } = this.#job;
    if (state === undefined) return;
    const { kind, name, namespace = client.namespace } = state;
    const { scope } = await client.resolve(kind);
    const key = scope === "Cluster" ? { name } : { name, namespace };
    const annotations = { [stateAnnotation(job)]: timestamp(time) };
    const object = { metadata: { ...key, annotations } };
    try {
      // Another manager than that of the job, which may apply the same object.
      await client.apply(kind, object as unknown as KubernetesObject, {
        fieldManager: `${job.slice(0, 100)}-schedule`,
        force: true,
      });
    } catch (error) {
      throw new Error(
        `Cannot keep the time of the run in ${kind.kind} ${keyText(key)}: ${
          messageWithCause(error)
        }`,
        { cause: error },
      );
    }
  }
}
