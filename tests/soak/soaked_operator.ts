import assert from "node:assert/strict";
import type { Client, Clock, MetricsRegistry } from "@coracle/operator/core";
import { sleep } from "../../core/clock.ts";
import { patchStatus } from "../../core/controller/result.ts";
import { silentLogger } from "../../core/logger.ts";
import { Operator } from "../../core/operator/operator.ts";
import { Buoy } from "./buoy.ts";
import type { Random } from "./random.ts";

/** Dependencies of a {@linkcode SoakedOperator}. */
export interface SoakedOperatorDeps {
  /** Client of the operator; it counts its requests in `metrics`. */
  readonly client: Client;
  readonly metrics: MetricsRegistry;
  readonly clock: Clock;
  readonly random: Random;
}

/** Counters of a reconciler. */
interface Tally {
  calls: number;
  returns: number;
  throws: number;
}

/**
 * Operator that fails at random, with counters that its reconcilers keep.
 *
 * One controller writes the status and cleans up. The other only watches, in
 * all-events mode, so that each of its runs calls its reconciler exactly once.
 */
export class SoakedOperator {
  readonly operator: Operator;
  readonly #deps: SoakedOperatorDeps;
  readonly #watcher: Tally = { calls: 0, returns: 0, throws: 0 };
  readonly #writer: Tally = { calls: 0, returns: 0, throws: 0 };
  /** Last generation that the writer was given, by uid. */
  readonly #worked: Map<string, number> = new Map();
  #cleaned = 0;
  readonly #running: Set<string> = new Set();
  /** Runs that began while the same object had another one. */
  readonly #overlaps: string[] = [];

  /** @param deps Dependencies of the operator. */
  constructor(deps: SoakedOperatorDeps) {
    const { client, clock, metrics, random } = deps;
    this.#deps = deps;
    this.operator = new Operator({
      client,
      clock,
      metrics,
      random: random.next,
      logger: silentLogger,
    });
    const retry = {
      initial: "500ms",
      maxAttempts: Infinity,
      max: "5s",
    } as const;
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

  /** Numbers of runs and of cleaned-up objects, for the report. */
  get summary(): string {
    const { calls, throws } = this.#writer;
    return `${calls} runs that write, ${throws} of which failed by themselves; ` +
      `${this.#watcher.calls} that watch; ${this.#cleaned} cleaned up`;
  }

  /**
   * First thing that is left to do; `undefined` once the operator is idle and
   * knows the same objects as the server, and every buoy has the status that its
   * spec asks for.
   */
  async undone(truth: Client): Promise<string | undefined> {
    const { controllers } = this.operator.health();
    for (const { name, running, waiting } of controllers) {
      if (running + waiting > 0) {
        return `${name}: ${running} running, ${waiting} waiting`;
      }
    }
    const { items } = await truth.list(Buoy);
    // The server removes an object with its finalizer; the deletion event may
    // still be on its way when the list is answered.
    const read = metricReader(this.operator.metrics());
    for (const { name } of controllers) {
      const known = read("coracle_primaries", { controller: name });
      if (known !== items.length) {
        return `${name} knows ${known} of ${items.length} objects`;
      }
    }
    const left = items.find(({ metadata, spec, status }) =>
      metadata.deletionTimestamp !== undefined ||
      status?.value !== spec.value ||
      this.#worked.get(metadata.uid ?? "") !== metadata.generation
    );
    return left && JSON.stringify(left);
  }

  /** Compares the metrics of the operator with the counters. */
  async check(truth: Client): Promise<void> {
    assert.deepEqual(this.#overlaps, [], "one run at a time");
    const { items } = await truth.list(Buoy);
    const uids = items.map(({ metadata }) => metadata.uid ?? "");
    assert.deepEqual(
      [...this.#worked.keys()].sort(),
      uids.sort(),
      "every removed object was cleaned up",
    );
    const read = metricReader(this.operator.metrics());
    const ended = (controller: string, result: string) =>
      read("coracle_reconciliations_total", { controller, result });
    const { calls, returns, throws } = this.#watcher;
    assert.equal(returns + throws, calls);
    // A run that is aborted is neither a success nor a failure, however it ends.
    const [success, failure, aborted] = ["success", "failure", "aborted"]
      .map((result) => ended("watcher", result)) as [number, number, number];
    assert.equal(success + failure + aborted, calls);
    assert.ok(success <= returns && failure <= throws);
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
    const { clock, random } = this.#deps;
    const tally = controller === "writer" ? this.#writer : this.#watcher;
    const run = `${controller} ${metadata.name}`;
    if (this.#running.has(run)) this.#overlaps.push(run);
    this.#running.add(run);
    tally.calls++;
    try {
      if (random.next() < 0.2) await sleep(random.below(300), { clock });
      if (random.next() < 0.05) throw new Error("Random failure");
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

/** Reads a metric: the sum over all series that have the given labels. */
export function metricReader(
  text: string,
): (name: string, labels?: Readonly<Record<string, string>>) => number {
  const lines = Map.groupBy(
    text.split("\n"),
    (line) => /^[^{ ]*/.exec(line)?.[0],
  );
  return (name, labels = {}) => {
    const wanted = Object.entries(labels).map(([key, value]) =>
      `${key}="${value}"`
    );
    return (lines.get(name) ?? [])
      .filter((line) => wanted.every((label) => line.includes(label)))
      .reduce(
        (sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))),
        0,
      );
  };
}
