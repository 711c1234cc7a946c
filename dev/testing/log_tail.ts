import { jsonLogger, type Logger } from "@coracle/operator/client";

/** Number of lines to keep. */
const MAX_LINES = 200;

/** Logger that keeps the last lines in memory. */
export class LogTail {
  readonly #lines: string[] = [];
  #dropped = 0;
  /** Logger whose lines are kept, at every level. */
  readonly logger: Logger;

  constructor(wallTime: () => number) {
    this.logger = jsonLogger({
      level: "debug",
      wallTime,
      write: (line) => {
        if (this.#lines.push(line) <= MAX_LINES) return;
        this.#lines.shift();
        this.#dropped++;
      },
    });
  }

  /** Returns the kept lines, with the number of dropped ones. */
  toString(): string {
    const before = this.#dropped === 0
      ? ""
      : `(${this.#dropped} earlier lines)\n`;
    return before + (this.#lines.join("\n") || "(nothing was logged)");
  }
}
