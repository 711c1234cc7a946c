import process from "node:process";
import { type Measure, verify } from "./bench.ts";

/** Durations of the warm-up and of each sample, in milliseconds. */
const WARM_UP_MS = 400;
const SAMPLE_MS = 60;
const SAMPLES = 15;

/**
 * Collects garbage several times, since one pass does not free everything. V8
 * also drops compiled code that did not run between passes: code to be timed
 * must warm up afterwards, or run before this.
 */
export function collectGarbage(): void {
  const collect = (globalThis as { gc?: () => void }).gc ??
    (globalThis as { Bun?: { gc(force: boolean): void } }).Bun?.gc.bind(
      undefined,
      true,
    );
  if (collect === undefined) {
    throw new Error("Cannot measure memory: the runtime must expose its gc");
  }
  for (let i = 0; i < 6; i++) collect();
}

/** Median of numbers. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1
    ? upper
    : ((sorted[middle - 1] ?? NaN) + upper) / 2;
}

/** Processor time of all threads of the process, in microseconds. */
export function cpuTime(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/**
 * Measures the processor time of a function that does some operations per call:
 * waiting for a busy machine does not count, garbage collection does.
 *
 * @param work Function to measure; returns a value, so that nothing is
 * optimized away.
 * @param operations Number of operations per call.
 * @returns Microseconds per operation: the median of fifteen samples.
 */
export function timeOf(work: () => unknown, operations: number): number {
  let sink: unknown;
  const start = cpuTime();
  let calls = 0;
  while (cpuTime() - start < 1000 * WARM_UP_MS) {
    sink = work();
    calls++;
  }
  const perSample = Math.max(1, Math.round(calls * SAMPLE_MS / WARM_UP_MS));
  const samples: number[] = [];
  for (let sample = 0; sample < SAMPLES; sample++) {
    const from = cpuTime();
    for (let call = 0; call < perSample; call++) sink = work();
    samples.push((cpuTime() - from) / (perSample * operations));
  }
  if (sink === undefined) throw new Error("Cannot time work without a result");
  return median(samples);
}

/**
 * Bytes of garbage per operation of a function; the lowest of several tries,
 * since a collection may occur in between.
 */
export function garbageOf(work: () => unknown, operations: number): number {
  let least = Infinity;
  for (let i = 0; i < 10; i++) {
    collectGarbage();
    const before = process.memoryUsage().heapUsed;
    work();
    const left = process.memoryUsage().heapUsed - before;
    if (left >= 0) least = Math.min(least, left / operations);
  }
  return least;
}

/** Memory of the process after garbage collection, in bytes. */
export function memoryNow(): { heap: number; external: number; rss: number } {
  collectGarbage();
  const { heapUsed, arrayBuffers, rss } = process.memoryUsage();
  return { heap: heapUsed, external: arrayBuffers, rss };
}

/** Most that the peak of a start may be of the memory afterwards. */
const MOST_AT_START = 1.2;

/**
 * Peak RSS of a process so far, and its share of the RSS after the start.
 *
 * @param rss RSS after the start, in bytes.
 */
export function peakOfStart(rss: number): readonly Measure[] {
  const peak = peakRss();
  const share = peak.value * 2 ** 20 / rss;
  verify(
    share <= MOST_AT_START,
    `the peak of a start must be at most ${MOST_AT_START} of what follows: ${share}`,
  );
  return [peak, { unit: "× RSS at the peak", value: share }];
}

/** Peak RSS of the process. */
export function peakRss(): Measure {
  const { maxRSS } = process.resourceUsage();
  return { unit: "MiB peak RSS", value: maxRSS / 1024 };
}
