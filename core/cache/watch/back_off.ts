import type { Clock } from "../../clock.ts";

/** How {@linkcode BackOff} grows. All durations are milliseconds. */
export interface BackOffOptions {
  /** The first pause, before jitter. */
  readonly initial: number;
  /** The longest pause, before jitter. */
  readonly max: number;
  /** After how long without a pause the next is the first again. */
  readonly resetAfter: number;
  readonly clock: Clock;
  /** Gives a number from 0 to below 1. */
  readonly random: () => number;
}

/**
 * How long to pause before a connection is tried again: doubling up to a cap,
 * lengthened by up to itself at random so that the clients of a server that
 * comes back do not come back together, and small again after a good time.
 *
 * Whether the time was good is judged by when the last pause ended, not by
 * whether a connection was made: a server that accepts and drops connections
 * must not be hammered.
 */
export class BackOff {
  readonly #options: BackOffOptions;
  #delay: number;
  /** When the last pause was over, on the clock; undefined before the first. */
  #resumed: number | undefined;

  constructor(options: BackOffOptions) {
    this.#options = options;
    this.#delay = options.initial;
  }

  /**
   * The next pause in milliseconds.
   *
   * @param atLeast How long the server asked to wait, if it did; jitter comes
   * on top of it.
   */
  next(atLeast = 0): number {
    const { initial, max, resetAfter, clock, random } = this.#options;
    const now = clock.now();
    if (this.#resumed !== undefined && now - this.#resumed >= resetAfter) {
      this.#delay = initial;
    }
    const pause = Math.max(
      this.#delay * (1 + random()),
      atLeast * (1 + random() / 10),
    );
    this.#delay = Math.min(this.#delay * 2, max);
    this.#resumed = now + pause;
    return pause;
  }

  /** The first pause again, with jitter, without growing. */
  short(): number {
    const { initial, random } = this.#options;
    return initial * (1 + random());
  }
}
