import { CelFailure } from "./cel_errors.ts";
import { Timestamp } from "./values.ts";

const SECOND = 1_000_000_000n;

/** Nanoseconds of the units of durations in Go's syntax. */
const UNITS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  "µs": 1_000n,
  "μs": 1_000n,
  ms: 1_000_000n,
  s: SECOND,
  m: 60n * SECOND,
  h: 3_600n * SECOND,
};

const MAX_DURATION = 2n ** 63n - 1n;

/** Nanoseconds of a duration in Go's syntax; undefined if the text is invalid. */
export function parseGoDuration(text: string): bigint | undefined {
  const [, sign = "", rest = ""] = /^([+-]?)(.*)$/s.exec(text) ?? [];
  if (rest === "0") return 0n;
  if (!/^(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(rest)) {
    return undefined;
  }
  let total = 0n;
  for (
    const [, whole = "", fraction = "", unit = ""] of rest.matchAll(
      /(\d*)\.?(\d*)(ns|us|µs|μs|ms|s|m|h)/g,
    )
  ) {
    const size = UNITS[unit] ?? 0n;
    total += BigInt(whole || 0) * size;
    if (fraction !== "") {
      total += BigInt(fraction) * size / 10n ** BigInt(fraction.length);
    }
  }
  const limit = sign === "-" ? MAX_DURATION + 1n : MAX_DURATION;
  if (total > limit) return undefined;
  return sign === "-" ? -total : total;
}

/**
 * Seconds as Go prints a duration in CEL, such as `1.5s`: a double, which loses the
 * nanoseconds of long durations.
 */
export function durationText(nanos: bigint): string {
  const [whole, rest] = [nanos / SECOND, nanos % SECOND];
  // Below a second JavaScript may print an exponent.
  if (whole !== 0n) return `${Number(whole) + Number(rest) / 1e9}s`;
  const size = String(rest < 0n ? -rest : rest).padStart(9, "0");
  const fraction = size.replace(/0+$/, "");
  return `${rest < 0n ? "-" : ""}0${fraction === "" ? "" : `.${fraction}`}s`;
}

const DAYS_BEFORE = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

const TIME =
  /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:[.,](\d+))?(?:Z|([+-])(\d{2}):(\d{2}))$/;

/** Point in time of an RFC 3339 text; undefined if the text is invalid. */
export function parseTime(text: string): Timestamp | undefined {
  const parts = TIME.exec(text);
  if (parts === null) return undefined;
  const [year, month, day, hour, minute, second] = parts.slice(1, 7)
    .map(Number) as [number, number, number, number, number, number];
  const days = month === 2 && isLeap(year)
    ? 29
    : (DAYS_BEFORE[month] ?? 365) - (DAYS_BEFORE[month - 1] ?? 0);
  const offsetHours = Number(parts[9] ?? 0);
  const offsetMinutes = Number(parts[10] ?? 0);
  if (
    month < 1 || month > 12 || day < 1 || day > days || hour > 23 ||
    minute > 59 || second > 59 || offsetHours > 24 || offsetMinutes > 60
  ) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const offset = (offsetHours * 60 + offsetMinutes) * 60;
  const east = parts[8] === "-" ? -offset : offset;
  const seconds = date.getTime() / 1000 + hour * 3600 + minute * 60 + second -
    east;
  const fraction = (parts[7] ?? "").slice(0, 9).padEnd(9, "0");
  return new Timestamp(BigInt(seconds) * SECOND + BigInt(fraction), east);
}

/** Whole seconds, rounded down. */
export function secondsOf(nanos: bigint): bigint {
  const seconds = nanos / SECOND;
  return nanos % SECOND < 0n ? seconds - 1n : seconds;
}

/** RFC 3339 text in the time zone of a time, with a fraction only if there is one. */
export function timeText({ nanos, offset }: Timestamp): string {
  const seconds = secondsOf(nanos);
  const fraction = String(nanos - seconds * SECOND).padStart(9, "0")
    .replace(/0+$/, "");
  const text = new Date((Number(seconds) + offset) * 1000).toISOString()
    .replace(/^\+0|\.\d{3}Z$/g, "");
  return `${text}${fraction === "" ? "" : `.${fraction}`}${zoneText(offset)}`;
}

function zoneText(offset: number): string {
  if (offset === 0) return "Z";
  const minutes = Math.abs(offset) / 60;
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60]
    .map((part) => String(part).padStart(2, "0"));
  return `${offset < 0 ? "-" : "+"}${hours}:${rest}`;
}

/** Parts of a point in time. */
export interface TimeParts {
  readonly year: number;
  /** From 0 on, as CEL counts. */
  readonly month: number;
  /** Day of the month, from 1 on. */
  readonly day: number;
  readonly dayOfYear: number;
  readonly dayOfWeek: number;
  readonly hours: number;
  readonly minutes: number;
  readonly seconds: number;
  readonly milliseconds: number;
}

/**
 * Parts of a point in time.
 *
 * @param zone Name of a time zone, or an offset such as `-08:00`.
 * @throws {CelFailure} If no time zone has the name.
 */
export function timeParts(nanos: bigint, zone = "UTC"): TimeParts {
  const seconds = secondsOf(nanos);
  const local = Number(seconds) + offsetOf(Number(seconds), zone);
  const date = new Date(local * 1000);
  const start = new Date(0);
  start.setUTCFullYear(date.getUTCFullYear(), 0, 1);
  return {
    year: date.getUTCFullYear(),
    month: date.getUTCMonth(),
    day: date.getUTCDate(),
    dayOfYear: Math.floor((date.getTime() - start.getTime()) / 86_400_000),
    dayOfWeek: date.getUTCDay(),
    hours: date.getUTCHours(),
    minutes: date.getUTCMinutes(),
    seconds: date.getUTCSeconds(),
    milliseconds: Number((nanos - seconds * SECOND) / 1_000_000n),
  };
}

/** Offset of a time zone at a time, in seconds. */
function offsetOf(seconds: number, zone: string): number {
  if (zone === "UTC" || zone === "" || zone === "Local") return 0;
  const colon = zone.indexOf(":");
  if (colon >= 0) {
    const hours = integer(zone.slice(0, colon));
    const minutes = integer(zone.slice(colon + 1));
    return 60 * (hours * 60 + (zone.startsWith("-") ? -minutes : minutes));
  }
  // JavaScript takes names in any case, and offsets without a colon.
  if (!/^[A-Z]/.test(zone) || /\/[a-z]/.test(zone)) throw unknownZone(zone);
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      era: "short",
    });
  } catch {
    throw unknownZone(zone);
  }
  const parts = Object.fromEntries(
    format.formatToParts(new Date(seconds * 1000))
      .map(({ type, value }) => [type, value]),
  );
  const year = Number(parts.year);
  const date = new Date(0);
  date.setUTCFullYear(
    parts.era === "BC" ? 1 - year : year,
    Number(parts.month) - 1,
    Number(parts.day),
  );
  const local = date.getTime() / 1000 + Number(parts.hour) * 3600 +
    Number(parts.minute) * 60 + Number(parts.second);
  return local - seconds;
}

function unknownZone(zone: string): CelFailure {
  return new CelFailure(`unknown time zone ${zone}`);
}

function integer(text: string): number {
  if (!/^[+-]?\d+$/.test(text)) {
    throw new CelFailure(
      `strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`,
    );
  }
  return Number(text);
}
