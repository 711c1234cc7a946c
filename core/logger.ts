import { leveledLogger } from "./leveled_logger.ts";

/** How much a log line matters, least first. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** What a log line carries beside its message: names and plain values. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Where the library writes what it does. Any structured logger can be adapted
 * to it in a few lines.
 */
export interface Logger {
  /** Details for somebody who debugs the operator. */
  debug(message: string, fields?: LogFields): void;
  /** What a person who runs the operator wants to see. */
  info(message: string, fields?: LogFields): void;
  /** Something failed and the library deals with it. */
  warn(message: string, fields?: LogFields): void;
  /** Something failed and a person should look at it. */
  error(message: string, fields?: LogFields): void;
  /** A logger that adds these fields to every line. */
  with(fields: LogFields): Logger;
}

/** Options of {@linkcode jsonLogger}. */
export interface JsonLoggerOptions {
  /**
   * The least level that is written.
   *
   * @default {"info"}
   */
  readonly level?: LogLevel | undefined;
  /**
   * Takes each finished line, without its line break.
   *
   * @default {console.error}
   */
  readonly write?: ((line: string) => void) | undefined;
  /**
   * Gives the time of a line in milliseconds since the Unix epoch.
   *
   * @default {Date.now}
   */
  readonly wallTime?: (() => number) | undefined;
}

/**
 * A logger that writes one JSON object a line with `time`, `level` and
 * `message`. Errors among the fields are written as their message (and their
 * stack at level `error`), never with their other properties, which may hold
 * what a request carried.
 *
 * @param options Which lines are written, and where.
 * @throws {RangeError} If there is no such level.
 *
 * @example Keep the lines
 * ```ts
 * import { jsonLogger } from "@coracle/operator/core";
 *
 * const lines: string[] = [];
 * const log = jsonLogger({ write: (line) => lines.push(line) });
 * log.with({ controller: "webpage" }).info("Reconciled");
 * if (!lines[0]?.includes("webpage")) throw new Error("Unexpected line");
 * ```
 */
export function jsonLogger(options: JsonLoggerOptions = {}): Logger {
  const {
    level = "info",
    // deno-lint-ignore no-console -- this is the one place that owns the console
    write = (line) => console.error(line),
    wallTime = Date.now,
  } = options;
  return leveledLogger(level, (at, message, fields) => {
    const line: Record<string, unknown> = {
      time: new Date(wallTime()).toISOString(),
      level: at,
      message,
    };
    for (const [name, value] of Object.entries(fields)) {
      line[name] = printable(value, at);
    }
    write(textOf(line));
  });
}

function printable(value: unknown, level: LogLevel): unknown {
  if (value instanceof Error) {
    return level === "error" ? (value.stack ?? String(value)) : String(value);
  }
  if (typeof value === "bigint") return value.toString();
  return value;
}

/** A line as JSON; of what JSON cannot say, such as a circle, the sort alone. */
function textOf(line: Readonly<Record<string, unknown>>): string {
  try {
    return JSON.stringify(line);
  } catch {
    const fields = Object.entries(line).map(([name, value]) => {
      try {
        JSON.stringify(value);
        return [name, value];
      } catch {
        return [name, Object.prototype.toString.call(value)];
      }
    });
    return JSON.stringify(Object.fromEntries(fields));
  }
}

/** A logger that writes nothing. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  with: () => silentLogger,
};
