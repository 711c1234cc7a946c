import type { ApiServer, FaultEffect } from "@coracle/dev/apiserver";
import type { Clock } from "@coracle/operator/client";
import { sleep } from "../../core/clock.ts";
import type { Random } from "./random.ts";

/** Dependencies and rhythm of a {@linkcode Weather}. */
export interface WeatherDeps {
  readonly server: ApiServer;
  readonly clock: Clock;
  readonly random: Random;
  /** Duration of a fault, and of the quiet time after it, in milliseconds. */
  readonly period: number;
}

const EFFECTS: readonly FaultEffect[] = [
  { status: 429, retryAfter: 1 },
  { status: 500 },
  { status: 503, retryAfter: 1 },
  { conflict: true },
  { expired: true },
  { delay: 500 },
  { goAway: true },
  { reset: "request" },
  { cutAfter: 700 },
  { stallAfter: 5 },
  { withoutEndBookmark: true },
];

/** Random faults that begin and end. */
export class Weather {
  readonly #deps: WeatherDeps;
  /** Number of faults so far. */
  faults = 0;

  /** @param deps Dependencies and rhythm. */
  constructor(deps: WeatherDeps) {
    this.#deps = deps;
  }

  /** Begins and ends faults until the signal fires, and clears the last one. */
  async run(signal: AbortSignal): Promise<void> {
    const { server, clock, random, period } = this.#deps;
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

  /** Causes a fault without a duration. */
  #strike(): void {
    const { faults } = this.#deps.server;
    const { random } = this.#deps;
    random.pick([
      () => faults.cutWatches(),
      () => faults.endWatches(),
      () => faults.stallWatches(),
      () => faults.expireWatches(),
      () => faults.compact(),
      () => faults.goAway(),
      () => faults.dropConnections(),
      () => void faults.restart({ downFor: 2_000 }),
    ])();
  }
}
