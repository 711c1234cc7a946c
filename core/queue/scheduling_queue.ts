/**
 * Work queue of a controller: which key runs when, how failed runs are retried,
 * and how runs are limited.
 *
 * It knows keys only, no objects: it imports `api` and the clock. Keys are in a
 * plain `Map`. With a million keys, an operation on a hash table in typed arrays
 * takes half the time, but the dispatch benchmark is as fast with a `Map`.
 *
 * @module
 */
import { checkOptions, type OptionRules } from "../api/options.ts";
import { type Clock, systemClock, type Timer } from "../clock.ts";
import { ReadyLists } from "./ready_lists.ts";
import { TimerHeap } from "./timer_heap.ts";
import type { Limiter } from "./window_limiter.ts";

/** Maximum number of deadlines that one turn of the event loop handles. */
const DEADLINES_PER_TURN = 5_000;

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

export interface SchedulingQueueOptions {
  /** Clock of the queue; the system clock if absent. */
  readonly clock?: Clock | undefined;
  /**
   * Callback for the first key that starts to wait. It is called synchronously,
   * and may take keys immediately.
   */
  readonly onReady?: (() => void) | undefined;
  /** Limiter of the runs of single keys; no limit if absent. */
  readonly limiter?: Limiter | undefined;
}

const RULES: OptionRules<SchedulingQueueOptions> = {
  clock: "clock?",
  onReady: "function?",
  limiter: "object?",
};

/** Cause and priority with which a key is added. */
export interface AddOptions {
  /**
   * Priority of the run.
   *
   * @default {Priority.live}
   */
  readonly priority?: Priority | undefined;
  /**
   * Number of the cause, defined by the caller, from 0 to 255.
   *
   * @default {0}
   */
  readonly cause?: number | undefined;
  /** Details of the cause. */
  readonly detail?: unknown;
}

const PLAIN_ADD: AddOptions = {};

/**
 * Key taken from a queue, with the run that it was taken for. It is valid until
 * the run is done.
 */
export interface QueueItem {
  /** Key of the object. */
  readonly key: string;
  /** Priority of the run. */
  readonly priority: Priority;
  /** Cause with which the run was added: the most urgent one, or the first. */
  readonly cause: number;
  /** Details of the cause. */
  readonly detail: unknown;
  /** Number of adds that led to the run. */
  readonly events: number;
  /** Time when the key started to wait for the run, by the queue's clock. */
  readonly addedAt: number;
  /** Whether the key was added again since it was taken. */
  readonly isDirty: boolean;
  /** Whether the key was removed since it was taken. */
  readonly isRemoved: boolean;
  /** Time of the planned reschedule; infinite if none is planned. */
  readonly rescheduleAt: number;
}

/** State of a key apart from its deadlines. */
type State = "idle" | "waiting" | "running";

/** Run that a key was added for. */
class AddedRun {
  priority: Priority = 0;
  cause = 0;
  detail: unknown = undefined;
  events = 0;

  add(priority: Priority, cause: number, detail: unknown): void {
    if (this.events++ === 0 || priority < this.priority) {
      this.priority = priority;
      this.cause = cause;
      this.detail = detail;
    }
  }
}

/**
 * Key with its run: the one that it was taken for, or else the next one. Each
 * object has an item for its interval by default: what few items need is apart.
 */
class Item extends AddedRun implements QueueItem {
  readonly key: string;
  state: State = "idle";
  addedAt = 0;
  isRemoved = false;
  /** Next run of a taken key that was added again. */
  again: AddedRun | undefined = undefined;

  // Deadlines. V8 changes the number of a field in place if it never was
  // undefined, but allocates it apart: rare numbers are undefined at first.
  timerAt = Infinity;
  timerCause = 0;
  planned: { readonly at: number; readonly cause: number } | undefined =
    undefined;
  heldUntil: number | undefined = undefined;

  // Position in the timer heap, and neighbours in the list of its priority.
  heapIndex = -1;
  previous: Item | undefined = undefined;
  next: Item | undefined = undefined;

  constructor(key: string) {
    super();
    this.key = key;
  }

  get isDirty(): boolean {
    return this.again !== undefined;
  }

  get rescheduleAt(): number {
    return this.planned?.at ?? Infinity;
  }

  dropRun(): void {
    this.events = 0;
    this.detail = undefined;
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
 * - A key that neither waits, runs nor has a deadline takes no memory.
 * - There is one timer of the clock, for the earliest deadline.
 *
 * A key has at most three deadlines: a *timer* (the next retry or the longest
 * interval; each replaces the last), a *reschedule* (kept until it is due or
 * replaced by another one), and a *hold*, until which adds are collected but do
 * not run. All times are in milliseconds of the queue's clock.
 */
export class SchedulingQueue {
  readonly #clock: Clock;
  readonly #onReady: () => void;
  readonly #limiter: Limiter | undefined;
  readonly #items: Map<string, Item> = new Map();
  readonly #ready: ReadyLists<Item> = new ReadyLists();
  readonly #deadlines: TimerHeap<Item> = new TimerHeap();
  #timer: Timer | undefined;
  /** Due time of the clock's timer. */
  #timerDue = Infinity;
  #waiting = 0;
  #running = 0;
  #closed = false;
  #drained: (() => void)[] = [];

  /**
   * Creates an empty queue.
   *
   * @param options Clock, callback and limiter.
   * @throws {TypeError} If an option is unknown or of another type.
   */
  constructor(options: SchedulingQueueOptions = {}) {
    checkOptions(options, RULES, "a queue");
    const { clock = systemClock, onReady = () => {}, limiter } = options;
    this.#clock = clock;
    this.#onReady = onReady;
    this.#limiter = limiter;
  }

  /** Number of keys that wait to be taken. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Number of taken keys whose run has not ended. */
  get running(): number {
    return this.#running;
  }

  /** Number of keys with a deadline. */
  get delayed(): number {
    return this.#deadlines.size;
  }

  /** Number of keys that wait, run or have a deadline. */
  get size(): number {
    return this.#items.size;
  }

  /** Adds a key: it waits to run, or runs again if it is running. */
  add(key: string, options: AddOptions = PLAIN_ADD): void {
    if (this.#closed) return;
    let item = this.#items.get(key);
    if (item === undefined) {
      item = new Item(key);
      this.#items.set(key, item);
    }
    const { priority = Priority.live, cause = 0, detail } = options;
    this.#addItem(item, priority, cause, detail);
  }

  /**
   * Adds a key at a later time, in milliseconds of the queue's clock. A timer of
   * the key that is due earlier stays. A key that runs at that time runs again.
   */
  addAt(key: string, at: number, options: AddOptions = PLAIN_ADD): void {
    if (this.#closed) return;
    const item = this.#items.get(key) ?? new Item(key);
    this.#items.set(key, item);
    const { priority = Priority.timer, cause = 0, detail } = options;
    if (item.state === "running") {
      this.#addItem(item, priority, cause, detail);
    } else if (at < item.timerAt) {
      item.timerAt = at;
      item.timerCause = cause;
      this.#updateDeadline(item);
    }
  }

  /** Removes a key with its pending run and deadlines. */
  remove(key: string): void {
    const item = this.#items.get(key);
    if (item === undefined) return;
    if (item.state === "waiting") {
      this.#ready.remove(item.priority, item);
      this.#waiting--;
      item.state = "idle";
    }
    item.isRemoved = true;
    if (item.state === "idle") item.dropRun();
    item.again = undefined;
    item.timerAt = Infinity;
    item.planned = item.heldUntil = undefined;
    this.#updateDeadline(item);
    this.#forgetIdle(item);
    this.#checkDrained();
  }

  /** Removes all keys with their pending runs and deadlines. */
  clear(): void {
    for (const key of [...this.#items.keys()]) this.remove(key);
  }

  /** Takes the next key; undefined if none waits. */
  take(): QueueItem | undefined {
    while (this.#waiting > 0) {
      const item = this.#ready.shift();
      this.#waiting--;
      // A closed queue has no deadlines, so that it has nothing left once drained.
      if (this.#limiter !== undefined && !this.#closed) {
        const now = this.#clock.now();
        const wait = this.#limiter.admit(item.key, now);
        if (wait > 0) {
          item.state = "idle";
          item.heldUntil = now + wait;
          this.#updateDeadline(item);
          continue;
        }
      }
      item.state = "running";
      item.isRemoved = false;
      this.#running++;
      return item;
    }
    return undefined;
  }

  /**
   * Ends a run. If its key was added during the run, it waits again.
   *
   * @throws {RangeError} If the key is not taken.
   */
  done(taken: QueueItem): void {
    const item = taken as Item;
    if (item.state !== "running") {
      throw new RangeError(
        `Cannot end a run of ${item.key}: its key was not taken`,
      );
    }
    this.#running--;
    item.state = "idle";
    item.dropRun();
    const { again } = item;
    if (again !== undefined) {
      item.again = undefined;
      Object.assign(item, again);
    }
    this.#wait(item);
    this.#checkDrained();
  }

  /**
   * Sets the timer of a taken key; an infinite time cancels the timer.
   *
   * @param at Time at which the key is added with priority `timer`.
   */
  setTimer(
    taken: QueueItem,
    at: number,
    options: AddOptions = PLAIN_ADD,
  ): void {
    if (this.#closed) return;
    const item = taken as Item;
    item.timerAt = at;
    item.timerCause = options.cause ?? 0;
    this.#updateDeadline(item);
  }

  /**
   * Reschedules a taken key; an infinite time cancels the reschedule.
   *
   * @param at Time at which the key is added with priority `timer`.
   */
  reschedule(
    taken: QueueItem,
    at: number,
    options: AddOptions = PLAIN_ADD,
  ): void {
    if (this.#closed) return;
    const item = taken as Item;
    const { cause = 0 } = options;
    item.planned = at === Infinity ? undefined : { at, cause };
    this.#updateDeadline(item);
  }

  /**
   * Delays the next run of a taken key: events until the given time, in
   * milliseconds of the queue's clock, are collected into one run.
   */
  hold(taken: QueueItem, until: number): void {
    if (this.#closed) return;
    const item = taken as Item;
    item.heldUntil = until > 0 ? until : undefined;
    this.#updateDeadline(item);
  }

  /** Ends a hold early, unless it is over or was replaced. */
  release(taken: QueueItem, until: number): void {
    const item = taken as Item;
    if (item.heldUntil !== until) return;
    item.heldUntil = undefined;
    this.#updateDeadline(item);
    if (item.state === "idle") this.#wait(item);
  }

  /**
   * Closes the queue: later adds are ignored and deadlines are dropped. Waiting
   * keys can still be taken.
   *
   * @returns A promise that is fulfilled when no key waits or runs.
   */
  close(): Promise<void> {
    this.#closed = true;
    for (let item; (item = this.#deadlines.first) !== undefined;) {
      item.timerAt = Infinity;
      item.planned = item.heldUntil = undefined;
      this.#updateDeadline(item);
      // A held key was added before the close: it is not lost.
      if (item.state === "idle") this.#wait(item);
    }
    return new Promise((resolve) => {
      this.#drained.push(resolve);
      this.#checkDrained();
    });
  }

  #addItem(
    item: Item,
    priority: Priority,
    cause: number,
    detail: unknown,
  ): void {
    if (item.state === "running") {
      item.again ??= new AddedRun();
      item.again.add(priority, cause, detail);
      return;
    }
    const before = item.priority;
    item.add(priority, cause, detail);
    if (item.state === "idle") this.#wait(item);
    else if (priority < before) {
      this.#ready.remove(before, item);
      this.#ready.push(priority, item);
    }
  }

  /** Moves an idle item to the waiting keys if it was added and is not held. */
  #wait(item: Item): void {
    if (item.events === 0) {
      this.#forgetIdle(item);
      return;
    }
    const now = this.#clock.now();
    if ((item.heldUntil ?? 0) > now) return;
    item.state = "waiting";
    item.addedAt = now;
    this.#ready.push(item.priority, item);
    if (this.#waiting++ === 0) this.#onReady();
  }

  /** Deletes an idle item that has no deadline. */
  #forgetIdle(item: Item): void {
    if (
      item.state === "idle" && item.events === 0 && item.heapIndex < 0
    ) this.#items.delete(item.key);
  }

  #updateDeadline(item: Item): void {
    const { timerAt, rescheduleAt, heldUntil = Infinity } = item;
    this.#deadlines.set(item, Math.min(timerAt, rescheduleAt, heldUntil));
    this.#setTimer();
  }

  /** Sets the timer of the clock for the earliest deadline. */
  #setTimer(): void {
    const due = this.#deadlines.firstDue;
    if (due === Infinity) {
      this.#timer?.cancel();
      this.#timer = undefined;
      this.#timerDue = Infinity;
    } else if (due < this.#timerDue) {
      this.#timer?.cancel();
      this.#timerDue = due;
      this.#timer = this.#clock.setTimer(
        () => this.#fire(),
        due - this.#clock.now(),
      );
    }
    // A timer that fires too early finds nothing due and sets the next one.
  }

  #fire(): void {
    this.#timer = undefined;
    // As long as it is the least of all, no timer is set.
    this.#timerDue = -Infinity;
    const now = this.#clock.now();
    for (let count = 0; count < DEADLINES_PER_TURN; count++) {
      const item = this.#deadlines.first;
      if (item === undefined || this.#deadlines.firstDue > now) break;
      this.#meetDeadlines(item, now);
    }
    this.#timerDue = Infinity;
    this.#setTimer();
  }

  #meetDeadlines(item: Item, now: number): void {
    const { planned, timerAt, heldUntil = Infinity } = item;
    const isRescheduled = planned !== undefined && planned.at <= now;
    const isTimer = timerAt <= now;
    if (isRescheduled) item.planned = undefined;
    if (isTimer) item.timerAt = Infinity;
    if (heldUntil <= now) item.heldUntil = undefined;
    this.#updateDeadline(item);
    if (isRescheduled || isTimer) {
      const cause = isRescheduled ? planned.cause : item.timerCause;
      this.#addItem(item, Priority.timer, cause, undefined);
    } else if (item.state === "idle") this.#wait(item);
  }

  #checkDrained(): void {
    if (!this.#closed || this.#waiting > 0 || this.#running > 0) return;
    for (const resolve of this.#drained.splice(0)) resolve();
  }
}
