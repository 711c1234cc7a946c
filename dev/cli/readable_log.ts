import type { LogFields, Logger, LogLevel } from "@coracle/operator/client";
import {
  leveledLogger,
  stackText,
  textWithCause,
} from "@coracle/operator/internal";
import { printable, printableLine } from "./printable.ts";

export interface ReadableLoggerOptions {
  /** Callback for each line, including its line break. */
  readonly write: (text: string) => void;
  /** Whether lines may be coloured. */
  readonly colors: boolean;
  /** Lowest level that is written; `info` by default. */
  readonly level?: LogLevel | undefined;
  /** Time of a line, in milliseconds since the Unix epoch; now by default. */
  readonly wallTime?: (() => number) | undefined;
}

const DIM = "\x1b[2m";
const BOLD = "\x1b[1m";
const RESET = "\x1b[0m";
const COLOURS: Readonly<Record<LogLevel, string>> = {
  debug: DIM,
  info: "",
  warn: "\x1b[33m",
  error: "\x1b[31m",
};

/** Fields that are printed in a fixed place, or left out. */
const KNOWN: ReadonlySet<string> = new Set([
  "controller",
  "object",
  "namespace",
  "name",
  "kind",
  "uid",
  "resourceVersion",
  "generation",
  "cause",
  "because",
  "duration",
]);

/**
 * Logger for a person at a terminal: one line per message with the time, the
 * object, the message and its fields; stack traces on separate lines. Control
 * characters are escaped.
 *
 * ```text
 * 10:31:07.250  webpage default/hello  Reconciled (modified, 12 ms)
 * ```
 */
export function readableLogger(options: ReadableLoggerOptions): Logger {
  const { write, colors, level = "info", wallTime = Date.now } = options;
  const paint = (colour: string, text: string) =>
    colors && colour !== "" && text !== "" ? `${colour}${text}${RESET}` : text;
  return leveledLogger(level, (at, message, fields) => {
    const time = new Date(wallTime()).toISOString().slice(11, 23);
    const { subject, details, stack } = describe(fields, at);
    const text = printableLine(String(message));
    const parts = [
      paint(DIM, time),
      paint(BOLD, printableLine(subject)),
      paint(COLOURS[at], at === "info" ? text : `${at}: ${text}`),
      paint(DIM, printableLine(details)),
    ];
    write(`${parts.filter((part) => part !== "").join("  ")}\n${stack}`);
  });
}

/** Splits fields into the parts of a line. */
function describe(
  fields: LogFields,
  level: LogLevel,
): { subject: string; details: string; stack: string } {
  const { controller, name, namespace, cause, because, duration } = fields;
  const object = fields["object"] ??
    (namespace === undefined ? name : `${namespace}/${name}`);
  const asides = [
    cause,
    because,
    duration === undefined ? undefined : `${duration} ms`,
  ].filter((text) => text !== undefined);
  const details = asides.length === 0 ? [] : [`(${asides.join(", ")})`];
  let stack = "";
  for (const [field, value] of Object.entries(fields)) {
    if (KNOWN.has(field) || value === undefined) continue;
    const isError = value instanceof Error && level === "error" && value.stack;
    if (isError || field === "stack") {
      const text = isError ? stackText(value) : String(value);
      stack += `${printable(text).replaceAll(/^/gm, "    ")}
`;
    } else details.push(`${field}=${valueText(value)}`);
  }
  const subject = [controller, object].filter((part) => part !== undefined);
  return { subject: subject.join(" "), details: details.join(" "), stack };
}

function valueText(value: unknown): string {
  if (typeof value === "string" || value instanceof Error) {
    const text = textWithCause(value);
    return /^[^\s"]+$/.test(text) ? text : JSON.stringify(text);
  }
  if (typeof value !== "object") return String(value);
  try {
    return JSON.stringify(value);
  } catch {
    // A value that contains itself, or a number that JSON does not have.
    return JSON.stringify(Object.prototype.toString.call(value));
  }
}
