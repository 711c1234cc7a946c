import { jsonLogger, type Logger } from "../core/logger.ts";

/** Options of {@linkcode LogTail}. */
export interface LogTailOptions {
  /**
   * How many lines are kept.
   *
   * @default {200}
   */
  readonly lines?: number | undefined;
  /**
   * Gives the time of a line in milliseconds since the Unix epoch.
   *
   * @default {Date.now}
   */
  readonly wallTime?: (() => number) | undefined;
}

/** Keeps the last lines of a log until somebody wants to see them. */
export class LogTail {
  readonly #most: number;
  readonly #lines: string[] = [];
  #dropped = 0;
  /** Writes into it, at every level. */
  readonly logger: Logger;

  /** @param options How much is kept. */
  constructor(options: LogTailOptions = {}) {
    const { lines = 200, wallTime } = options;
    this.#most = lines;
    this.logger = jsonLogger({
      level: "debug",
      wallTime,
      write: (line) => this.#add(line),
    });
  }

  #add(line: string): void {
    this.#lines.push(line);
    if (this.#lines.length > this.#most) {
      this.#lines.shift();
      this.#dropped++;
    }
  }

  /** The lines that are kept, oldest first. */
  get lines(): readonly string[] {
    return this.#lines;
  }

  /** The lines as text, and how many came before them. */
  toString(): string {
    const before = this.#dropped === 0
      ? ""
      : `(${this.#dropped} earlier lines)\n`;
    return before + (this.#lines.join("\n") || "(nothing was logged)");
  }
}
