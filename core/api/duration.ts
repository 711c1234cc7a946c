/**
 * A duration: a number of milliseconds, or a text of numbers and units such as
 * `"250ms"`, `"10s"`, `"5m"`, `"1.5h"`, `"1h30m"` or `"7d"`. A day has 24 hours.
 * A text from a field of an
 * object is converted by {@linkcode milliseconds}.
 */
export type Duration =
  | number
  | `${number}${"ms" | "s" | "m" | "h" | "d"}`
  | `${number}m${number}${"ms" | "s"}`
  | `${number}s${number}ms`
  | `${number}h${number}${"m" | "s"}`
  | `${number}h${number}m${number}s`
  | `${number}d${number}${"h" | "m"}`
  | `${number}d${number}h${number}m`;

const MILLISECONDS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

const TEXT = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/;
const PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/g;

export function isDuration(value: unknown): boolean {
  if (typeof value === "number") return value >= 0 && value < Infinity;
  // The length limit bounds the cost of a malicious configuration.
  return typeof value === "string" && value.length <= 64 && TEXT.test(value);
}

/**
 * Converts a duration into milliseconds.
 *
 * @param duration The duration; any text, such as one of a field of an object.
 * @param name Name of the duration, for errors.
 * @throws {RangeError} If a number is negative, infinite or not a number.
 * @throws {SyntaxError} If a text is not made of numbers and units.
 *
 * @example Convert durations
 * ```ts
 * import { milliseconds } from "@coracle/operator/core";
 *
 * if (milliseconds("1m30s") !== 90_000) throw new Error("Unexpected duration");
 * if (milliseconds(250) !== 250) throw new Error("Unexpected duration");
 * ```
 */
export function milliseconds(
  duration: number | string,
  name = "duration",
): number {
  if (typeof duration === "number") {
    if (isDuration(duration)) return duration;
    throw new RangeError(
      `Cannot read "${name}": a duration must be zero or more milliseconds: received ${duration}`,
    );
  }
  const text = String(duration);
  if (!isDuration(text)) {
    throw new SyntaxError(
      `Cannot read "${name}": a duration is milliseconds as a number, or text like "250ms", "10s", "5m", "1h30m", "7d": received ${
        JSON.stringify(text.slice(0, 64))
      }`,
    );
  }
  let total = 0;
  for (const [, amount, unit] of text.matchAll(PART)) {
    total += Number(amount) * (MILLISECONDS[unit as string] as number);
  }
  return total;
}

/**
 * Formats a duration for people: `250ms`, `1.5s`, `2m`, `1h30m`, `1d12h`. From a day
 * on it is rounded to hours.
 *
 * @param duration The duration in milliseconds.
 *
 * @example For a log line
 * ```ts
 * import { durationText } from "@coracle/operator/core";
 *
 * if (durationText(90 * 60_000) !== "1h30m") throw new Error("Unexpected text");
 * ```
 */
export function durationText(duration: number): string {
  if (Math.round(duration) < 1_000) return `${Math.round(duration)}ms`;
  const seconds = Number((duration / 1_000).toFixed(1));
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.round(duration / 60_000);
  if (minutes < 24 * 60) return pairText(minutes, 60, "hm");
  return pairText(Math.round(minutes / 60), 24, "dh");
}

/** A count of small units with those that are full ones, such as `1h30m`. */
function pairText(count: number, full: number, units: "hm" | "dh"): string {
  const rest = count % full;
  const large = (count - rest) / full;
  return `${large === 0 ? "" : `${large}${units[0]}`}${
    rest === 0 ? "" : `${rest}${units[1]}`
  }`;
}
