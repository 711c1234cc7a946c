import { type Bench, type Measure, verify } from "./support/bench.ts";
import { cpuTime, memoryNow, peakRss } from "./support/sampling.ts";
import { Widget, widgetOperator } from "./support/widgets.ts";

/** Memory of the process, apart from code. */
function held(): number {
  const { heap, external } = memoryNow();
  return heap + external;
}

/**
 * Runs all objects of a list once, by a controller without an interval that
 * fills the caches, and then by one with all default options: what that one
 * holds is the price of its idle primaries beside their bytes in the store.
 */
async function coracle(count: number): Promise<readonly Measure[]> {
  const operator = widgetOperator(count);
  /** Registers a controller, and waits until it has run all objects. */
  const runAll = async (name: string, maxInterval: false | undefined) => {
    let runs = 0;
    const all = Promise.withResolvers<void>();
    const reconcile = () => {
      if (++runs === count) all.resolve();
    };
    const controller = operator.register(Widget, { reconcile }, {
      name,
      ...(maxInterval === false && { maxInterval }),
    });
    await operator.start();
    await all.promise;
    await new Promise(setImmediate);
    verify(runs === count, "each object must run once");
    const { waiting, delayed } = controller.health();
    verify(waiting === 0, "no object must wait");
    verify(delayed === (maxInterval === false ? 0 : count), "all are idle");
  };
  await runAll("warm-up", false);
  const before = held();
  const cpu = cpuTime();
  await runAll("measured", undefined);
  const time = cpuTime() - cpu;
  const after = held();
  await operator.stop();
  return [
    { unit: "B/idle primary", value: (after - before) / count },
    { unit: "µs CPU/first run", value: time / count },
    peakRss(),
  ];
}

export const bench: Bench = {
  name: "idle",
  what: "memory of a primary that has run and waits for its interval",
  rounds: 2,
  subjects: [100_000, 1_000_000].map((count) => ({
    name: `coracle, ${count / 1_000}k`,
    run: () => coracle(count),
  })),
};
