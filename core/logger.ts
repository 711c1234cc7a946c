import { writeSync } from "node:fs";
import { attempt, immediate } from "./callback.ts";
import { systemCause, textWithCause } from "./error_text.ts";
import { LineSampler } from "./log_sampling.ts";

/** Severity of a log line, from least to most severe. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** Structured fields of a log line: names and plain values. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * A structured logger with four levels.
 *
 * Any structured logger, such as pino or winston, can be adapted to it in a few
 * lines.
 */
export interface Logger {
  /** Logs details for debugging the operator. */
  debug(message: string, fields?: LogFields): void;
  /** Logs normal operation, for the person who runs the operator. */
  info(message: string, fields?: LogFields): void;
  /** Logs a failure that the library handles itself, for example by a retry. */
  warn(message: string, fields?: LogFields): void;
  /** Logs a failure that a person should look into. */
  error(message: string, fields?: LogFields): void;
  /** Returns a logger that adds these fields to every line. */
  with(fields: LogFields): Logger;
}

/**
 * Makes a logger that writes one JSON object per line, with `time`, `level`,
 * `message` and the fields.
 *
 * Errors among the fields are written as their message (at level `error`, their
 * stack) and that of the system error that caused them, never with their other
 * properties, which may contain the data of a request.
 *
 * @param options Level and destination of the lines.
 * @throws {TypeError} If an option is unknown or of another type.
 * @throws {RangeError} If the level does not exist.
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
export function jsonLogger(options: {
  /**
   * Least severe level that is written.
   *
   * @default {"info"}
   */
  readonly level?: LogLevel | undefined;
  /**
   * Function that writes a finished line, which has no line break at its end.
   *
   * By default it goes to standard error; one that cannot be written there is lost
   * and counted.
   */
  readonly write?: ((line: string) => void) | undefined;
  /**
   * Function that returns the time of a line in milliseconds since the Unix epoch.
   *
   * @default {Date.now}
   */
  readonly wallTime?: (() => number) | undefined;
} = {}): Logger {
  checkLoggerOptions(options);
  const {
    level = "info",
    write = writeToStandardError,
    wallTime = Date.now,
  } = options;
  const settings: LogSettings = { level, format: "json", sampling: Infinity };
  const sampler = new LineSampler<LogLevel>();
  const writeLine = (
    at: LogLevel,
    text: unknown,
    more: LogFields,
    ms: number,
  ) => {
    const time = new Date(ms).toISOString();
    const line: Record<string, unknown> = { time, level: at, message: text };
    for (const [name, value] of Object.entries(more)) {
      line[name] = printable(value, at);
    }
    const result: unknown = write(
      settings.format === "text" ? plainText(line) : jsonText(line),
    );
    // Its rejection would end the process.
    attempt(() => result, lineLost);
  };
  return leveledLogger(settings, (at, message, fields) => {
    const now = immediate(wallTime(), "wallTime()");
    const { sampling } = settings;
    if (sampling < Infinity) {
      for (const { level, message: of, count } of sampler.next(now, sampling)) {
        writeLine(level, "Log lines were left out", { of, count }, now);
      }
      if (!sampler.passes(at, message, sampling)) return;
    }
    writeLine(at, message, fields, now);
  });
}

/** Settings of a logger that may change while it is in use. */
export interface LogSettings {
  /** Least severe level that is written. */
  level: LogLevel;
  /** Form of a line. */
  format: "json" | "text";
  /** Maximum number of lines with the same level and message in a second. */
  sampling: number;
}

/** Property of loggers with their settings, which those with further fields share. */
const SETTINGS: unique symbol = Symbol("settings");

/** Logger of {@linkcode jsonLogger}, or made from one. */
type ConfigurableLogger = Logger & { readonly [SETTINGS]?: LogSettings };

/** Settings of a logger of {@linkcode jsonLogger}; undefined for others. */
export function logSettingsOf(
  logger: ConfigurableLogger,
): LogSettings | undefined {
  return logger[SETTINGS];
}

/** Descriptor of standard error. */
const STANDARD_ERROR = 2;
/** Longest time for which a line waits until a reader makes room for it. */
const WRITE_LIMIT_MS = 100;

/** Whether the last line was cut off, so that the next one begins a new line. */
let isCut = false;
/** Whether the last line was lost, so that the next one waits for nobody. */
let isStuck = false;

/**
 * Writes a line to standard error. A full disk or a reader that is gone must not
 * end the process, as it would by the stream and the console of the runtimes.
 */
function writeToStandardError(line: string): void {
  let rest = new TextEncoder().encode(`${isCut ? "\n" : ""}${line}\n`);
  const { length } = rest;
  const limit = performance.now() + WRITE_LIMIT_MS;
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(STANDARD_ERROR, rest));
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      if (code === "EAGAIN" && !isStuck && performance.now() < limit) {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
        continue;
      }
      isCut ||= rest.length < length;
      isStuck = true;
      return lineLost();
    }
  }
  isCut = isStuck = false;
}

const FUNCTIONS: readonly string[] = ["write", "wallTime"];

/** Checks the options of `jsonLogger`. */
function checkLoggerOptions(options: unknown): void {
  const refuse = (why: string) => {
    throw new TypeError(`Cannot read the options of jsonLogger(): ${why}`);
  };
  if (typeof options !== "object" || options === null) {
    return refuse(`they must be an object: received ${options}`);
  }
  for (const [name, value] of Object.entries(options)) {
    if (name === "level") continue;
    if (!FUNCTIONS.includes(name)) {
      refuse(
        `there is no option "${name}", only level, ${
          FUNCTIONS.join(", ")
        }: received ${name}`,
      );
    }
    if (value !== undefined && typeof value !== "function") {
      refuse(`"${name}" must be a function: received ${typeof value}`);
    }
  }
}

function printable(value: unknown, level: LogLevel): unknown {
  if (value instanceof Error) {
    return level === "error" ? stackText(value) : textWithCause(value);
  }
  if (typeof value === "bigint") return value.toString();
  return value;
}

/** Maximum number of errors within an error whose stack traces are shown. */
const MAX_INNER = 5;

/**
 * Stack trace of an error, or its text, and the system error that caused it. That
 * of an AggregateError, such as of a workflow, is followed by those of its errors.
 */
export function stackText(error: Error): string {
  const all = new Set([error]);
  for (const { errors } of all as Set<Error & { errors?: unknown }>) {
    for (const inner of Array.isArray(errors) ? errors : []) {
      if (inner instanceof Error && all.size <= MAX_INNER) all.add(inner);
    }
  }
  return Array.from(all, (one) => {
    const { stack = String(one), message } = one;
    const cause = systemCause(one, message).replace(/^:/, "\n  caused by");
    return stack + cause;
  }).join("\n  of ");
}

/** A line as JSON; a value that JSON cannot express is written as its type. */
function jsonText(line: Readonly<Record<string, unknown>>): string {
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

/** A line as text, on one line: time, level, message, and fields as `name=value`. */
function plainText(
  { time, level, message, ...fields }: Readonly<Record<string, unknown>>,
): string {
  const head = `${time} ${String(level).toUpperCase()} ${valueText(message)}`;
  const parts = Object.entries(fields).filter(([, value]) =>
    value !== undefined
  ).map(([name, value]) => {
    const text = valueText(value);
    const isPlain = typeof value !== "string" || /^[^\s"=]+$/.test(text);
    return `${valueText(name)}=${isPlain ? text : JSON.stringify(value)}`;
  });
  return [head, ...parts].join(" ");
}

/** A value as text without line breaks. */
function valueText(value: unknown): string {
  if (typeof value !== "string") return jsonText(Object(value));
  // A control character could forge a line.
  return /\p{Cc}/u.test(value) ? JSON.stringify(value) : value;
}

/** Levels of log lines, from least to most severe. */
export const LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/** Function that writes one log line; the fields include those of the logger. */
export type WriteLine = (
  level: LogLevel,
  message: string,
  fields: LogFields,
) => void;

/**
 * Makes a logger from a function that writes one line.
 *
 * @param least Least severe level that is written, or where it stands at the time.
 * @param write Writes each line of that level or above.
 * @throws {RangeError} If the level does not exist.
 */
export function leveledLogger(
  least: LogLevel | LogSettings,
  write: WriteLine,
): Logger {
  const isFixed = typeof least !== "object";
  const settings = isFixed ? { level: least } : least;
  const shared = isFixed ? undefined : { [SETTINGS]: least };
  if (!LEVELS.includes(settings.level)) {
    throw new RangeError(
      `Cannot make a logger: "level" must be one of ${
        LEVELS.join(", ")
      }: received ${JSON.stringify(settings.level)}`,
    );
  }
  const make = (context: LogFields): ConfigurableLogger => {
    const logAt =
      (level: LogLevel) => (message: string, fields?: LogFields) => {
        if (LEVELS.indexOf(level) < LEVELS.indexOf(settings.level)) return;
        write(level, message, { ...context, ...namedFields(fields) });
      };
    return {
      debug: logAt("debug"),
      info: logAt("info"),
      warn: logAt("warn"),
      error: logAt("error"),
      with: (fields) => make({ ...context, ...namedFields(fields) }),
      ...shared,
    };
  };
  return make({});
}

/**
 * Fields of a line. An error or a plain value in place of fields becomes a field
 * of its own.
 */
function namedFields(fields: unknown): LogFields {
  if (fields instanceof Error) return { error: fields };
  return typeof fields === "object" && fields !== null
    ? fields as LogFields
    : fields === undefined
    ? {}
    : { value: fields };
}

/** A logger that writes nothing. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  with: () => silentLogger,
};

/** Number of log lines of this process that could not be written. */
export function lostLogLines(): number {
  return lost;
}

let lost = 0;

function lineLost(): void {
  lost++;
}

/** Loggers that never throw, and need not be wrapped a second time. */
const unfailing: WeakSet<Logger> = new WeakSet([silentLogger]);

/**
 * Wraps a logger of the user so that it never throws, nor rejects a promise: a
 * line that cannot be written is lost and counted, and a watch or an election
 * continues without it.
 */
export function unfailingLogger(logger: Logger): Logger {
  if (unfailing.has(logger)) return logger;
  const settings = logSettingsOf(logger);
  const wrapped: ConfigurableLogger = {
    ...settings && { [SETTINGS]: settings },
    debug: (message, fields) =>
      attempt(() => logger.debug(message, fields), lineLost),
    info: (message, fields) =>
      attempt(() => logger.info(message, fields), lineLost),
    warn: (message, fields) =>
      attempt(() => logger.warn(message, fields), lineLost),
    error: (message, fields) =>
      attempt(() => logger.error(message, fields), lineLost),
    with(fields) {
      let narrower: Logger = wrapped;
      attempt(() => narrower = unfailingLogger(logger.with(fields)));
      return narrower;
    },
  };
  unfailing.add(wrapped);
  return wrapped;
}
