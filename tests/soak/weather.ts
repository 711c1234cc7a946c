import type { FaultEffect } from "../../apiserver/faults/fault_rule.ts";
import type { ApiServer } from "../../apiserver/server.ts";
import { type Clock, sleep } from "../../core/clock.ts";
import type { Random } from "./random.ts";

/** What {@linkcode Weather} works with. */
export interface WeatherOptions {
  readonly server: ApiServer;
  readonly clock: Clock;
  readonly random: Random;
  /** How long a fault lasts, and a quiet time after it, in milliseconds. */
  readonly period: number;
}

const EFFECTS: readonly FaultEffect[] = [
  { status: 429, retryAfter: 1 },
  { status: 500 },
  { status: 503, retryAfter: 1 },
  { conflict: true },
  { expired: true },
  { delay: 500 },
  { reset: "request" },
  { cutAfter: 700 },
  { stallAfter: 5 },
  { withoutEndBookmark: true },
];

/** Faults that come and go at random. */
export class Weather {
  readonly #options: WeatherOptions;
  /** How many faults there were. */
  faults = 0;

  /** @param options What it works with. */
  constructor(options: WeatherOptions) {
    this.#options = options;
  }

  /** Lets faults come and go until a signal ends it, and clears the last. */
  async run(signal: AbortSignal): Promise<void> {
    const { server, clock, random, period } = this.#options;
    const rest = () => sleep(period, { clock, signal }).catch(() => {});
    while (!signal.aborted) {
      this.faults++;
      if (random.next() < 0.5) this.#strike();
      else {
        const effect = random.pick(EFFECTS);
        const probability = random.pick([0.1, 0.5, 1]);
        server.faults.add({ effect, probability });
      }
      await rest();
      server.faults.clear();
      if (!signal.aborted) await rest();
    }
  }

  /** Something that happens in a moment. */
  #strike(): void {
    const { faults } = this.#options.server;
    const { random } = this.#options;
    random.pick([
      () => faults.cutWatches(),
      () => faults.endWatches(),
      () => faults.stallWatches(),
      () => faults.expireWatches(),
      () => faults.compact(),
      () => faults.dropConnections(),
      () => void faults.restart({ downFor: 2_000 }),
    ])();
  }
}
