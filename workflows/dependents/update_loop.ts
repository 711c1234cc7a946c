/** How many writes for one field in a row are taken for a loop. */
const LOOP = 5;
/** The longest series of runs that goes by without a write. */
const LONGEST_WAIT = 64;

/** A field changes back after each of our writes. */
export class UpdateLoopError extends Error {
  /** The field, such as `.spec.replicas`. */
  readonly field: string;

  /**
   * Says which field does not stay as it was written.
   *
   * @param what The object, for people.
   * @param field The field.
   * @param writes How often it was written.
   */
  constructor(what: string, field: string, writes: number) {
    super(
      `Cannot keep ${what} as desired: it changes back after each write, so somebody else writes it too, or the server stores another value: received ${
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
  /** How many runs still go by before the next write. */
  wait: number;
}

/**
 * Notices that the same field is written again and again, and slows down: after
 * five writes in a row, only every second run writes, then every fourth, and so
 * on; the others fail, so that their retry backs off and the field is named.
 */
export class UpdateLoops {
  readonly #series: Map<string, Series> = new Map();

  /**
   * Told before a write.
   *
   * @param key Names the object.
   * @param what The object, for people, and the field that is to be written.
   * @throws {UpdateLoopError} If the write should wait.
   */
  beforeWrite(
    key: string,
    { what, field }: { readonly what: string; readonly field: string },
  ): void {
    const series = this.#series.get(key);
    if (series?.field !== field) {
      this.#series.set(key, { field, writes: 1, wait: 0 });
      return;
    }
    if (series.wait > 0) {
      series.wait--;
      throw new UpdateLoopError(what, field, series.writes);
    }
    series.writes++;
    if (series.writes > LOOP) {
      series.wait = Math.min(2 ** (series.writes - LOOP) - 1, LONGEST_WAIT);
    }
  }

  /** Told when an object is as desired, or gone. */
  settled(key: string): void {
    if (this.#series.size > 0) this.#series.delete(key);
  }

  /** Of how many objects there is a series of writes. */
  get size(): number {
    return this.#series.size;
  }

  /** Forgets everything. */
  clear(): void {
    this.#series.clear();
  }
}
