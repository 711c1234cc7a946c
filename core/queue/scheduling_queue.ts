/**
 * Work queue of a controller. It knows keys only, no objects, and holds them in typed
 * arrays: with a million of them an operation takes a third of the time, and a
 * fifth of the memory, of a `Map` of objects.
 *
 * @module
 */
import { type Clock, systemClock, type Timer } from "../clock.ts";
import {
  IDLE,
  KeyRows,
  NONE,
  REMOVED,
  RUNNING,
  UNPLACED,
  WAITING,
} from "./key_rows.ts";
import { PlaceTimes } from "./place_times.ts";
import { ReadyLists } from "./ready_lists.ts";
import { type Limiter, type RateLimitWindow, RunWindows } from "./limits.ts";

/** Maximum number of deadlines that one turn of the event loop handles. */
const DEADLINES_PER_TURN = 5_000;

/**
 * Pause between sweeps of so many intervals that each takes a while. An interval
 * ends later by at most this time.
 */
const MANY_INTERVALS = 10_000;
const SWEEP_PAUSE_MS = 500;

/** Priority of a run; the lowest number is the most urgent. */
export type Priority = 0 | 1 | 2;

/** Priorities of runs, by name. */
export const Priority: {
  /** Priority of a change of an object. */
  readonly live: 0;
  /** Priority of a run of a timer: a retry, a reschedule or the interval. */
  readonly timer: 1;
  /** Priority of an object from the initial list or from a relist. */
  readonly resync: 2;
} = { live: 0, timer: 1, resync: 2 };

/** Cause and priority with which a key is added. */
export interface AddOptions {
  readonly priority: Priority;
  /** Cause of the run, for the caller. */
  readonly cause: unknown;
}

/** Cause of the timer of a key: its next retry, or the end of its interval. */
export type TimerCause = "retry" | "interval";

export interface SchedulingQueueOptions {
  /** Clock of the queue; the system clock if absent. */
  readonly clock?: Clock | undefined;
  /**
   * Callback for the first key that starts to wait. It is called synchronously,
   * and may take keys immediately.
   */
  readonly onReady?: (() => void) | undefined;
  /** Limit of the runs of single keys; no limit if absent. */
  readonly limiter?: RateLimitWindow | Limiter | undefined;
  /**
   * Key at a place; undefined if none exists now. A place is a number from 0 that
   * the owner gives a key, such as its slot in a store. A key that only waits for
   * its first run, or for its interval, takes eight bytes at its place. Each key
   * has at most one, and it must be cleared before another key gets it.
   */
  readonly keyAt?: ((place: number) => string | undefined) | undefined;
  /** Causes of the runs that the queue adds. */
  readonly causes: {
    /** First run, with the lowest priority. */
    readonly first: AddOptions;
    readonly retry: AddOptions;
    readonly reschedule: AddOptions;
    readonly interval: AddOptions;
  };
}

/** Key taken from a queue, with a copy of its run; valid until the run is done. */
export class QueueItem<V = unknown> {
  readonly key: string;
  readonly row: number;
  /** The most urgent add that led to the run, or the first of them. */
  readonly add: AddOptions;
  /** Number of adds that led to the run. */
  readonly events: number;
  /** Time when the key started to wait for the run, by the queue's clock. */
  readonly addedAt: number;
  readonly #rows: KeyRows;

  constructor(rows: KeyRows, row: number) {
    this.#rows = rows;
    this.row = row;
    this.key = rows.key(row) as string;
    this.add = rows.adds[row] as AddOptions;
    this.events = rows.events[row] as number;
    this.addedAt = rows.addedAt[row] as number;
  }

  /** Whether the row is that of the key: it may be another's after the run. */
  get isCurrent(): boolean {
    return this.#rows.key(this.row) === this.key;
  }

  /**
   * Value that the owner keeps with the key; undefined if absent. Unless the key is
   * taken, {@linkcode SchedulingQueue.remove} drops it.
   */
  get value(): V | undefined {
    return this.#rows.values[this.row] as V | undefined;
  }

  set value(value: V | undefined) {
    this.#rows.values[this.row] = value;
  }

  /** Number of adds for the next run since it was taken, also when it is done. */
  get added(): number {
    return this.isCurrent ? this.#rows.events[this.row] as number : 0;
  }

  /** Whether the key was removed since it was taken. */
  get isRemoved(): boolean {
    return this.#rows.states[this.row] === REMOVED;
  }
}

/**
 * Work queue of keys with priorities and deadlines: decides which key runs when.
 * What a run does, and how many run concurrently, is up to the caller.
 *
 * Guarantees:
 * - A key has at most one run at a time, from {@linkcode SchedulingQueue.take} to
 *   {@linkcode SchedulingQueue.done}.
 * - Any number of adds before a run lead to one run; adds during a run lead to
 *   exactly one more. No add is lost.
 * - Within a priority, keys run in the order in which they started to wait. A
 *   more urgent add moves a waiting key up.
 * - More urgent priorities go first, but none starves: a waiting key of priority
 *   `timer` is passed over at most 15 times in a row, one of `resync` at most 63
 *   times.
 * - A removed key no longer runs, whatever it waited for, and its deadlines are
 *   freed immediately. If it is running, the run continues with
 *   {@linkcode QueueItem.isRemoved} set, and if the key is added again, its next
 *   run waits for the end of this one.
 * - A key that neither waits, runs nor has a deadline, value or period of a rate
 *   limit takes no memory. Keys with places that wait for their first run, or only
 *   for their interval, take eight bytes; the first ones are taken by place, in
 *   turn with other keys of priority `resync`.
 * - There is one timer of the clock, for the earliest deadline.
 *
 * A key has at most three deadlines: a *timer* (the next retry or the longest
 * interval; each replaces the last), a *reschedule* (kept until it is due or
 * replaced by another one), and a *hold*, until which adds are collected but do
 * not run. All times are in milliseconds of the queue's clock; an infinite time
 * cancels a deadline.
 */
export class SchedulingQueue<V = unknown> {
  readonly #clock: Clock;
  readonly #onReady: () => void;
  readonly #limiter: Limiter | undefined;
  readonly #windows: RunWindows | undefined;
  readonly #keyAt: (place: number) => string | undefined;
  readonly #causes: SchedulingQueueOptions["causes"];
  /** First runs and intervals of keys with places. */
  #times: PlaceTimes = new PlaceTimes();
  /** Time before which the intervals are not swept. */
  #noSweepBefore = 0;
  readonly #rows: KeyRows = new KeyRows();
  readonly #ready: ReadyLists = new ReadyLists(this.#rows);
  /** Earliest deadlines of rows. */
  readonly #deadlines: PlaceTimes = new PlaceTimes(256);
  #timer: Timer | undefined;
  /** Due time of the clock's timer. */
  #timerDue = Infinity;
  #waiting = 0;
  #running = 0;

  /**
   * Creates an empty queue.
   *
   * @throws {TypeError | RangeError} If the limit of runs is invalid.
   */
  constructor(options: SchedulingQueueOptions) {
    const { limiter } = options;
    this.#clock = options.clock ?? systemClock;
    this.#onReady = options.onReady ?? (() => {});
    this.#keyAt = options.keyAt ?? (() => undefined);
    this.#causes = options.causes;
    if (limiter === undefined || "admit" in limiter) this.#limiter = limiter;
    else this.#windows = new RunWindows(limiter);
  }

  /** Number of keys that wait to be taken. */
  get waiting(): number {
    return this.#waiting + this.#times.waiting;
  }

  /** Number of taken keys whose run has not ended. */
  get running(): number {
    return this.#running;
  }

  /** Number of keys with a deadline. */
  get delayed(): number {
    return this.#deadlines.delayed + this.#times.delayed;
  }

  /** Number of keys that take more memory than a place. */
  get size(): number {
    return this.#rows.size;
  }

  /** Whether any key waits for its first run by its place. */
  get hasFirst(): boolean {
    return this.#times.waiting > 0;
  }

  /** Value of a key; undefined if absent. */
  valueOf(key: string): V | undefined {
    const row = this.#rows.find(key);
    return row < 0 ? undefined : this.#rows.values[row] as V | undefined;
  }

  /** Sets the value of a key, without any effect on its runs. */
  setValue(key: string, value: V): void {
    this.#rows.values[this.#rows.findOrAdd(key)] = value;
  }

  /** Keys with a value, and their values. */
  *values(): Generator<[key: string, value: V], void, undefined> {
    const rows = this.#rows;
    for (const row of rows.rows()) {
      const value = rows.values[row] as V | undefined;
      if (value !== undefined) yield [rows.key(row) as string, value];
    }
  }

  /** Keys that wait or run, or will do so before the end of their interval. */
  *busyKeys(): Generator<string, void, undefined> {
    const rows = this.#rows;
    for (const row of rows.rows()) {
      const hasTimer = (rows.timerAt[row] as number) < Infinity &&
        rows.intervals[row] === NONE;
      const isPlanned = (rows.plannedAt[row] as number) < Infinity;
      if (hasTimer || isPlanned || !this.#isIdle(row)) {
        yield rows.key(row) as string;
      }
    }
    for (const place of this.#times.waitingPlaces()) {
      const key = this.#keyAt(place);
      if (key !== undefined) yield key;
    }
  }

  // Add.

  /**
   * Adds a key: it waits to run, or runs again if it is running.
   *
   * @param place Place of the key, where it may wait for its first run; -1 if it
   * has none, or nothing waits there.
   */
  add(key: string, add: AddOptions, place: number = NONE): void {
    const times = this.#times;
    const { first } = this.#causes;
    if (place >= 0 && add === first && this.#rows.find(key) < 0) {
      const wasReady = this.waiting > 0;
      times.wait(place, this.#clock.now());
      if (!wasReady) this.#onReady();
      return;
    }
    const row = this.#rows.findOrAdd(key);
    if (place >= 0 && times.isWaiting(place)) {
      times.set(place, Infinity);
      this.#addRow(row, first);
    }
    this.#addRow(row, add);
  }

  /**
   * Adds a key at a later time, unless it has an earlier timer. A key that is taken
   * runs again.
   *
   * @param at Time, in milliseconds of the queue's clock.
   * @param place Place of the key if it may wait there for the end of its interval.
   */
  addAt(
    key: string,
    at: number,
    cause: TimerCause,
    place: number = NONE,
  ): void {
    const rows = this.#rows;
    if (at === Infinity) return;
    if (place >= 0 && rows.find(key) < 0) {
      this.#times.set(place, at);
      this.#setTimer();
      return;
    }
    const row = rows.findOrAdd(key);
    if (this.#isTaken(row)) this.#addRow(row, this.#causes[cause]);
    else if (at < (rows.timerAt[row] as number)) {
      rows.timerAt[row] = at;
      rows.intervals[row] = cause === "retry" ? NONE : UNPLACED;
      this.#updateDeadline(row);
    }
  }

  /**
   * Holds a key that is about to be added until nothing was added for a time; a
   * key that waits already is not held.
   *
   * @param quiet That time, in milliseconds.
   * @param longest Longest hold after the first add, in milliseconds.
   */
  collect(key: string, quiet: number, longest: number): void {
    const rows = this.#rows;
    const row = rows.findOrAdd(key);
    if (rows.states[row] === WAITING) return;
    const now = this.#clock.now();
    if (rows.events[row] === 0) rows.addedAt[row] = now;
    const last = (rows.addedAt[row] as number) + longest;
    rows.heldUntil[row] = Math.max(
      rows.heldUntil[row] as number,
      Math.min(now + quiet, last),
    );
    this.#updateDeadline(row);
  }

  // Remove.

  /**
   * Removes a key with its pending run, its deadlines and, unless it is running,
   * its value.
   *
   * @param place Place of the key, if it has one.
   */
  remove(key: string, place: number = NONE): void {
    if (place >= 0) this.clearPlace(place);
    const row = this.#rows.find(key);
    if (row >= 0) this.#removeRow(row);
  }

  #removeRow(row: number): void {
    const rows = this.#rows;
    if (rows.states[row] === WAITING) {
      this.#ready.remove(this.#priority(row), row);
      this.#waiting--;
      rows.states[row] = IDLE;
    } else if (rows.states[row] === RUNNING) rows.states[row] = REMOVED;
    if (rows.states[row] === IDLE) rows.values[row] = undefined;
    rows.events[row] = rows.heldUntil[row] = 0;
    rows.adds[row] = undefined;
    rows.intervals[row] = NONE;
    rows.timerAt[row] = rows.plannedAt[row] = Infinity;
    this.#updateDeadline(row);
    this.#forgetIdle(row);
  }

  /** Drops what a key has at its place, and keeps its pending run and deadlines. */
  clearPlace(place: number): void {
    this.#times.set(place, Infinity);
    this.#setTimer();
  }

  /** Moves what a key has at its place to another one; -1 if it has none now. */
  move(from: number, to: number): void {
    if (to < 0) this.#times.set(from, Infinity);
    else this.#times.move(from, to, this.#clock.now());
  }

  /** Removes all keys with their pending runs and deadlines. */
  clear(): void {
    this.#times = new PlaceTimes();
    this.#setTimer();
    for (const row of this.#rows.rows()) this.#removeRow(row);
  }

  // Take.

  /** Takes the next key; undefined if none waits. */
  take(): QueueItem<V> | undefined {
    const rows = this.#rows;
    while (this.waiting > 0) {
      let row = this.#ready.shift(this.hasFirst);
      if (row < 0) row = this.#takeFirst();
      if (row < 0) continue;
      this.#waiting--;
      if (!this.#admit(row)) continue;
      const taken = new QueueItem<V>(rows, row);
      rows.states[row] = RUNNING;
      rows.events[row] = 0;
      rows.adds[row] = undefined;
      this.#running++;
      return taken;
    }
    return undefined;
  }

  /** Admits the run of a row, or holds the row as long as its limit says. */
  #admit(row: number): boolean {
    if (this.#windows === undefined && this.#limiter === undefined) return true;
    const rows = this.#rows;
    const now = this.#clock.now();
    for (const over of this.#windows?.end(now) ?? []) this.#forgetIdle(over);
    const wait = this.#windows?.admit(row, now) ??
      this.#limiter?.admit(rows.key(row) as string, now) ?? 0;
    if (wait === 0) return true;
    rows.states[row] = IDLE;
    rows.heldUntil[row] = now + wait;
    this.#updateDeadline(row);
    return false;
  }

  /** Next key that waits by its place, as a waiting row; -1 if it is gone. */
  #takeFirst(): number {
    const { place, since } = this.#times.take();
    const key = this.#keyAt(place);
    if (key === undefined) return NONE;
    const rows = this.#rows;
    if (rows.find(key) >= 0) {
      this.add(key, this.#causes.first);
      return NONE;
    }
    const row = rows.findOrAdd(key);
    this.#noteRun(row, this.#causes.first);
    rows.addedAt[row] = since;
    this.#waiting++;
    return row;
  }

  // While a key is taken: deadlines that count when its run is done.

  /**
   * Sets the timer of a taken key.
   *
   * @param place Place of the key; -1 if it has none. Its interval moves there when
   * nothing else is left of it, and a retry replaces it.
   */
  setTimer(
    taken: QueueItem,
    at: number,
    cause: TimerCause,
    place: number = NONE,
  ): void {
    const rows = this.#rows;
    const { row } = taken;
    if (place >= 0) this.#times.set(place, Infinity);
    rows.timerAt[row] = at;
    rows.intervals[row] = cause === "retry"
      ? NONE
      : place < 0
      ? UNPLACED
      : place;
    // A cancelled one is not counted, however long the run takes.
    if (at === Infinity) this.#updateDeadline(row);
  }

  /** Reschedules a taken key. */
  reschedule(taken: QueueItem, at: number): void {
    this.#rows.plannedAt[taken.row] = at;
  }

  /** Collects the adds of a taken key until a time into one run. */
  hold(taken: QueueItem, until: number): void {
    this.#rows.heldUntil[taken.row] = Math.max(until, 0);
  }

  /** Ends a hold early, unless it is over or was replaced. */
  release(taken: QueueItem, until: number): void {
    const { row, isCurrent } = taken;
    const rows = this.#rows;
    if (!isCurrent || rows.heldUntil[row] !== until) return;
    rows.heldUntil[row] = 0;
    this.#updateDeadline(row);
    if (rows.states[row] === IDLE) this.#wait(row);
  }

  /**
   * Ends a run. If its key was added during the run, it waits again.
   *
   * @throws {RangeError} If the key is not taken.
   */
  done(taken: QueueItem): void {
    const { row, isCurrent, key } = taken;
    if (!isCurrent || !this.#isTaken(row)) {
      throw new RangeError(`Cannot end a run of ${key}: its key was not taken`);
    }
    this.#running--;
    this.#rows.states[row] = IDLE;
    this.#updateDeadline(row);
    this.#wait(row);
  }

  // Rows.

  #isTaken(row: number): boolean {
    return (this.#rows.states[row] as number) >= RUNNING;
  }

  #priority(row: number): Priority {
    return (this.#rows.adds[row] as AddOptions).priority;
  }

  /** Notes an add for the next run; the most urgent one counts, or the first. */
  #noteRun(row: number, add: AddOptions): void {
    const rows = this.#rows;
    const isFirst = (rows.events[row] as number)++ === 0;
    if (isFirst || add.priority < this.#priority(row)) rows.adds[row] = add;
  }

  #addRow(row: number, add: AddOptions): void {
    const { states } = this.#rows;
    if (states[row] !== WAITING) {
      this.#noteRun(row, add);
      if (states[row] === IDLE) this.#wait(row);
      return;
    }
    const before = this.#priority(row);
    this.#noteRun(row, add);
    if (add.priority >= before) return;
    this.#ready.remove(before, row);
    this.#ready.push(add.priority, row);
  }

  /** Lets an idle key wait if it was added and is not held. */
  #wait(row: number): void {
    const rows = this.#rows;
    if (rows.events[row] === 0) {
      this.#forgetIdle(row);
      return;
    }
    const now = this.#clock.now();
    if ((rows.heldUntil[row] as number) > now) return;
    rows.states[row] = WAITING;
    rows.addedAt[row] = now;
    this.#ready.push(this.#priority(row), row);
    if (this.#waiting++ === 0 && !this.hasFirst) this.#onReady();
  }

  /** Whether a row has no run to wait for. */
  #isIdle(row: number): boolean {
    return this.#rows.states[row] === IDLE && this.#rows.events[row] === 0;
  }

  /** Frees the row of an idle key that nothing is known of. */
  #forgetIdle(row: number): void {
    if (
      this.#isIdle(row) && this.#due(row) === Infinity &&
      this.#rows.values[row] === undefined && !this.#windows?.has(row)
    ) this.#rows.remove(row);
  }

  // Deadlines.

  /** Earliest deadline of a row. */
  #due(row: number): number {
    const { timerAt, plannedAt, heldUntil } = this.#rows;
    return Math.min(
      timerAt[row] as number,
      plannedAt[row] as number,
      (heldUntil[row] as number) || Infinity,
    );
  }

  /** Notes the earliest deadline of a row; a lone interval moves to its place. */
  #updateDeadline(row: number): void {
    const { timerAt, plannedAt, heldUntil, intervals } = this.#rows;
    const place = intervals[row] as number;
    const at = timerAt[row] as number;
    if (
      place >= 0 && at < Infinity && this.#isIdle(row) &&
      plannedAt[row] === Infinity && heldUntil[row] === 0
    ) {
      this.#times.set(place, at);
      timerAt[row] = Infinity;
    }
    this.#deadlines.set(row, this.#due(row));
    this.#setTimer();
  }

  /** Time of the next sweep of the intervals. */
  get #sweepDue(): number {
    return Math.max(this.#times.earliest, this.#noSweepBefore);
  }

  /** Sets the timer of the clock for the earliest deadline. */
  #setTimer(): void {
    const due = Math.min(this.#deadlines.earliest, this.#sweepDue);
    // A timer that fires too early finds nothing due and sets the next one.
    if (due < Infinity && due >= this.#timerDue) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerDue = due;
    if (due === Infinity) return;
    const delay = due - this.#clock.now();
    this.#timer = this.#clock.setTimer(() => this.#fire(), delay);
  }

  #fire(): void {
    this.#timer = undefined;
    // As long as it is the least of all, no timer is set.
    this.#timerDue = -Infinity;
    const now = this.#clock.now();
    const due = this.#deadlines.takeDue(now, DEADLINES_PER_TURN);
    due.sort((a, b) => this.#due(a) - this.#due(b));
    for (const row of due) {
      // It may have been freed since.
      if (this.#rows.key(row) !== undefined) this.#meetDeadlines(row, now);
    }
    if (this.#sweepDue <= now) this.#sweep(now);
    this.#timerDue = Infinity;
    this.#setTimer();
  }

  #meetDeadlines(row: number, now: number): void {
    const rows = this.#rows;
    const isRescheduled = (rows.plannedAt[row] as number) <= now;
    const isTimer = (rows.timerAt[row] as number) <= now;
    if (isRescheduled) rows.plannedAt[row] = Infinity;
    if (isTimer) rows.timerAt[row] = Infinity;
    if ((rows.heldUntil[row] as number) <= now) rows.heldUntil[row] = 0;
    this.#updateDeadline(row);
    const { reschedule, retry, interval } = this.#causes;
    if (isRescheduled) this.#addRow(row, reschedule);
    else if (isTimer) {
      this.#addRow(row, rows.intervals[row] === NONE ? retry : interval);
    } else if (rows.states[row] === IDLE) this.#wait(row);
  }

  /** Adds the keys whose interval at their place is over. */
  #sweep(now: number): void {
    const due = this.#times.takeDue(now, DEADLINES_PER_TURN);
    for (const place of due) {
      const key = this.#keyAt(place);
      if (key === undefined) continue;
      this.#addRow(this.#rows.findOrAdd(key), this.#causes.interval);
    }
    const isMany = this.#times.delayed > MANY_INTERVALS;
    this.#noSweepBefore = isMany && due.length < DEADLINES_PER_TURN
      ? now + SWEEP_PAUSE_MS
      : 0;
  }
}
