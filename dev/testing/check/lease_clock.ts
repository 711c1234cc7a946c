import type { Clock, Timer } from "@coracle/operator/client";

/** Timer of a clock that may stand still. */
interface RestingTimer {
  readonly due: number;
  readonly fire: () => void;
  /** Timer of the clock below; undefined while the clock stands still. */
  running: Timer | undefined;
}

/**
 * Clock of the Lease of a leader: it stands still while the leader is alone and
 * undisturbed. Thousands of renewals would cost more than all other work of an idle
 * operator.
 */
export class LeaseClock implements Clock {
  readonly #clock: Clock;
  readonly #timers: Set<RestingTimer> = new Set();
  /** Time for which it has stood still, in milliseconds. */
  #stood = 0;
  #restsSince: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return (this.#restsSince ?? this.#clock.now()) - this.#stood;
  }

  wallTime(): number {
    return this.#clock.wallTime();
  }

  setTimer(callback: () => void, delay: number): Timer {
    const timer: RestingTimer = {
      due: this.now() + delay,
      fire: () => {
        this.#timers.delete(timer);
        callback();
      },
      running: undefined,
    };
    this.#timers.add(timer);
    this.#run(timer);
    return {
      cancel: () => {
        this.#timers.delete(timer);
        timer.running?.cancel();
      },
    };
  }

  /** Stands still until it is woken. */
  rest(): void {
    if (this.#restsSince !== undefined) return;
    this.#restsSince = this.#clock.now();
    for (const timer of this.#timers) timer.running?.cancel();
  }

  /** Goes on where it stood still. */
  wake(): void {
    if (this.#restsSince === undefined) return;
    this.#stood += this.#clock.now() - this.#restsSince;
    this.#restsSince = undefined;
    for (const timer of this.#timers) this.#run(timer);
  }

  #run(timer: RestingTimer): void {
    if (this.#restsSince !== undefined) return;
    timer.running = this.#clock.setTimer(timer.fire, timer.due - this.now());
  }
}
