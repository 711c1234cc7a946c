/** Length of the time in which lines are counted, in milliseconds. */
const WINDOW_MS = 1_000;
/** Maximum number of messages that are counted; those beyond it are all written. */
const MAX_MESSAGES = 1_000;

/** Lines with the same level and message in a second. */
interface Lines<Level> {
  readonly level: Level;
  readonly message: string;
  count: number;
}

/** Lines that a sampler has left out in a second. */
export type LeftOut<Level> = Readonly<Lines<Level>>;

/**
 * Sampler of log lines: of those with the same level and message, it lets a limited
 * number pass in each second.
 */
export class LineSampler<Level extends string> {
  readonly #lines: Map<string, Lines<Level>> = new Map();
  #from = -Infinity;

  /**
   * Counts a line, and decides about it.
   *
   * @param limit Maximum number of lines in a second.
   */
  passes(level: Level, message: string, limit: number): boolean {
    const key = `${level} ${message}`;
    const lines = this.#lines.get(key);
    if (lines !== undefined) return ++lines.count <= limit;
    if (this.#lines.size < MAX_MESSAGES) {
      this.#lines.set(key, { level, message, count: 1 });
    }
    return true;
  }

  /**
   * Ends the second, if it is over; called before each line.
   *
   * @param time Time of the line, in milliseconds since the Unix epoch.
   * @param limit Maximum number of lines in a second.
   * @returns What was left out in it.
   */
  next(time: number, limit: number): readonly LeftOut<Level>[] {
    const isOver = time < this.#from || time >= this.#from + WINDOW_MS;
    if (!isOver) return [];
    const leftOut = [...this.#lines.values()]
      .filter(({ count }) => count > limit)
      .map((lines) => ({ ...lines, count: lines.count - limit }));
    this.#lines.clear();
    this.#from = time;
    return leftOut;
  }
}
