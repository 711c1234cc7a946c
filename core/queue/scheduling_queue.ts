import { checkOptions, type OptionRules } from "../api/options.ts";
import { type Clock, systemClock } from "../clock.ts";
import { DeadlineTimer } from "./deadline_timer.ts";
import type { Limiter } from "./limiter.ts";
import { Priority } from "./priority.ts";
import type { AddOptions, SchedulingQueueOptions } from "./queue_options.ts";
import { ReadyLists } from "./ready_lists.ts";
import { DIRTY, QUIET, RUNNING, SlotTable, WAITING } from "./slot_table.ts";

const RULES: OptionRules<SchedulingQueueOptions> = {
  clock: "clock?",
  onReady: "function?",
  limiter: "object?",
};
const PLAIN_ADD: AddOptions = {};

/**
 * Decides which key runs when. It knows keys only: what a run does, and with
 * how many others, is up to who takes them.
 *
 * Promises
 * - A key runs at most once at a time, from {@linkcode SchedulingQueue.take} to
 *   {@linkcode SchedulingQueue.done}.
 * - Any number of adds before a run make one run; adds during a run make exactly
 *   one more. Nothing that was added is lost.
 * - Within a priority, keys run in the order in which they began to wait. An
 *   add that is more urgent than the one that waits moves the key up.
 * - A more urgent priority goes first, but none starves: a waiting key of
 *   priority `timer` is passed over at most 15 times in a row, one of `resync` at
 *   most 63 times.
 * - A removed key runs no more, whatever it waited for; its place and its
 *   timers are free at once. If it is running, the run goes on, knows by
 *   {@linkcode SchedulingQueue.isCurrent} that it is about something past, and
 *   a new incarnation of the key waits for its end.
 * - A key that neither waits, runs nor has a deadline costs nothing.
 * - There is one timer of the clock, for the earliest deadline.
 *
 * A key has at most three deadlines: a *timer* (the next retry or the longest
 * pause; each replaces the last), a *visit* that was asked for (kept until it is
 * due or replaced by another), and a *hold*, before which adds are collected but
 * do not run.
 *
 * A taken key is called by its slot, a small number, until it is done. All times
 * are milliseconds of the queue's clock.
 *
 * @example Take and run
 * ```ts
 * import { SchedulingQueue } from "@coracle/operator/core";
 *
 * const queue = new SchedulingQueue();
 * queue.add("default/web");
 * queue.add("default/web");
 * const slot = queue.take();
 * if (queue.key(slot) !== "default/web") throw new Error("Unexpected key");
 * queue.done(slot);
 * if (queue.take() !== -1) throw new Error("Unexpected run");
 * ```
 */
export class SchedulingQueue {
  readonly #clock: Clock;
  readonly #onReady: () => void;
  readonly #limiter: Limiter | undefined;
  readonly #table: SlotTable = new SlotTable();
  readonly #lists: ReadyLists = new ReadyLists();
  readonly #deadlines: DeadlineTimer;
  #waiting = 0;
  #running = 0;
  #closed = false;
  #drained: (() => void)[] = [];

  /**
   * Makes an empty queue.
   *
   * @param options How the queue behaves.
   * @throws {TypeError} If an option is unknown or of another type.
   */
  constructor(options: SchedulingQueueOptions = {}) {
    checkOptions(options, RULES, "a queue");
    const { clock = systemClock, onReady = () => {}, limiter } = options;
    this.#clock = clock;
    this.#onReady = onReady;
    this.#limiter = limiter;
    this.#deadlines = new DeadlineTimer(
      clock,
      (slot, now) => this.#meetDeadlines(slot, now),
    );
  }

  /** How many keys wait to be taken. */
  get waiting(): number {
    return this.#waiting;
  }

  /** How many keys are taken and not done. */
  get running(): number {
    return this.#running;
  }

  /** How many keys have a deadline. */
  get delayed(): number {
    return this.#deadlines.size;
  }

  /** How many keys are in the queue in some way. */
  get size(): number {
    return this.#table.size;
  }

  /** Makes a key run. */
  add(key: string, options: AddOptions = PLAIN_ADD): void {
    if (this.#closed) return;
    if (this.#table.full) this.#resize(this.#table.grow());
    this.#addSlot(
      this.#table.findOrMake(key),
      options.priority ?? Priority.live,
      options.cause ?? 0,
      options.detail,
    );
  }

  /** Forgets a key, and whatever it waited for, at once. */
  remove(key: string): void {
    const slot = this.#table.find(key);
    if (slot < 0) return;
    const { states, priorities, events, epochs } = this.#table;
    if (states[slot] === WAITING) {
      this.#lists.remove(priorities[slot] as number, slot);
      this.#waiting--;
    }
    states[slot] = (states[slot] as number) >= RUNNING ? RUNNING : QUIET;
    events[slot] = 0;
    this.#table.details[slot] = undefined;
    epochs[slot] = (epochs[slot] as number) + 1;
    this.#clearDeadlines(slot);
    this.#settle(slot);
    this.#checkDrained();
  }

  /** Forgets all keys, as {@linkcode SchedulingQueue.remove} does. */
  clear(): void {
    for (const key of [...this.#table.keys()]) this.remove(key);
  }

  /**
   * Takes the key whose turn it is.
   *
   * @returns Its slot, or -1 if none waits.
   */
  take(): number {
    while (this.#waiting > 0) {
      const slot = this.#lists.shift();
      this.#waiting--;
      if (this.#limiter !== undefined) {
        const now = this.#clock.now();
        const wait = this.#limiter.admit(this.key(slot), now);
        if (wait > 0) {
          this.#table.states[slot] = QUIET;
          this.#table.heldUntil[slot] = now + wait;
          this.#updateDeadline(slot);
          continue;
        }
      }
      this.#table.states[slot] = RUNNING;
      this.#table.takenEpochs[slot] = this.#table.epochs[slot] as number;
      this.#running++;
      return slot;
    }
    this.#checkDrained();
    return -1;
  }

  /**
   * Ends the run of a slot. If its key was added meanwhile, it waits again.
   *
   * @throws {RangeError} If the slot is not taken.
   */
  done(slot: number): void {
    const { states, events, details } = this.#table;
    const state = states[slot];
    if (state !== RUNNING && state !== DIRTY) {
      throw new RangeError(
        `Cannot end a run: the slot must have been taken: received ${slot}`,
      );
    }
    this.#running--;
    states[slot] = QUIET;
    if (state === DIRTY) this.#wait(slot);
    else {
      events[slot] = 0;
      details[slot] = undefined;
      this.#settle(slot);
    }
    this.#checkDrained();
  }

  /** The key of a taken slot. */
  key(slot: number): string {
    return this.#table.key(slot);
  }

  /** The number with which the run that a slot was taken for was added. */
  cause(slot: number): number {
    return this.#table.causes[slot] as number;
  }

  /** What else was said when it was added. */
  detail(slot: number): unknown {
    return this.#table.details[slot];
  }

  /** How many adds the run answers. Ask right after the take. */
  events(slot: number): number {
    return this.#table.events[slot] as number;
  }

  /** The priority of the run. Ask right after the take. */
  priority(slot: number): Priority {
    return this.#table.priorities[slot] as Priority;
  }

  /** When the run began to wait, by the queue's clock. */
  addedAt(slot: number): number {
    return this.#table.addedAt[slot] as number;
  }

  /** Whether the key of a running slot was not removed since it was taken. */
  isCurrent(slot: number): boolean {
    return this.#table.epochs[slot] === this.#table.takenEpochs[slot];
  }

  /** Whether the key of a running slot was added since it was taken. */
  isDirty(slot: number): boolean {
    return this.#table.states[slot] === DIRTY;
  }

  /**
   * Sets the timer of a running slot; an infinite time takes it away.
   *
   * @param at The time at which the key is added with priority `timer`.
   */
  setTimer(slot: number, at: number, options: AddOptions = PLAIN_ADD): void {
    if (this.#closed) return;
    this.#table.timerAt[slot] = at;
    this.#table.timerCauses[slot] = options.cause ?? 0;
    this.#updateDeadline(slot);
  }

  /** Asks for a visit of a running slot at a time; infinite takes it back. */
  setVisit(slot: number, at: number, options: AddOptions = PLAIN_ADD): void {
    if (this.#closed) return;
    this.#table.visitAt[slot] = at;
    this.#table.visitCauses[slot] = options.cause ?? 0;
    this.#updateDeadline(slot);
  }

  /** When the next visit is due that was asked for; infinite if none was. */
  visitAt(slot: number): number {
    return this.#table.visitAt[slot] as number;
  }

  /** Collects adds of a running slot until a time, and makes it wait then. */
  hold(slot: number, until: number): void {
    if (this.#closed) return;
    this.#table.heldUntil[slot] = until;
    this.#updateDeadline(slot);
  }

  /**
   * Takes no more adds and drops all deadlines. What waits can still be taken.
   *
   * @returns Fulfilled when nothing waits and nothing runs.
   */
  close(): Promise<void> {
    this.#closed = true;
    const { heldUntil, timerAt, visitAt } = this.#table;
    for (let slot; (slot = this.#deadlines.first) >= 0;) {
      timerAt[slot] = visitAt[slot] = Infinity;
      heldUntil[slot] = 0;
      this.#deadlines.set(slot, Infinity);
      // What was held back was added before: it is not lost.
      if (this.#table.states[slot] === QUIET) this.#wait(slot);
    }
    return new Promise((resolve) => {
      this.#drained.push(resolve);
      this.#checkDrained();
    });
  }

  #resize(capacity: number): void {
    this.#lists.resize(capacity);
    this.#deadlines.resize(capacity);
  }

  #addSlot(
    slot: number,
    priority: number,
    cause: number,
    detail: unknown,
  ): void {
    const table = this.#table;
    const state = table.states[slot] as number;
    const first = state === RUNNING || table.events[slot] === 0;
    const before = table.priorities[slot] as number;
    if (first || priority < before) {
      table.priorities[slot] = priority;
      table.causes[slot] = cause;
      table.details[slot] = detail;
    }
    table.events[slot] = first ? 1 : (table.events[slot] as number) + 1;
    if (state === QUIET) this.#wait(slot);
    else if (state === RUNNING) table.states[slot] = DIRTY;
    else if (state === WAITING && priority < before) {
      this.#lists.remove(before, slot);
      this.#lists.push(priority, slot);
    }
  }

  /** Lets a quiet slot with events wait, unless it is held back. */
  #wait(slot: number): void {
    const { states, priorities, events, addedAt, heldUntil } = this.#table;
    if (events[slot] === 0) {
      this.#settle(slot);
      return;
    }
    const now = this.#clock.now();
    if ((heldUntil[slot] as number) > now) return;
    states[slot] = WAITING;
    addedAt[slot] = now;
    this.#lists.push(priorities[slot] as number, slot);
    if (this.#waiting++ === 0) this.#onReady();
  }

  #clearDeadlines(slot: number): void {
    this.#table.timerAt[slot] = Infinity;
    this.#table.visitAt[slot] = Infinity;
    this.#table.heldUntil[slot] = 0;
    this.#updateDeadline(slot);
  }

  #updateDeadline(slot: number): void {
    const { timerAt, visitAt, heldUntil } = this.#table;
    const held = heldUntil[slot] as number;
    const due = Math.min(
      timerAt[slot] as number,
      visitAt[slot] as number,
      held > 0 ? held : Infinity,
    );
    this.#deadlines.set(slot, due);
  }

  #meetDeadlines(slot: number, now: number): void {
    const { timerAt, timerCauses, visitAt, visitCauses, heldUntil, states } =
      this.#table;
    const visit = (visitAt[slot] as number) <= now;
    const timer = (timerAt[slot] as number) <= now;
    const held = heldUntil[slot] as number;
    if (visit) visitAt[slot] = Infinity;
    if (timer) timerAt[slot] = Infinity;
    if (held > 0 && held <= now) heldUntil[slot] = 0;
    this.#updateDeadline(slot);
    // Each step may hand the slot out: what comes after sees its new state.
    if (visit) {
      this.#addSlot(
        slot,
        Priority.timer,
        visitCauses[slot] as number,
        undefined,
      );
    } else if (timer) {
      this.#addSlot(
        slot,
        Priority.timer,
        timerCauses[slot] as number,
        undefined,
      );
    } else if (states[slot] === QUIET) this.#wait(slot);
  }

  /** Recycles a slot that nothing needs any more. */
  #settle(slot: number): void {
    const { states, events, timerAt, visitAt, heldUntil } = this.#table;
    if (
      states[slot] !== QUIET || events[slot] !== 0 ||
      timerAt[slot] !== Infinity || visitAt[slot] !== Infinity ||
      heldUntil[slot] !== 0
    ) return;
    const table = this.#table;
    table.recycle(slot);
    if (table.size > 0) return;
    const { capacity } = table;
    if (table.rewind() < capacity) this.#resize(table.capacity);
  }

  #checkDrained(): void {
    if (!this.#closed || this.#waiting > 0 || this.#running > 0) return;
    for (const resolve of this.#drained.splice(0)) resolve();
  }
}
