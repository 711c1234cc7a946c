import process from "node:process";
import type { Measure } from "./bench.ts";

/** How long a function runs before it is measured, and then each sample. */
const WARM_UP_MS = 400;
const SAMPLE_MS = 60;
const SAMPLES = 15;

/**
 * Frees what can be freed, several times, since one pass does not get all. V8
 * also forgets the compiled code of what did not run between passes: what is to
 * be timed must run a while afterwards, or not come after this.
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

/** The median of numbers. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1
    ? upper
    : ((sorted[middle - 1] ?? NaN) + upper) / 2;
}

/** Microseconds of processor time that the process has used, all threads. */
export function cpuTime(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/**
 * Times a function that does some operations at a call, by processor time:
 * waiting for a busy machine does not count, and collecting garbage does.
 *
 * @param work Does the operations; gives something, so that none is left out.
 * @param operations How many at a call.
 * @returns Microseconds an operation: the median of fifteen samples.
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
 * How many bytes of heap a function leaves behind for the collector, in bytes an
 * operation; the best of several tries, since a collection may come between.
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

/** What the process holds now, after a collection. */
export function memoryNow(): { heap: number; external: number; rss: number } {
  collectGarbage();
  const { heapUsed, arrayBuffers, rss } = process.memoryUsage();
  return { heap: heapUsed, external: arrayBuffers, rss };
}

/** The most that the process ever held. */
export function peakRss(): Measure {
  const { maxRSS } = process.resourceUsage();
  return { unit: "MiB peak RSS", value: maxRSS / 1024 };
}
