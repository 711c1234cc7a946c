import assert from "node:assert/strict";
import process from "node:process";
import type { CacheEvent, Client } from "@coracle/operator/client";
import { Informer } from "../../core/cache/informer/informer.ts";
import { compareResourceVersions } from "../../core/api/resource_version.ts";
import { Buoy } from "./buoy.ts";

/** Last state of an object that the witness saw. */
interface Told {
  readonly version: string;
  readonly generation: number;
}

/**
 * Informer that checks its events: no change comes twice or out of order, and none
 * is missing except those that a relist may merge.
 */
export class Witness {
  /** Events so far. */
  events = 0;
  readonly #informer: Informer<Buoy>;
  readonly #told = new Map<string, Told>();
  readonly #faults: string[] = [];

  /** @param client Client of the informer. */
  constructor(client: Client) {
    this.#informer = new Informer(client, Buoy);
    this.#informer.addHandler((event) => this.#hear(event));
  }

  /** Starts to watch. */
  async start(): Promise<void> {
    await this.#informer.start().synced;
  }

  /** Stops to watch. */
  stop(): Promise<void> {
    return this.#informer.stop();
  }

  /** What was heard until now, for the report. */
  get summary(): string {
    const { watches } = this.#informer.health();
    const [relists, errors] = [
      watches.reduce((sum, { relists }) => sum + relists, 0),
      watches.reduce((sum, { errors }) => sum + errors, 0),
    ];
    return `${this.events} events, ${this.#faults.length} of them wrong, ` +
      `${relists} relists, ${errors} reconnects after a failure`;
  }

  /**
   * First object that it knows in another state than a list has it; `undefined`
   * once it knows all of them, and no other.
   */
  async unknown(truth: Client): Promise<string | undefined> {
    const { items } = await truth.list(Buoy);
    const behind = items.find(({ metadata: { uid = "", resourceVersion } }) =>
      this.#told.get(uid)?.version !== resourceVersion
    );
    if (behind) return `the witness lacks ${JSON.stringify(behind)}`;
    const ghosts = this.#told.size - items.length;
    return ghosts > 0 ? `the witness knows ${ghosts} more` : undefined;
  }

  /** Fails if an event was wrong. */
  check(): void {
    assert.deepEqual(this.#faults, [], "each change is told once, in order");
  }

  #hear({ type, key, object, relist, initial }: CacheEvent<Buoy>): void {
    this.events++;
    const { uid = "", generation = 0 } = object.metadata;
    const version = object.metadata.resourceVersion ?? "";
    const last = this.#told.get(uid);
    // Also the first state may be read again, if its read breaks.
    const isMerged = relist || initial;
    const says = (fault: string) => {
      this.#faults.push(
        `${type} ${key} ${last?.version} → ${version} ${fault}`,
      );
      process.stderr.write(`Witness: ${this.#faults.at(-1)}\n`);
    };
    if ((type === "added") !== (last === undefined)) says("of another life");
    if (type === "deleted") {
      this.#told.delete(uid);
      return;
    }
    if (last !== undefined) {
      const order = compareResourceVersions(version, last.version);
      if (order === 0) says("told twice");
      if (order < 0) says("out of order");
      if (!isMerged && generation > last.generation + 1) says("after a gap");
    }
    this.#told.set(uid, { version, generation });
  }
}
