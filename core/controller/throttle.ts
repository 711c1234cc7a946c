import type { Clock, Timer } from "../clock.ts";
import type { TokenBucket } from "../queue/token_bucket.ts";

/** What a {@linkcode Throttle} works with. */
export interface ThrottleOptions {
  /** Undefined for no limit. */
  readonly bucket: TokenBucket | undefined;
  readonly clock: Clock;
  /** Called when it makes sense to ask again. */
  readonly onReady: () => void;
}

/** Lets the runs of a controller begin at a rate. */
export class Throttle {
  readonly #options: ThrottleOptions;
  #timer: Timer | undefined;

  /** @param options The rate, and whom to call. */
  constructor(options: ThrottleOptions) {
    this.#options = options;
  }

  /** Whether a run may begin, which counts; if not, it calls when one may. */
  admit(): boolean {
    const { bucket, clock, onReady } = this.#options;
    if (bucket === undefined) return true;
    if (this.#timer !== undefined) return false;
    const wait = bucket.take(clock.now());
    if (wait === 0) return true;
    this.#timer = clock.setTimer(() => {
      this.#timer = undefined;
      onReady();
    }, wait);
    return false;
  }

  /** Calls nobody any more. */
  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
