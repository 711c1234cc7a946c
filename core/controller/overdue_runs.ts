import type { KubernetesObject } from "../api/object.ts";
import type { Clock, Timer } from "../clock.ts";
import { type Logger, unfailingLogger } from "../logger.ts";
import type { AbortCause, Run, RunResult } from "./run.ts";
import type { RunObserver } from "./run_observer.ts";

/** What is known of a run that was asked to end and has not ended. */
export interface AbortedRun {
  /** Why it was asked to end. */
  readonly because: AbortCause;
  /** How long ago, in milliseconds. */
  readonly ago: number;
}

/** What {@linkcode OverdueRuns} works with. */
export interface OverdueRunsOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * How long after its abort a run is overdue, in milliseconds. Code that heeds
   * the signal ends within moments, and a last write or a closing connection
   * takes a few seconds: what goes on after ten does not listen.
   *
   * @default {10_000}
   */
  readonly grace?: number | undefined;
}

/**
 * The longest pause between two warnings of one run, in milliseconds. The pauses
 * double, so that a run that hangs for a night costs some ten lines; they stop
 * growing at an hour, so that whoever looks later still finds one.
 */
const LONGEST_PAUSE = 3_600_000;

/** A run that was asked to end. */
interface Waited {
  readonly because: AbortCause;
  /** By the clock. */
  readonly since: number;
  timer: Timer | undefined;
}

/**
 * Tells of runs that go on although their signal has fired. Such a run cannot be
 * ended from outside, and a second one of its object must not begin beside it:
 * it keeps its place for as long as it lasts, and its object is left as it is.
 * Only its owner can mend that, who would otherwise see nothing but silence.
 */
export class OverdueRuns<P extends KubernetesObject> implements RunObserver<P> {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #grace: number;
  readonly #aborted: Map<string, Waited> = new Map();
  #closed = false;

  /** @param options What it works with. */
  constructor(options: OverdueRunsOptions) {
    const { clock, log, grace = 10_000 } = options;
    this.#clock = clock;
    this.#log = unfailingLogger(log);
    this.#grace = grace;
  }

  /** How many runs are overdue. */
  get size(): number {
    const latest = this.#clock.now() - this.#grace;
    let count = 0;
    for (const { since } of this.#aborted.values()) {
      if (since <= latest) count++;
    }
    return count;
  }

  /** The run of an object, if it was asked to end and has not ended. */
  of(key: string): AbortedRun | undefined {
    const waited = this.#aborted.get(key);
    return waited && {
      because: waited.because,
      ago: this.#clock.now() - waited.since,
    };
  }

  started(run: Run<P>): void {
    run.onAbort = this.#onAbort;
  }

  ended(run: Run<P>, _result: RunResult): void {
    const waited = this.#aborted.get(run.key);
    if (waited === undefined) return;
    this.#aborted.delete(run.key);
    waited.timer?.cancel();
  }

  /** Warns no more: a timer would keep a program from its end. */
  close(): void {
    this.#closed = true;
    for (const { timer } of this.#aborted.values()) timer?.cancel();
  }

  /** One function for all runs, of which hardly any is aborted. */
  readonly #onAbort = (run: Run<P>, because: AbortCause): void => {
    const since = this.#clock.now();
    const waited: Waited = { because, since, timer: undefined };
    this.#aborted.set(run.key, waited);
    if (!this.#closed) this.#warnAfter(this.#grace, run, waited);
  };

  #warnAfter(pause: number, run: Run<P>, waited: Waited): void {
    waited.timer = this.#clock.setTimer(() => {
      const now = this.#clock.now();
      this.#log.warn(
        "A run goes on although its signal has fired: it keeps its place, and its object waits",
        {
          object: run.key,
          because: waited.because,
          abortedFor: Math.round(now - waited.since),
          runningFor: Math.round(now - run.startedAt),
        },
      );
      this.#warnAfter(Math.min(2 * pause, LONGEST_PAUSE), run, waited);
    }, pause);
  }
}
