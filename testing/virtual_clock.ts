import type { Clock, Timer } from "../core/clock.ts";
import { nextTurn } from "../core/next_turn.ts";

/** How a {@linkcode VirtualClock} starts and how long it waits. */
export interface VirtualClockOptions {
  /**
   * The calendar time at which the clock starts.
   *
   * @default {new Date("2026-01-01T00:00:00Z")}
   */
  readonly start?: Date | undefined;
  /**
   * How many turns of the event loop must pass without anybody setting or
   * cancelling a timer before the clock moves on. Raise it for code that needs
   * many turns in a row without touching the clock, such as requests over a
   * loopback socket.
   *
   * @default {4}
   */
  readonly quietTurns?: number | undefined;
  /**
   * How many timers one call may fire before it is taken for an endless loop.
   *
   * @default {100_000}
   */
  readonly maxTimers?: number | undefined;
}

/** How long {@linkcode VirtualClock.runUntil} goes on. */
export interface RunUntilOptions {
  /**
   * How far the clock may move, in milliseconds.
   *
   * @default {3_600_000}
   */
  readonly limit?: number | undefined;
  /**
   * How many turns of the event loop may pass with no timer left and the
   * condition still false.
   *
   * @default {1_000}
   */
  readonly idleTurns?: number | undefined;
}

/**
 * A clock that stands still until it is told to move, so that an operator with
 * retries of minutes and intervals of hours is tested in milliseconds.
 *
 * Timers fire in the order in which they are due; those due at the same moment
 * fire in the order in which they were set. Before the first timer and after
 * each one the clock lets promises and in-process I/O settle, so that whatever
 * a timer starts happens "at" that moment, and timers that it sets take part.
 *
 * @example An hour passes at once
 * ```ts
 * import { VirtualClock } from "@coracle/operator/testing";
 *
 * const clock = new VirtualClock();
 * let fired = 0;
 * clock.setTimer(() => fired++, 60 * 60 * 1000);
 * await clock.advance(59 * 60 * 1000);
 * if (fired > 0) throw new Error("Too early");
 * await clock.advance(60 * 1000);
 * if (fired < 1) throw new Error("Too late");
 * ```
 */
export class VirtualClock implements Clock {
  readonly #timers: TimerHeap = new TimerHeap();
  readonly #start: number;
  readonly #quietTurns: number;
  readonly #maxTimers: number;
  #now = 0;
  /** Grows whenever a timer is set or cancelled: somebody is still at work. */
  #activity = 0;
  #moving = false;
  /** What is waited for beside the turns of the event loop. */
  readonly #outside: Set<() => Promise<void>> = new Set();

  /**
   * Makes a clock that stands still.
   *
   * @param options Where the clock starts and how it waits.
   * @throws {RangeError} If a number is not a positive integer or the start is
   * not a valid date.
   */
  constructor(options: VirtualClockOptions = {}) {
    const {
      start = new Date("2026-01-01T00:00:00Z"),
      quietTurns = 4,
      maxTimers = 100_000,
    } = options;
    for (const [name, value] of Object.entries({ quietTurns, maxTimers })) {
      if (!Number.isInteger(value) || value < 1) {
        throw new RangeError(
          `Cannot make a VirtualClock: "${name}" must be a positive integer: received ${value}`,
        );
      }
    }
    if (Number.isNaN(start.getTime())) {
      throw new RangeError(
        `Cannot make a VirtualClock: "start" must be a valid date: received ${start}`,
      );
    }
    this.#start = start.getTime();
    this.#quietTurns = quietTurns;
    this.#maxTimers = maxTimers;
  }

  /** Milliseconds since this clock was made, as far as it was moved. */
  now(): number {
    return this.#now;
  }

  /** Milliseconds since the Unix epoch: the start plus {@linkcode now}. */
  wallTime(): number {
    return this.#start + this.#now;
  }

  /** How many timers wait. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** When the next timer is due, on the scale of {@linkcode now}. */
  get nextDue(): number | undefined {
    return this.#timers.peek()?.due;
  }

  /** Calls back when the clock was moved by so many milliseconds. */
  setTimer(callback: () => void, delay: number): Timer {
    this.#activity++;
    const entry = this.#timers.add(this.#now + Math.max(delay, 0), callback);
    return {
      cancel: () => {
        if (this.#timers.remove(entry)) this.#activity++;
      },
    };
  }

  /**
   * Moves the clock, fires every timer that comes due on the way, and lets the
   * rest settle.
   *
   * @param duration Milliseconds; zero settles and fires what is due now.
   * @throws {RangeError} If the duration is negative or not a number.
   * @throws {Error} If the clock is being moved already, or more timers fire
   * than `maxTimers` allows.
   */
  async advance(duration: number): Promise<void> {
    if (!(duration >= 0)) {
      throw new RangeError(
        `Cannot advance a VirtualClock: the duration must be zero or more milliseconds: received ${duration}`,
      );
    }
    await this.#exclusively(async () => {
      const end = this.#now + duration;
      await this.#settle();
      await this.#fireUntil(end, () => false);
      this.#now = end;
    });
  }

  /**
   * Moves the clock from timer to timer until a condition holds, and no
   * further. The condition is asked before each timer.
   *
   * @param condition What to wait for; a promise is awaited.
   * @throws {Error} If the limit is reached, or nothing happens any more,
   * before the condition holds.
   */
  async runUntil(
    condition: () => boolean | Promise<boolean>,
    options: RunUntilOptions = {},
  ): Promise<void> {
    const { limit = 3_600_000, idleTurns = 1_000 } = options;
    await this.#exclusively(async () => {
      const end = this.#now + limit;
      let idle = 0;
      await this.#settle();
      while (!await condition()) {
        const next = this.nextDue;
        if (next !== undefined && next <= end) {
          await this.#fireUntil(end, condition);
          idle = 0;
        } else if (idle++ < idleTurns) await nextTurn();
        else {
          throw new Error(
            `Cannot run until the condition holds: ${
              next === undefined
                ? "no timer is left"
                : `${limit} ms passed, and the next timer is due at ${next}`
            }: received ${condition}`,
          );
        }
      }
    });
  }

  /**
   * Lets promises and in-process I/O settle without moving the clock: turns of
   * the event loop pass until several in a row leave the timers untouched.
   */
  async settle(): Promise<void> {
    await this.#settle();
  }

  /**
   * Has the clock wait for something outside of this process whenever it lets
   * things settle: for a server at the end of a network, say.
   *
   * @param quiet Fulfilled when nothing is under way there.
   * @returns Ends that; safe to call twice.
   *
   * @example Time stands still while another process works
   * ```ts
   * import { VirtualClock } from "@coracle/operator/testing";
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
        "Cannot move a VirtualClock: it is being moved already: await the earlier call",
      );
    }
    this.#moving = true;
    try {
      await move();
    } finally {
      this.#moving = false;
    }
  }

  async #fireUntil(
    end: number,
    stop: () => boolean | Promise<boolean>,
  ): Promise<void> {
    for (let fired = 0;; fired++) {
      const next = this.#timers.peek();
      if (next === undefined || next.due > end || await stop()) return;
      if (fired === this.#maxTimers) {
        throw new Error(
          `Cannot move a VirtualClock: ${fired} timers fired in one call, which looks like an endless loop: the clock stands at ${this.#now} ms`,
        );
      }
      this.#timers.remove(next);
      this.#now = Math.max(this.#now, next.due);
      next.callback();
      await this.#settle();
    }
  }

  async #settle(): Promise<void> {
    let seen = this.#activity;
    let quiet = 0;
    // Somebody who sets a timer in every turn never becomes quiet; time must go
    // on all the same.
    for (let turns = 0; quiet < this.#quietTurns && turns < 1_000; turns++) {
      await nextTurn();
      quiet = this.#activity === seen ? quiet + 1 : 0;
      seen = this.#activity;
      if (quiet < this.#quietTurns) continue;
      for (const outside of this.#outside) await outside();
      if (this.#activity !== seen) quiet = 0;
    }
  }
}

interface TimerEntry {
  readonly due: number;
  /** Breaks ties: timers of one moment fire in the order they were set. */
  readonly order: number;
  readonly callback: () => void;
  /** Where it is in the heap; -1 when it is not. */
  position: number;
}

/** A binary heap whose entries know their place, so that any can be removed. */
class TimerHeap {
  readonly #entries: TimerEntry[] = [];
  #order = 0;

  get size(): number {
    return this.#entries.length;
  }

  peek(): TimerEntry | undefined {
    return this.#entries[0];
  }

  add(due: number, callback: () => void): TimerEntry {
    const entry = {
      due,
      order: this.#order++,
      callback,
      position: this.#entries.length,
    };
    this.#entries.push(entry);
    this.#rise(entry);
    return entry;
  }

  remove(entry: TimerEntry): boolean {
    const hole = entry.position;
    if (hole < 0) return false;
    const last = this.#entries.pop() as TimerEntry;
    entry.position = -1;
    if (last !== entry) {
      this.#place(last, hole);
      this.#rise(last);
      this.#sink(last);
    }
    return true;
  }

  #place(entry: TimerEntry, position: number): void {
    this.#entries[position] = entry;
    entry.position = position;
  }

  #rise(entry: TimerEntry): void {
    while (entry.position > 0) {
      const parent = this.#entries[(entry.position - 1) >> 1] as TimerEntry;
      if (!before(entry, parent)) return;
      const { position } = parent;
      this.#place(parent, entry.position);
      this.#place(entry, position);
    }
  }

  #sink(entry: TimerEntry): void {
    for (;;) {
      const left = this.#entries[2 * entry.position + 1];
      const right = this.#entries[2 * entry.position + 2];
      const child = left && right && before(right, left) ? right : left;
      if (child === undefined || !before(child, entry)) return;
      const { position } = child;
      this.#place(child, entry.position);
      this.#place(entry, position);
    }
  }
}

function before(a: TimerEntry, b: TimerEntry): boolean {
  return a.due < b.due || (a.due === b.due && a.order < b.order);
}
