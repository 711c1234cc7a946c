import { checkOptions, type OptionRules } from "../../api/options.ts";
import type { Clock } from "../../clock.ts";
import type { Logger } from "../../logger.ts";
import { parseByteSize } from "../../api/byte_size.ts";

/** Options of a {@linkcode MemoryPressure}. */
export interface MemoryPressureOptions {
  /** Memory limit of the process, in bytes or as text such as `512MiB`. */
  readonly limit: number | string;
  /**
   * Function that returns the memory that the process uses, in bytes: its resident
   * set. It is called at most once a second, and only while caches are filled.
   */
  readonly used: () => number;
  /** Clock for the time between measurements. */
  readonly clock: Clock;
  /** Logger of the warning that memory is short. */
  readonly log: Logger;
}

const RULES: OptionRules<MemoryPressureOptions> = {
  limit: "any",
  used: "function",
  clock: "clock",
  log: "logger",
};

/** Share of the memory limit above which caches are filled slowly. */
const HIGH_SHARE = 0.8;
/** Share of the memory limit above which caches shrink. */
const CRITICAL_SHARE = 0.9;
/** Share of the limit below which the pressure ends; low, to avoid flapping. */
const NORMAL_SHARE = 0.75;
/** Share of their memory that caches keep each time they shrink. */
const KEPT_SHARE = 7 / 8;
/** Share of the memory limit by which the usage must rise to count as growth. */
const GROWTH_SHARE = 0.01;
/** Minimum time between two measurements. */
const MEASURE_INTERVAL_MS = 1_000;
/** Duration of slow filling after a growth of the usage. */
const SLOW_MS = 10_000;

/**
 * Memory pressure of a process: how close its memory is to the limit beyond which
 * the process would be killed.
 *
 * The allocator mostly keeps memory that a cache frees: with glibc the resident
 * set does not shrink. High usage alone is therefore no reason to free memory
 * repeatedly; only growth is. Each time the usage grows, caches are filled slowly
 * for ten seconds, and above nine tenths of the limit they shrink by an eighth.
 * Below three quarters all restrictions end.
 */
export class MemoryPressure {
  /** Memory limit of the process, in bytes. */
  readonly limit: number;
  readonly #options: MemoryPressureOptions;
  #used = 0;
  #measuredAt = -Infinity;
  #high = false;
  #isReported = false;
  /** Highest usage since the pressure became high, in bytes. */
  #peak = 0;
  #grewAt = -Infinity;
  #cap = Infinity;

  /**
   * Creates a memory pressure without a measurement.
   *
   * @param options Limit and measured usage.
   * @throws {TypeError | SyntaxError | RangeError} If the limit is not a size.
   */
  constructor(options: MemoryPressureOptions) {
    checkOptions(options, RULES, "a MemoryPressure");
    this.#options = options;
    this.limit = parseByteSize(options.limit);
  }

  /** Memory usage at the last measurement, in bytes. */
  get used(): number {
    return this.#used;
  }

  /** Whether the pressure is high. */
  get isHigh(): boolean {
    return this.#high;
  }

  /** Whether the pressure is high and has grown in the last ten seconds. */
  get isGrowing(): boolean {
    return this.#high &&
      this.#options.clock.now() - this.#grewAt < SLOW_MS;
  }

  /** Current limit of all caches, in bytes; infinite without pressure. */
  get cap(): number {
    return this.#cap;
  }

  /**
   * Measures the memory usage, unless the last measurement is recent.
   *
   * @param held Memory that the caches use, in bytes.
   */
  measure(held: number): void {
    const now = this.#options.clock.now();
    if (now - this.#measuredAt < MEASURE_INTERVAL_MS) return;
    this.#measuredAt = now;
    const used = this.#used = this.#options.used();
    if (used < this.limit * NORMAL_SHARE) {
      this.#high = false;
      this.#cap = Infinity;
    } else if (used >= this.limit * HIGH_SHARE) {
      const last = this.#high ? this.#peak : -Infinity;
      if (used - last < this.limit * GROWTH_SHARE) return;
      this.#high = true;
      this.#peak = used;
      this.#grewAt = now;
      if (used < this.limit * CRITICAL_SHARE) return;
      this.#cap = Math.min(this.#cap, held) * KEPT_SHARE;
      this.#report(used, held);
    }
  }

  #report(used: number, held: number): void {
    if (this.#isReported) return;
    this.#isReported = true;
    this.#options.log.warn(
      "The process uses nearly all of its memory: caches shrink and are filled slowly",
      { used, limit: this.limit, caches: held },
    );
  }
}
