import type { KubernetesObject } from "../api/object.ts";
import type { Clock } from "../clock.ts";
import { causeText, type RunCause } from "./cause.ts";
import type { RunObserver } from "./run_observer.ts";
import type { Run, RunResult } from "./run.ts";
import type { RunPlan } from "./run_state.ts";

/** One run as it is remembered. */
export interface RecordedRun {
  /** When it began, as the calendar tells it. */
  readonly at: string;
  /** Why it happened. */
  readonly cause: string;
  /** What it did: `reconcile`, `cleanup`, … */
  readonly step: string;
  /** Zero for a run that was no retry. */
  readonly attempt: number;
  /** How it ended. */
  readonly outcome: "success" | "failure" | "aborted";
  /** How long it waited for its turn, in milliseconds. */
  readonly waited: number;
  /** How long it took, in milliseconds. */
  readonly duration: number;
  /** What it wrote, for people: `apply v1 ConfigMap default/web`. */
  readonly writes: readonly string[];
  /** The nodes of its workflow and what became of them, for people. */
  readonly workflow?: string | undefined;
  /** What failed. */
  readonly error?: string | undefined;
  /** What comes next, if nothing happens before: `retry in 2000 ms`. */
  readonly next?: string | undefined;
}

/** Options of a {@linkcode RunHistory}. */
export interface RunHistoryOptions {
  readonly clock: Clock;
  /**
   * How many runs of an object are remembered.
   *
   * @default {10}
   */
  readonly runs?: number | undefined;
  /**
   * Of how many objects runs are remembered, those that ran last.
   *
   * @default {1_000}
   */
  readonly objects?: number | undefined;
}

/** The longest error text that is kept, in UTF-16 code units. */
const LONGEST_ERROR = 500;

/** A run as it is kept: what is for people is made when it is asked for. */
interface KeptRun extends
  Pick<
    RecordedRun,
    | "attempt"
    | "duration"
    | "error"
    | "outcome"
    | "waited"
    | "workflow"
    | "writes"
  > {
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly cause: RunCause;
  readonly step: string | undefined;
  /** What comes next, and in how many milliseconds. */
  readonly next: string | undefined;
  readonly nextIn: number;
}

/** Remembers the last runs of the objects that ran last. */
export class RunHistory<P extends KubernetesObject> implements RunObserver<P> {
  readonly #clock: Clock;
  readonly #runs: number;
  readonly #objects: number;
  /** In the order in which the objects ran last. */
  readonly #byKey: Map<string, KeptRun[]> = new Map();

  /** @param options How much is remembered. */
  constructor(options: RunHistoryOptions) {
    const { clock, runs = 10, objects = 1_000 } = options;
    this.#clock = clock;
    this.#runs = runs;
    this.#objects = objects;
  }

  /** The last runs of an object, the latest last; empty if there are none. */
  of(key: string): readonly RecordedRun[] {
    return (this.#byKey.get(key) ?? []).map(recorded);
  }

  ended(
    run: Run<P>,
    { end, error }: RunResult,
    plan: RunPlan | undefined,
  ): void {
    const now = this.#clock.now();
    const duration = now - run.startedAt;
    const { visitAt = Infinity, timerAt = Infinity } = plan ?? {};
    const runs = this.#byKey.get(run.key) ?? [];
    if (runs.length === this.#runs) runs.shift();
    runs.push({
      at: this.#clock.wallTime() - duration,
      cause: run.cause,
      step: run.step,
      attempt: run.retry.attempt,
      outcome: end.type !== "failed"
        ? "success"
        : plan === undefined
        ? "aborted"
        : "failure",
      waited: run.waited,
      duration,
      writes: run.writes,
      workflow: run.workflow?.summary,
      error: error === undefined
        ? undefined
        : String(error).slice(0, LONGEST_ERROR),
      next: plan?.failure === "event"
        ? "event"
        : visitAt < timerAt
        ? "reschedule"
        : plan?.timerCause,
      nextIn: Math.min(visitAt, timerAt) - now,
    });
    this.#byKey.delete(run.key);
    this.#byKey.set(run.key, runs);
    if (this.#byKey.size > this.#objects) {
      const [oldest] = this.#byKey.keys();
      this.#byKey.delete(oldest as string);
    }
  }
}

function recorded(run: KeptRun): RecordedRun {
  const { next, nextIn, error, workflow, ...kept } = run;
  return {
    ...kept,
    at: new Date(run.at).toISOString(),
    cause: causeText(run.cause),
    step: run.step ?? "reconcile",
    ...(workflow !== undefined && { workflow }),
    ...(error !== undefined && { error }),
    ...(next === "event" && { next }),
    ...(nextIn < Infinity && { next: `${next} in ${Math.round(nextIn)} ms` }),
  };
}
