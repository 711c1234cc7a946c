import assert from "node:assert/strict";
import type { Client } from "../../core/client/client.ts";
import { type Clock, sleep } from "../../core/clock.ts";
import { patchStatus } from "../../core/controller/result.ts";
import { silentLogger } from "../../core/logger.ts";
import type { MetricsRegistry } from "../../core/operator/metrics_registry.ts";
import { Operator } from "../../core/operator/operator.ts";
import { Buoy } from "./buoy.ts";
import type { Random } from "./random.ts";

/** What a {@linkcode SoakedOperator} works with. */
export interface SoakedOperatorOptions {
  /** Counts its requests in `metrics`. */
  readonly client: Client;
  readonly metrics: MetricsRegistry;
  readonly clock: Clock;
  readonly random: Random;
}

/** What a reconciler itself counts. */
interface Tally {
  calls: number;
  returns: number;
  throws: number;
}

/**
 * An operator that fails at random, and a count of what it did that is kept by
 * its reconcilers.
 *
 * One controller writes the status and cleans up. The other only watches, in
 * all-events mode, so that each of its runs calls its reconciler exactly once.
 */
export class SoakedOperator {
  readonly operator: Operator;
  readonly #options: SoakedOperatorOptions;
  readonly #watcher: Tally = { calls: 0, returns: 0, throws: 0 };
  readonly #writer: Tally = { calls: 0, returns: 0, throws: 0 };
  /** The last generation that the writer was given, by uid. */
  readonly #worked: Map<string, number> = new Map();
  #cleaned = 0;
  readonly #running: Set<string> = new Set();
  readonly #fouls: string[] = [];

  /** @param options What it works with. */
  constructor(options: SoakedOperatorOptions) {
    const { client, clock, metrics, random } = options;
    this.#options = options;
    this.operator = new Operator({
      client,
      clock,
      metrics,
      random: random.next,
      logger: silentLogger,
    });
    const retry = { initial: "500ms", maxAttempts: Infinity, max: "5s" };
    this.operator.register(Buoy, {
      reconcile: (buoy) =>
        this.#run("writer", buoy, () => {
          const { uid = "", generation = 0 } = buoy.metadata;
          this.#worked.set(uid, generation);
          return patchStatus({ value: buoy.spec.value });
        }),
      cleanup: (buoy) =>
        this.#run("writer", buoy, () => {
          this.#worked.delete(buoy.metadata.uid ?? "");
          this.#cleaned++;
        }),
    }, { name: "writer", retry });
    this.operator.register(Buoy, {
      reconcile: (buoy) => this.#run("watcher", buoy, () => {}),
    }, { name: "watcher", allEvents: true, retry });
  }

  /** How many runs there were, and how many objects it has cleaned up. */
  get summary(): string {
    const { calls, throws } = this.#writer;
    return `${calls} runs that write, ${throws} of which failed by themselves; ` +
      `${this.#watcher.calls} that watch; ${this.#cleaned} cleaned up`;
  }

  /** How much of what it did is still remembered of objects that are gone. */
  get size(): number {
    return this.#worked.size;
  }

  /**
   * Whether it has come to rest, and every buoy has the status that it asks
   * for.
   */
  async isDone(truth: Client): Promise<boolean> {
    const { controllers } = this.operator.health();
    if (controllers.some(({ running, waiting }) => running + waiting > 0)) {
      return false;
    }
    const { items } = await truth.list(Buoy);
    return items.every(({ metadata, spec, status }) =>
      metadata.deletionTimestamp === undefined &&
      status?.value === spec.value &&
      this.#worked.get(metadata.uid ?? "") === metadata.generation
    );
  }

  /** Compares what it says of itself with what was counted. */
  async check(truth: Client): Promise<void> {
    assert.deepEqual(this.#fouls, [], "one run at a time");
    const { items } = await truth.list(Buoy);
    const uids = items.map(({ metadata }) => metadata.uid ?? "");
    assert.deepEqual(
      [...this.#worked.keys()].sort(),
      uids.sort(),
      "everything that is gone was cleaned up",
    );
    const read = metricReader(this.operator.metrics());
    const ended = (controller: string, result: string) =>
      read("coracle_reconciliations_total", { controller, result });
    const { calls, returns, throws } = this.#watcher;
    assert.equal(returns + throws, calls);
    assert.equal(ended("watcher", "success"), returns);
    assert.equal(
      ended("watcher", "failure") + ended("watcher", "aborted"),
      throws,
    );
    assert.ok(ended("writer", "success") >= this.#cleaned);
    assert.ok(
      ended("writer", "failure") + ended("writer", "aborted") >=
        this.#writer.throws,
    );
    for (const controller of ["writer", "watcher"]) {
      const gauge = (name: string) => read(name, { controller });
      assert.equal(gauge("coracle_primaries"), items.length);
      assert.equal(gauge("coracle_reconciliations_active"), 0);
      assert.equal(gauge("coracle_queue_depth"), 0);
      const runs = ["success", "failure", "aborted"]
        .reduce((sum, result) => sum + ended(controller, result), 0);
      assert.equal(
        read("coracle_reconciliation_causes_total", { controller }),
        runs,
        "each run that began has ended",
      );
      assert.equal(
        read("coracle_reconciliation_duration_seconds_count", { controller }),
        runs,
      );
    }
  }

  async #run<R>(
    controller: "writer" | "watcher",
    { metadata }: Buoy,
    work: () => R,
  ): Promise<R> {
    const { clock, random } = this.#options;
    const tally = controller === "writer" ? this.#writer : this.#watcher;
    const run = `${controller} ${metadata.name}`;
    if (this.#running.has(run)) this.#fouls.push(run);
    this.#running.add(run);
    tally.calls++;
    try {
      if (random.next() < 0.2) await sleep(random.below(300), { clock });
      if (random.next() < 0.05) throw new Error("As the dice fell");
      const result = work();
      tally.returns++;
      return result;
    } catch (error) {
      tally.throws++;
      throw error;
    } finally {
      this.#running.delete(run);
    }
  }
}

/** Adds up the values of a metric whose labels include the given ones. */
export function metricReader(
  text: string,
): (name: string, labels?: Readonly<Record<string, string>>) => number {
  const lines = text.split("\n");
  return (name, labels = {}) => {
    const wanted = Object.entries(labels).map(([key, value]) =>
      `${key}="${value}"`
    );
    return lines
      .filter((line) =>
        line.startsWith(`${name}{`) || line.startsWith(`${name} `)
      )
      .filter((line) => wanted.every((label) => line.includes(label)))
      .reduce(
        (sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))),
        0,
      );
  };
}
