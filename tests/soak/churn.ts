import { ApiError } from "../../core/api/api_error.ts";
import type { Client } from "../../core/client/client.ts";
import { type Clock, sleep } from "../../core/clock.ts";
import { Buoy } from "./buoy.ts";
import type { Random } from "./random.ts";

/** What a {@linkcode Churn} works with. */
export interface ChurnOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  /** How many buoys there are, most of the time. */
  readonly objects: number;
  readonly changesPerSecond: number;
}

/** Changes buoys as the users of a cluster do, at random. */
export class Churn {
  readonly #options: ChurnOptions;
  /** How many changes the server has taken. */
  changes = 0;

  /** @param options What it works with. */
  constructor(options: ChurnOptions) {
    this.#options = options;
  }

  /** Makes all buoys. */
  async fill(): Promise<void> {
    for (let index = 0; index < this.#options.objects; index++) {
      await this.#create(name(index));
    }
  }

  /** Changes one after the other until a signal ends it. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, changesPerSecond } = this.#options;
    while (!signal.aborted) {
      await sleep(1_000 / changesPerSecond, { clock, signal }).catch(() => {});
      if (!signal.aborted) await this.#change();
    }
  }

  async #change(): Promise<void> {
    const { client, random, objects } = this.#options;
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
      // Faults befall everybody; what was deleted is made anew.
      if (ApiError.is(error) && error.isNotFound) await this.#create(key.name);
    }
  }

  async #create(name: string): Promise<void> {
    try {
      await this.#options.client.create(Buoy, {
        metadata: { namespace: "default", name },
        spec: { value: "first" },
      });
      this.changes++;
    } catch {
      // A later change of it finds that it is missing.
    }
  }
}

function name(index: number): string {
  return `buoy-${index}`;
}
