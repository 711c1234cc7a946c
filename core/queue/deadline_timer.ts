import type { Clock, Timer } from "../clock.ts";
import { TimerHeap } from "./timer_heap.ts";

/** How many deadlines one turn of the event loop handles. */
const DEADLINES_PER_TURN = 5_000;

/** The deadlines of slots, met by one timer of the clock for the earliest. */
export class DeadlineTimer {
  readonly #clock: Clock;
  readonly #onDue: (slot: number, now: number) => void;
  readonly #heap: TimerHeap = new TimerHeap(0);
  #timer: Timer | undefined;
  #timerDue = Infinity;

  /**
   * @param clock Where time comes from.
   * @param onDue Called for each slot that is due; it sets or takes away the
   * slot's deadline.
   */
  constructor(clock: Clock, onDue: (slot: number, now: number) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** How many slots have a deadline. */
  get size(): number {
    return this.#heap.size;
  }

  /** The slot that is due first; -1 if there is none. */
  get first(): number {
    return this.#heap.first;
  }

  /** Makes room for another number of slots. */
  resize(capacity: number): void {
    this.#heap.resize(capacity);
  }

  /** Sets the deadline of a slot; an infinite one takes it away. */
  set(slot: number, due: number): void {
    if (due === Infinity) this.#heap.remove(slot);
    else this.#heap.set(slot, due);
    this.#arm();
  }

  #arm(): void {
    const due = this.#heap.firstDue;
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
    // A timer that is too early finds nothing to do and arms the next.
  }

  #fire(): void {
    this.#timer = undefined;
    // As long as it is the least of all, nobody else arms a timer.
    this.#timerDue = -Infinity;
    const now = this.#clock.now();
    for (let count = 0; count < DEADLINES_PER_TURN; count++) {
      if (this.#heap.firstDue > now) break;
      this.#onDue(this.#heap.first, now);
    }
    this.#timerDue = Infinity;
    this.#arm();
  }
}
