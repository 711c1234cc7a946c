import type { LogFields, Logger, LogLevel } from "./logger.ts";

const LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/** Takes one line: its message, and the fields of its logger and its own. */
export type TellLine = (
  level: LogLevel,
  message: string,
  fields: LogFields,
) => void;

/**
 * A logger that hands each line of a level that matters to one function.
 *
 * @param least The least level that is told.
 * @param tell Takes the lines.
 * @throws {RangeError} If there is no such level.
 */
export function leveledLogger(least: LogLevel, tell: TellLine): Logger {
  const from = LEVELS.indexOf(least);
  if (from < 0) {
    throw new RangeError(
      `Cannot make a logger: "level" must be one of ${
        LEVELS.join(", ")
      }: received ${JSON.stringify(least)}`,
    );
  }
  const make = (context: LogFields): Logger => {
    const logAt =
      (level: LogLevel) => (message: string, fields?: LogFields) => {
        if (LEVELS.indexOf(level) < from) return;
        tell(level, message, { ...context, ...fields });
      };
    return {
      debug: logAt("debug"),
      info: logAt("info"),
      warn: logAt("warn"),
      error: logAt("error"),
      with: (fields) => make({ ...context, ...fields }),
    };
  };
  return make({});
}
