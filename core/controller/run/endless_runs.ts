import type { KubernetesObject } from "../../api/object.ts";
import type { Clock } from "../../clock.ts";
import { type Logger, unfailingLogger } from "../../logger.ts";
import { causeText } from "../cause.ts";
import { LatestMap } from "../latest_map.ts";
import type { Run } from "./run.ts";
import type { RunObserver } from "./run_observers.ts";

/** Longest pause between two runs of a sequence, in milliseconds. */
const PAUSE_MS = 1_000;
/** Number of runs, and their time in milliseconds, that cause a warning. */
const MANY_RUNS = 100;
const LONG_MS = 5_000;
/** Shortest time between two warnings of a controller, in milliseconds. */
const WARNING_PAUSE_MS = 3_600_000;
/** Minimum number of observed objects: those that ran most recently. */
const MIN_OBJECTS = 500;

/** Runs of an object that follow one another. */
interface Sequence {
  /** Start of the first run by the clock of the controller. */
  since: number;
  /** End of the last run. */
  last: number;
  runs: number;
}

/**
 * Warning about an object that runs again and again without a pause: its own
 * writes trigger it, or it is rescheduled after milliseconds that were meant as
 * seconds. Each run succeeds, so nothing else would indicate the problem.
 */
export class EndlessRuns<P extends KubernetesObject> implements RunObserver<P> {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #sequences: LatestMap<Sequence> = new LatestMap(MIN_OBJECTS);
  #warnedAt = -Infinity;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Logger }) {
    this.#clock = clock;
    this.#log = unfailingLogger(log);
  }

  ended(run: Run<P>): void {
    const now = this.#clock.now();
    const sequence = this.#sequences.get(run.key);
    if (sequence === undefined || run.startedAt - sequence.last > PAUSE_MS) {
      const first = { since: run.startedAt, last: now, runs: 1 };
      return this.#sequences.set(run.key, first);
    }
    sequence.last = now;
    sequence.runs++;
    const duration = now - sequence.since;
    if (sequence.runs < MANY_RUNS || duration < LONG_MS) return;
    if (now - this.#warnedAt < WARNING_PAUSE_MS) return;
    this.#warnedAt = now;
    this.#log.warn("The runs of an object follow one another without a pause", {
      object: run.key,
      cause: causeText(run.cause),
      runs: sequence.runs,
      within: Math.round(duration),
      hint: run.cause.type === "reschedule"
        ? 'numbers are milliseconds: write rescheduleAfter("10s") for seconds'
        : "writes by ctx trigger no run, but those by ctx.client do; rateLimit limits the runs of an object",
    });
  }

  deleted(key: string): void {
    this.#sequences.delete(key);
  }
}
