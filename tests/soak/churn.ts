import type { Client, Clock } from "@coracle/operator/client";
import { ApiError } from "../../core/api/api_error.ts";
import { sleep } from "../../core/clock.ts";
import { Buoy } from "./buoy.ts";
import type { Random } from "./random.ts";

/** Highest number of changes a second that are made one after another. */
const LANE_RATE = 25;
/** Longest delay that later changes make up for. */
const MAX_LATE_MS = 1_000;

/** Dependencies and rates of a {@linkcode Churn}. */
export interface ChurnDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  /** Number of buoys; fewer exist while some are deleted. */
  readonly objects: number;
  readonly changesPerSecond: number;
}

/** Changes random buoys, as the users of a cluster do. */
export class Churn {
  readonly #deps: ChurnDeps;
  /** Number of changes that the server accepted. */
  changes = 0;

  /** @param deps Dependencies and rates. */
  constructor(deps: ChurnDeps) {
    this.#deps = deps;
  }

  /** Creates all buoys. */
  async fill(): Promise<void> {
    for (let index = 0; index < this.#deps.objects; index++) {
      await this.#create(name(index));
    }
  }

  /**
   * Makes changes until the signal fires: one after another, but many at once
   * where one after another would be too slow.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, changesPerSecond } = this.#deps;
    const lanes = Math.ceil(changesPerSecond / LANE_RATE);
    const pause = 1_000 * lanes / changesPerSecond;
    await Promise.all(
      Array.from({ length: lanes }, async () => {
        let next = clock.now();
        while (!signal.aborted) {
          next = Math.max(next + pause, clock.now() - MAX_LATE_MS);
          const wait = next - clock.now();
          if (wait > 0) await sleep(wait, { clock, signal }).catch(() => {});
          if (!signal.aborted) await this.#change();
        }
      }),
    );
  }

  async #change(): Promise<void> {
    const { client, random, objects } = this.#deps;
    const key = { namespace: "default", name: name(random.below(objects)) };
    const dice = random.next();
    try {
      if (dice < 0.1) await client.delete(Buoy, key);
      else if (dice < 0.2) {
        const labels = { color: random.pick(["red", "green", "blue"]) };
        await client.patch(Buoy, key, { metadata: { labels } });
      } else {
        const spec = { value: `value-${random.below(1_000_000)}` };
        await client.patch(Buoy, key, { spec });
      }
      this.changes++;
    } catch (error) {
      // Faults affect this client, too; a deleted buoy is created again.
      if (ApiError.is(error) && error.isNotFound) await this.#create(key.name);
    }
  }

  async #create(name: string): Promise<void> {
    try {
      await this.#deps.client.create(Buoy, {
        metadata: { namespace: "default", name },
        spec: { value: "first" },
      });
      this.changes++;
    } catch {
      // A later change finds it missing and creates it.
    }
  }
}

function name(index: number): string {
  return `buoy-${index}`;
}
