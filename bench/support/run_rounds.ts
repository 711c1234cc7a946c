import process from "node:process";
import type { Measure } from "./bench.ts";
import { collectGarbage, cpuTime, median } from "./sampling.ts";

const WARM_UP_ROUNDS = 60;
const SAMPLES = 15;
/** Rounds per sample, since processor time has a coarse resolution. */
const ROUNDS_PER_SAMPLE = 10;

/** Number of rounds of {@linkcode measureRounds}. */
export const MEASURED_ROUNDS: number = WARM_UP_ROUNDS +
  SAMPLES * (ROUNDS_PER_SAMPLE + 1);

/**
 * Measures time and garbage of rounds of runs.
 *
 * @param round Runs every object once.
 * @param objects Number of objects.
 */
export async function measureRounds(
  round: () => Promise<void>,
  objects: number,
): Promise<readonly Measure[]> {
  for (let i = 0; i < WARM_UP_ROUNDS; i++) await round();
  const times: number[] = [];
  for (let sample = 0; sample < SAMPLES; sample++) {
    const from = cpuTime();
    for (let i = 0; i < ROUNDS_PER_SAMPLE; i++) await round();
    times.push((cpuTime() - from) / (ROUNDS_PER_SAMPLE * objects));
  }
  let garbage = Infinity;
  for (let sample = 0; sample < SAMPLES; sample++) {
    collectGarbage();
    const heap = process.memoryUsage().heapUsed;
    await round();
    const left = process.memoryUsage().heapUsed - heap;
    if (left >= 0) garbage = Math.min(garbage, left / objects);
  }
  const time = median(times);
  return [
    { unit: "µs CPU/run", value: time },
    { unit: "runs/s of CPU", value: 1e6 / time },
    { unit: "B garbage/run", value: garbage },
  ];
}
