/** A timer made by {@linkcode Clock.setTimer}. */
export interface Timer {
  /** Frees the timer at once; a timer that fired or was cancelled stays so. */
  cancel(): void;
}

/**
 * The only source of time in the library, so that a test or a user's scenario
 * can replace hours by milliseconds.
 *
 * Durations are measured with {@linkcode Clock.now}, which never jumps; only
 * timestamps that are written into objects come from
 * {@linkcode Clock.wallTime}.
 */
export interface Clock {
  /** Milliseconds since an arbitrary moment; never goes backwards. */
  now(): number;
  /** Milliseconds since the Unix epoch, as the machine's calendar tells it. */
  wallTime(): number;
  /**
   * Calls back once after a delay.
   *
   * @param callback What to call; it must not throw.
   * @param delay Milliseconds; zero or less means as soon as possible, and any
   * length is allowed (longer ones than the platform's limit of about 24.8 days
   * too).
   */
  setTimer(callback: () => void, delay: number): Timer;
}

/** The longest delay that `setTimeout` takes without firing at once. */
const LONGEST_TIMEOUT = 2 ** 31 - 1;

class SystemTimer implements Timer {
  #handle: ReturnType<typeof setTimeout> | undefined;

  constructor(callback: () => void, delay: number) {
    this.#arm(callback, delay);
  }

  #arm(callback: () => void, delay: number): void {
    const step = Math.min(Math.max(delay, 0), LONGEST_TIMEOUT);
    this.#handle = setTimeout(() => {
      if (delay > step) this.#arm(callback, delay - step);
      else {
        this.#handle = undefined;
        callback();
      }
    }, step);
  }

  cancel(): void {
    clearTimeout(this.#handle);
    this.#handle = undefined;
  }
}

/**
 * The machine's own clock.
 *
 * @example Measure a duration
 * ```ts
 * import { systemClock } from "@coracle/operator/core";
 *
 * const start = systemClock.now();
 * const elapsed = systemClock.now() - start;
 * if (elapsed < 0) throw new Error("Unexpected clock");
 * ```
 */
export const systemClock: Clock = {
  now: () => performance.now(),
  wallTime: () => Date.now(),
  setTimer: (callback, delay) => new SystemTimer(callback, delay),
};
