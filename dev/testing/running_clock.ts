import {
  type Clock,
  type Duration,
  milliseconds,
  systemClock,
  type Timer,
} from "@coracle/operator/client";
import { modulesLoaded, nextTurn } from "@coracle/operator/internal";
import { TimerList } from "./virtual_clock.ts";

/** Most timers that one call fires; more count as an endless loop. */
const MAX_TIMERS = 100_000;
/** Turns of the event loop without a new timer after which work counts as done. */
const QUIET_TURNS = 4;

/**
 * Clock that runs as that of the machine and can be moved ahead, for servers
 * whose clients are other processes: they wait in real time, and hours pass on
 * request.
 */
export class RunningClock implements Clock {
  readonly #machine: Clock;
  readonly #timers: TimerList = new TimerList();
  /** How far it is ahead of the machine, in milliseconds. */
  #ahead = 0;
  /** Timer of the machine for the first of the timers. */
  #alarm: { readonly due: number; readonly timer: Timer } | undefined;
  #activity = 0;
  #moves: Promise<void> = Promise.resolve();

  /**
   * Creates a clock that has the time of the machine.
   *
   * @param machine Clock of the machine.
   */
  constructor(machine: Clock = systemClock) {
    this.#machine = machine;
  }

  now(): number {
    return this.#machine.now() + this.#ahead;
  }

  wallTime(): number {
    return this.#machine.wallTime() + this.#ahead;
  }

  setTimer(callback: () => void, delay: number): Timer {
    this.#activity++;
    const due = this.now() + (delay > 0 ? delay : 0);
    const entry = this.#timers.add(due, callback);
    this.#arm();
    return {
      cancel: () => {
        if (!this.#timers.remove(entry)) return;
        this.#activity++;
        this.#arm();
      },
    };
  }

  /**
   * Moves the clock ahead from timer to timer, letting what each of them starts
   * settle. Calls wait for earlier ones.
   *
   * @throws {RangeError | SyntaxError} If it is not a duration.
   * @throws {Error} If more than 100,000 timers fire.
   */
  advance(duration: Duration): Promise<void> {
    const length = milliseconds(duration);
    return this.#inOrder(async () => {
      const end = this.now() + length;
      await this.#settle();
      await this.#fireUntil(end);
      this.#move(end - this.now());
    });
  }

  /**
   * Moves the clock at once, as if the machine had slept: timers that became due
   * in that time fire afterwards, each once. Calls wait for earlier ones.
   *
   * @throws {RangeError | SyntaxError} If it is not a duration.
   * @throws {Error} If more than 100,000 timers fire.
   */
  jump(duration: Duration): Promise<void> {
    const length = milliseconds(duration);
    return this.#inOrder(async () => {
      await this.#settle();
      this.#move(length);
      await this.#fireUntil(this.now());
    });
  }

  #inOrder(move: () => Promise<void>): Promise<void> {
    const moved = this.#moves.then(move);
    this.#moves = moved.catch(() => {});
    return moved;
  }

  async #fireUntil(end: number): Promise<void> {
    for (let fired = 0;; fired++) {
      const { next } = this.#timers;
      if (next === undefined || next.due > end) return;
      if (fired === MAX_TIMERS) {
        throw new Error(
          `Cannot advance the clock: ${fired} timers fired in one call, which looks like an endless loop; advance by less, or jump`,
        );
      }
      this.#timers.remove(next);
      this.#move(next.due - this.now());
      next.callback();
      await this.#settle();
    }
  }

  /** Moves ahead of the machine, whose timer is then due earlier. */
  #move(length: number): void {
    if (length > 0) this.#ahead += length;
    this.#alarm?.timer.cancel();
    this.#alarm = undefined;
    this.#arm();
  }

  async #settle(): Promise<void> {
    let seen = this.#activity;
    let quiet = 0;
    // What sets a timer in each turn is never quiet.
    for (let turn = 0; quiet < QUIET_TURNS && turn < 1000; turn++) {
      await modulesLoaded();
      await nextTurn();
      quiet = this.#activity === seen ? quiet + 1 : 0;
      seen = this.#activity;
    }
  }

  /** Sets the timer of the machine for the timer that is due next. */
  #arm(): void {
    const { next } = this.#timers;
    if (next?.due === this.#alarm?.due) return;
    this.#alarm?.timer.cancel();
    this.#alarm = next && {
      due: next.due,
      timer: this.#machine.setTimer(() => this.#ring(), next.due - this.now()),
    };
  }

  #ring(): void {
    this.#alarm = undefined;
    const now = this.now();
    for (;;) {
      const { next } = this.#timers;
      if (next === undefined || next.due > now) break;
      this.#timers.remove(next);
      next.callback();
    }
    this.#arm();
  }
}
