/** Number of consecutive writes of one field that count as a loop. */
const LOOP_WRITES = 5;
/** Maximum number of runs that are skipped between two writes. */
const MAX_SKIPPED_RUNS = 64;
/** Maximum time after a write for skipping runs, in milliseconds. */
const LONGEST_WAIT_MS = 300_000;

/** Error for a field that another writer reverts after each update. */
export class UpdateLoopError extends Error {
  /** Path of the field, such as `.spec.replicas`. */
  readonly field: string;

  /**
   * Creates the error.
   *
   * @param what The object, for the message.
   * @param field The path of the field.
   * @param writes The number of writes.
   */
  constructor(what: string, field: string, writes: number) {
    super(
      `Cannot keep ${what} as desired: it changes after each write, so another writer changes it too, or the server stores another value: received ${
        field || "another state"
      } after ${writes} writes`,
    );
    this.name = "UpdateLoopError";
    this.field = field;
  }
}

interface Series {
  field: string;
  writes: number;
  /** Number of runs to skip before the next write. */
  wait: number;
  /** Time of the last write, in milliseconds. */
  at: number;
}

/**
 * Detector of fields that are written repeatedly. After five consecutive writes
 * only every second run writes, then every fourth, and so on, but one every
 * five minutes at least. The skipped runs fail, so that their retry backs off
 * and the error names the field.
 */
export class UpdateLoops {
  readonly #series: Map<string, Series> = new Map();

  /**
   * Records a write.
   *
   * @param now Time by the clock of the controller, in milliseconds.
   * @throws {UpdateLoopError} If the write should wait.
   */
  beforeWrite(
    key: string,
    { what, field, now }: {
      readonly what: string;
      readonly field: string;
      readonly now: number;
    },
  ): void {
    const series = this.#series.get(key);
    if (series?.field !== field) {
      this.#series.set(key, { field, writes: 1, wait: 0, at: now });
      return;
    }
    if (series.wait > 0 && now - series.at < LONGEST_WAIT_MS) {
      series.wait--;
      throw new UpdateLoopError(what, field, series.writes);
    }
    series.writes++;
    series.at = now;
    if (series.writes > LOOP_WRITES) {
      series.wait = Math.min(
        2 ** (series.writes - LOOP_WRITES) - 1,
        MAX_SKIPPED_RUNS,
      );
    }
  }

  /** Forgets the last write, which failed: it has changed nothing. */
  failed(key: string): void {
    const series = this.#series.get(key);
    if (series === undefined) return;
    series.writes--;
    series.wait = 0;
    if (series.writes === 0) this.#series.delete(key);
  }

  /** Ends the series of writes of an object; of all objects without a key. */
  settled(key: string | undefined): void {
    if (key === undefined) this.#series.clear();
    else this.#series.delete(key);
  }

  get size(): number {
    return this.#series.size;
  }
}
