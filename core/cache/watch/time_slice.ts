import { type Clock, nextTurn } from "../../clock.ts";

/** How long one turn of the event loop may be busy, in milliseconds. */
const LONGEST_SLICE = 6;
/** Asking the clock for every step would cost more than many steps do. */
const COST_BETWEEN_LOOKS = 64 * 1024;
/** What a step costs beside its bytes, in bytes. */
const COST_OF_STEP = 2 * 1024;

/**
 * Cuts long work into slices, so that timers, requests and runs get their turn
 * however much arrives at once.
 *
 * A slice starts after a rest, and only there: a chunk of bytes begins no new
 * one, since the chunks of a fast connection arrive in one turn.
 */
export class TimeSlice {
  readonly #clock: Clock;
  #start: number;
  #cost = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#start = clock.now();
  }

  /**
   * Counts one step; tells whether it is time to rest.
   *
   * @param bytes How much the step handled.
   */
  step(bytes: number): boolean {
    this.#cost += COST_OF_STEP + bytes;
    if (this.#cost < COST_BETWEEN_LOOKS) return false;
    this.#cost = 0;
    return this.#clock.now() - this.#start >= LONGEST_SLICE;
  }

  /**
   * Gives everybody else a turn and begins a new slice.
   *
   * @returns How long the others took, in milliseconds: how late the event loop
   * is.
   */
  async rest(): Promise<number> {
    const before = this.#clock.now();
    await nextTurn();
    this.#start = this.#clock.now();
    return this.#start - before;
  }
}
