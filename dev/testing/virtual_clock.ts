import {
  type Clock,
  type Duration,
  milliseconds,
  type Timer,
} from "@coracle/operator/client";
import {
  checkOption,
  checkOptions,
  modulesLoaded,
  nextTurn,
  type OptionRules,
  typeText,
} from "@coracle/operator/internal";

export interface VirtualClockOptions {
  /**
   * Wall time at which the clock starts.
   *
   * @default {new Date("2026-01-01T00:00:00Z")}
   */
  readonly start?: Date | undefined;
  /**
   * Number of event-loop turns without a timer being set or cancelled after
   * which the clock advances. Increase it for code that needs many turns in a row
   * without using the clock, such as requests by `node:http`; a test cluster waits
   * for those by `fetch`.
   *
   * @default {4}
   */
  readonly quietTurns?: number | undefined;
  /**
   * Maximum number of timers that one call fires; more count as an endless loop.
   *
   * @default {100_000}
   */
  readonly maxTimers?: number | undefined;
}

const RULES: OptionRules<VirtualClockOptions> = {
  start: "any?",
  quietTurns: "count?",
  maxTimers: "count?",
};

/**
 * Clock that advances only on request, so that an operator with retries of
 * minutes and intervals of hours is tested in milliseconds.
 *
 * Timers fire in the order in which they are due; those due at the same moment
 * fire in the order in which they were set. Before the first timer and after
 * each one the clock lets promises and in-process I/O settle, so that the work
 * that a timer starts happens at that moment, and timers that it sets take part.
 *
 * @example Advance an hour
 * ```ts
 * import { VirtualClock } from "@coracle/dev";
 *
 * const clock = new VirtualClock();
 * let fired = 0;
 * clock.setTimer(() => fired++, 60 * 60 * 1000);
 * await clock.advance("59m");
 * if (fired > 0) throw new Error("Too early");
 * await clock.advance("1m");
 * if (fired < 1) throw new Error("Too late");
 * ```
 */
export class VirtualClock implements Clock {
  readonly #timers: TimerList = new TimerList();
  readonly #start: number;
  readonly #quietTurns: number;
  readonly #maxTimers: number;
  #now = 0;
  /** Counter of set and cancelled timers; its changes show work in progress. */
  #activity = 0;
  #moving = false;
  /** Additional conditions of {@linkcode settle}, besides event-loop turns. */
  readonly #outside: Set<() => Promise<void>> = new Set();

  /**
   * Creates a clock that stands still.
   *
   * @param options Start time and limits.
   * @throws {RangeError} If a number is not a positive integer or the start is
   * not a valid date.
   */
  constructor(options: VirtualClockOptions = {}) {
    checkOptions(options, RULES, "a VirtualClock");
    const {
      start = new Date("2026-01-01T00:00:00Z"),
      quietTurns = 4,
      maxTimers = 100_000,
    } = options;
    if (!(start instanceof Date) || Number.isNaN(start.getTime())) {
      throw new RangeError(
        `Cannot create a VirtualClock: "start" must be a valid date: received ${
          start instanceof Date ? start : typeText(start)
        }`,
      );
    }
    this.#start = start.getTime();
    this.#quietTurns = quietTurns;
    this.#maxTimers = maxTimers;
  }

  /** Milliseconds that the clock was advanced since its creation. */
  now(): number {
    return this.#now;
  }

  /** Milliseconds since the Unix epoch: the start plus {@linkcode now}. */
  wallTime(): number {
    return this.#start + this.#now;
  }

  /** Number of pending timers. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Due time of the next timer, on the scale of {@linkcode now}. */
  get nextDue(): number | undefined {
    return this.#timers.next?.due;
  }

  /** Sets a timer that fires after a delay in milliseconds. */
  setTimer(callback: () => void, delay: number): Timer {
    this.#activity++;
    // NaN fires immediately, as with setTimeout.
    const due = this.#now + (delay > 0 ? delay : 0);
    const entry = this.#timers.add(due, callback);
    return {
      cancel: () => {
        if (this.#timers.remove(entry)) this.#activity++;
      },
    };
  }

  /**
   * Advances the clock and fires every timer that becomes due, letting promises
   * settle after each.
   *
   * @param duration Duration; zero settles and fires the timers that are due.
   * @throws {RangeError | SyntaxError} If it is not a duration.
   * @throws {Error} If another call advances the clock, or more timers fire than
   * `maxTimers` allows.
   */
  async advance(duration: Duration): Promise<void> {
    const length = milliseconds(duration);
    await this.#exclusively(async () => {
      const end = this.#now + length;
      await this.settle();
      await this.#fireUntil(end, () => false);
      this.#now = end;
    });
  }

  /**
   * Moves the clock at once, as if the machine had slept: timers that become due
   * in that time fire afterwards, each once, at the new time. A year costs as little
   * than a minute, but what would have happened on the way does not happen.
   *
   * @param duration Duration of the sleep.
   * @throws {RangeError | SyntaxError} If it is not a duration.
   * @throws {Error} If another call advances the clock, or more timers fire than
   * `maxTimers` allows.
   *
   * @example Wake up after a year
   * ```ts
   * import { VirtualClock } from "@coracle/dev";
   *
   * const clock = new VirtualClock();
   * let fired = 0;
   * const every = () => {
   *   fired++;
   *   clock.setTimer(every, 1000);
   * };
   * clock.setTimer(every, 1000);
   * await clock.jump("8760h");
   * if (fired !== 1) throw new Error("A timer fires once after a sleep");
   * ```
   */
  async jump(duration: Duration): Promise<void> {
    const length = milliseconds(duration);
    await this.#exclusively(async () => {
      await this.settle();
      this.#now += length;
      await this.#fireUntil(this.#now, () => false);
    });
  }

  /**
   * Advances the clock from timer to timer until a condition holds, and not
   * further. The condition is checked before each timer.
   *
   * @param condition Condition to wait for; a promise is awaited.
   * @param options Limits of the wait.
   * @param options.limit Maximum time to advance, in milliseconds; by default an
   * hour.
   * @param options.idleTurns Maximum number of event-loop turns without a pending
   * timer while the condition is false; by default 1,000.
   * @throws {Error} If the limit is reached, or no timer is pending, before the
   * condition holds.
   */
  async runUntil(
    condition: () => boolean | Promise<boolean>,
    options: {
      readonly limit?: number | undefined;
      readonly idleTurns?: number | undefined;
    } = {},
  ): Promise<void> {
    const { limit = 3_600_000, idleTurns = 1_000 } = options;
    checkOption(condition, "function", {
      name: "condition",
      subject: "runUntil()",
    });
    await this.#exclusively(async () => {
      const end = this.#now + limit;
      let idle = 0;
      await this.settle();
      while (!await condition()) {
        const next = this.nextDue;
        if (next !== undefined && next <= end) {
          if (await this.#fireUntil(end, condition)) return;
          idle = 0;
        } else if (idle++ < idleTurns) await nextTurn();
        else {
          throw new Error(
            `Cannot run until the condition holds: ${
              next === undefined
                ? "no timer is left"
                : `${limit} ms passed, and the next timer is due at ${next}`
            }`,
          );
        }
      }
    });
  }

  /**
   * Lets promises and in-process I/O settle without advancing the clock: waits
   * until several event-loop turns in a row set or cancel no timer.
   */
  async settle(): Promise<void> {
    let seen = this.#activity;
    let quiet = 0;
    // Code that sets a timer in every turn never becomes quiet; time must advance
    // nevertheless.
    for (let turns = 0; quiet < this.#quietTurns && turns < 1_000; turns++) {
      await nextTurn();
      quiet = this.#activity === seen ? quiet + 1 : 0;
      seen = this.#activity;
      if (quiet < this.#quietTurns) continue;
      const modules = modulesLoaded();
      await modules;
      for (const outside of this.#outside) await outside();
      if (this.#activity !== seen || modules !== undefined) quiet = 0;
    }
  }

  /**
   * Adds a condition that the clock waits for whenever it settles, for instance
   * that a server in another process is quiet.
   *
   * @param quiet Function whose promise resolves when nothing is in progress.
   * @returns A function that removes the condition; safe to call twice.
   *
   * @example Time stands still while another process works
   * ```ts
   * import { VirtualClock } from "@coracle/dev";
   *
   * const clock = new VirtualClock();
   * let looked = 0;
   * const forget = clock.waitFor(() => Promise.resolve(void looked++));
   * await clock.settle();
   * forget();
   * if (looked !== 1) throw new Error("Not asked");
   * ```
   */
  waitFor(quiet: () => Promise<void>): () => void {
    this.#outside.add(quiet);
    return () => void this.#outside.delete(quiet);
  }

  async #exclusively(move: () => Promise<void>): Promise<void> {
    if (this.#moving) {
      throw new Error(
        "Cannot advance a VirtualClock: an earlier call is in progress; await it first",
      );
    }
    this.#moving = true;
    try {
      await move();
    } finally {
      this.#moving = false;
    }
  }

  /** Fires timers until a moment, or a condition holds; returns whether it does. */
  async #fireUntil(
    end: number,
    stop: () => boolean | Promise<boolean>,
  ): Promise<boolean> {
    for (let fired = 0;; fired++) {
      const { next } = this.#timers;
      if (next === undefined || next.due > end) return false;
      if (await stop()) return true;
      if (fired === this.#maxTimers) {
        throw new Error(
          `Cannot advance a VirtualClock: ${fired} timers fired in one call, as many as the option maxTimers allows, which looks like an endless loop, at ${this.#now} ms; raise maxTimers for a longer time, or use jump()`,
        );
      }
      this.#timers.remove(next);
      this.#now = Math.max(this.#now, next.due);
      next.callback();
      await this.settle();
    }
  }
}

/** Pending timer. */
export interface TimerEntry {
  readonly due: number;
  /** Sequence number; timers with equal due times fire in this order. */
  readonly order: number;
  readonly callback: () => void;
}

/** Pending timers in the order in which they fire. */
export class TimerList {
  /** Timers in reverse order, because removal is cheap at the end. */
  readonly #entries: TimerEntry[] = [];
  #order = 0;

  get size(): number {
    return this.#entries.length;
  }

  get next(): TimerEntry | undefined {
    return this.#entries.at(-1);
  }

  add(due: number, callback: () => void): TimerEntry {
    const entry = { due, order: this.#order++, callback };
    this.#entries.splice(this.#placeOf(entry), 0, entry);
    return entry;
  }

  /** Removes a timer; returns whether it was pending. */
  remove(entry: TimerEntry): boolean {
    const place = this.#placeOf(entry);
    if (this.#entries[place] !== entry) return false;
    this.#entries.splice(place, 1);
    return true;
  }

  /** Index of a timer, or of its insertion, by binary search. */
  #placeOf({ due, order }: TimerEntry): number {
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.#entries[middle] as TimerEntry;
      const isLater = other.due > due ||
        (other.due === due && other.order > order);
      if (isLater) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
