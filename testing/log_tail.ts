import { jsonLogger, type Logger } from "../core/logger.ts";

export interface LogTailOptions {
  /**
   * Number of lines to keep.
   *
   * @default {200}
   */
  readonly lines?: number | undefined;
  /**
   * Clock for the time of a line, in milliseconds since the Unix epoch.
   *
   * @default {Date.now}
   */
  readonly wallTime?: (() => number) | undefined;
}

/** Logger that keeps the last lines in memory. */
export class LogTail {
  readonly #maxLines: number;
  readonly #lines: string[] = [];
  #dropped = 0;
  /** Logger that writes into the tail, at every level. */
  readonly logger: Logger;

  constructor(options: LogTailOptions = {}) {
    const { lines = 200, wallTime } = options;
    this.#maxLines = lines;
    this.logger = jsonLogger({
      level: "debug",
      wallTime,
      write: (line) => this.#add(line),
    });
  }

  #add(line: string): void {
    this.#lines.push(line);
    if (this.#lines.length > this.#maxLines) {
      this.#lines.shift();
      this.#dropped++;
    }
  }

  /** Kept lines, oldest first. */
  get lines(): readonly string[] {
    return this.#lines;
  }

  /** Kept lines as text, with the number of dropped ones. */
  toString(): string {
    const before = this.#dropped === 0
      ? ""
      : `(${this.#dropped} earlier lines)\n`;
    return before + (this.#lines.join("\n") || "(nothing was logged)");
  }
}
