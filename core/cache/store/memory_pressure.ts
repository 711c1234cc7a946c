import { checkOptions, type OptionRules } from "../../api/options.ts";
import type { Clock } from "../../clock.ts";
import type { Logger } from "../../logger.ts";
import { parseByteSize } from "../../api/byte_size.ts";

/** What a {@linkcode MemoryPressure} works with. */
export interface MemoryPressureOptions {
  /** What the process may use, in bytes or as text such as `512MiB`. */
  readonly limit: number | string;
  /**
   * Reads what it uses, in bytes: its resident set. It is called once a second
   * at most, and only while something is read.
   */
  readonly used: () => number;
  /** Where time comes from. */
  readonly clock: Clock;
  /** Told once. */
  readonly log: Logger;
}

const RULES: OptionRules<MemoryPressureOptions> = {
  limit: "any",
  used: "function",
  clock: "clock",
  log: "logger",
};

/** From which share of the limit on what arrives is read slowly. */
const SHORT = 0.8;
/** From which share on caches give up some of what they hold. */
const NEARLY_GONE = 0.9;
/** Below which share memory is short no more: it must not flap at one mark. */
const ENOUGH = 0.75;
/** What caches keep of what they hold when memory is short, and grows shorter. */
const KEPT = 7 / 8;
/** By which share of the limit the use must rise to count as growth. */
const GROWTH = 0.01;
/** The least time between two looks, in milliseconds. */
const LOOK_INTERVAL = 1_000;
/** How long after growth who reads is to read slowly, in milliseconds. */
const SLOW_TIME = 10_000;

/**
 * How near a process is to the limit of its memory, beyond which it would be
 * killed.
 *
 * What a cache lets go of is mostly kept by the allocator for what comes next:
 * with glibc the resident set stays where it was. So that it is high is no
 * reason to let go of more and more, only that it still grows: each time it does,
 * what arrives is read slowly for a while, and above nine tenths caches give up
 * an eighth. Below three quarters all is as before.
 */
export class MemoryPressure {
  /** What the process may use, in bytes. */
  readonly limit: number;
  readonly #options: MemoryPressureOptions;
  #used = 0;
  #lookedAt = -Infinity;
  #high = false;
  #told = false;
  /** The most that was used since memory became short. */
  #peak = 0;
  #grewAt = -Infinity;
  #cap = Infinity;

  /**
   * Makes one that has not looked yet.
   *
   * @param options The limit, and how the use is read.
   * @throws {TypeError | SyntaxError | RangeError} If the limit is no size.
   */
  constructor(options: MemoryPressureOptions) {
    checkOptions(options, RULES, "a MemoryPressure");
    this.#options = options;
    this.limit = parseByteSize(options.limit);
  }

  /** What the process used when it was looked at last, in bytes. */
  get used(): number {
    return this.#used;
  }

  /** Whether memory is short. */
  get isHigh(): boolean {
    return this.#high;
  }

  /** Whether memory is short and has become shorter a moment ago. */
  get isGrowing(): boolean {
    return this.#high &&
      this.#options.clock.now() - this.#grewAt < SLOW_TIME;
  }

  /** What caches may hold for now, in bytes; infinite while there is enough. */
  get cap(): number {
    return this.#cap;
  }

  /**
   * Looks at the process, unless it did so a moment ago.
   *
   * @param held What the caches hold, in bytes.
   */
  look(held: number): void {
    const now = this.#options.clock.now();
    if (now - this.#lookedAt < LOOK_INTERVAL) return;
    this.#lookedAt = now;
    const used = this.#used = this.#options.used();
    if (used < this.limit * ENOUGH) {
      this.#high = false;
      this.#cap = Infinity;
    } else if (used >= this.limit * SHORT) {
      const last = this.#high ? this.#peak : -Infinity;
      if (used - last < this.limit * GROWTH) return;
      this.#high = true;
      this.#peak = used;
      this.#grewAt = now;
      if (used < this.limit * NEARLY_GONE) return;
      this.#cap = Math.min(this.#cap, held) * KEPT;
      this.#tell(used, held);
    }
  }

  #tell(used: number, held: number): void {
    if (this.#told) return;
    this.#told = true;
    this.#options.log.warn(
      "The process uses nearly all of its memory: caches shrink, and what arrives is read slowly",
      { used, limit: this.limit, caches: held },
    );
  }
}
