import type { Clock, Timer } from "@coracle/operator/client";
import { type TimerEntry, TimerList } from "../virtual_clock.ts";

/** Wall time at which a simulation starts. */
const START_MS = Date.UTC(2026, 0, 1);

/**
 * Clock of a simulation: it stands still until the simulation fires the next
 * timer. Each simulated process has its own view, whose timers end with it.
 */
export class WorldClock {
  readonly #timers: TimerList = new TimerList();
  readonly #start: number;
  #now = 0;
  #skew = 0;
  /** Counter of timer activity; its changes show work in progress. */
  activity = 0;

  /**
   * Creates a clock.
   *
   * @param start Wall time at the start, in milliseconds since the Unix epoch.
   */
  constructor(start: number = START_MS) {
    this.#start = start;
  }

  /** Milliseconds since the start of the simulation. */
  now(): number {
    return this.#now;
  }

  /** Milliseconds since the Unix epoch. */
  wallTime(): number {
    return this.#start + this.#now + this.#skew;
  }

  /** Shifts the wall time, like a correction of a machine's clock. */
  jump(milliseconds: number): void {
    this.#skew += milliseconds;
  }

  /** Due time of the next timer. */
  get nextDue(): number | undefined {
    return this.#timers.next?.due;
  }

  /** Advances to the next timer and fires it; false if none is due. */
  fireNext(until: number): boolean {
    const { next } = this.#timers;
    if (next === undefined || next.due > until) return false;
    this.#timers.remove(next);
    this.#now = Math.max(this.#now, next.due);
    this.activity++;
    next.callback();
    return true;
  }

  /** Advances to a time without firing timers. */
  moveTo(time: number): void {
    this.#now = Math.max(this.#now, time);
  }

  /** Creates a view of the clock whose timers can be dropped together. */
  view(): Clock & { drop(): void } {
    const pending = new Set<TimerEntry>();
    let dropped = false;
    return {
      now: () => this.#now,
      wallTime: () => this.wallTime(),
      setTimer: (callback, delay): Timer => {
        if (dropped) return { cancel: () => {} };
        this.activity++;
        // NaN fires immediately, as with setTimeout.
        const due = this.#now + (delay > 0 ? delay : 0);
        const entry: TimerEntry = this.#timers.add(due, () => {
          pending.delete(entry);
          callback();
        });
        pending.add(entry);
        return {
          cancel: () => {
            if (!pending.delete(entry)) return;
            this.#timers.remove(entry);
            this.activity++;
          },
        };
      },
      drop: () => {
        dropped = true;
        for (const entry of pending) this.#timers.remove(entry);
        pending.clear();
      },
    };
  }
}
