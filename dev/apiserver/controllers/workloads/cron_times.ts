import {
  type CronField,
  DESCRIPTORS,
  FIELDS,
  numberOf,
} from "../../builtin/validation/cron_schedule.ts";

const UNITS_MS: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1_000,
  ms: 1,
};
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** Longest search for the next time: leap days on a weekday recur in 28 years. */
const SEARCH_DAYS = 366 * 29;

/** Times of a cron schedule. */
export interface CronTimes {
  /** First scheduled time after an instant, in milliseconds since 1970; undefined if there is none. */
  next(after: number): number | undefined;
}

/**
 * Parses a valid schedule in cron format.
 *
 * @param timeZone Name of the time zone; UTC if absent.
 */
export function cronTimes(schedule: string, timeZone = "UTC"): CronTimes {
  const zone = /^(?:CRON_)?TZ=(\S*)\s+/.exec(schedule);
  const text = schedule.slice(zone?.[0].length ?? 0).trim();
  if (text.startsWith("@every ")) return everyDuration(text.slice(7));
  const parts = (DESCRIPTORS[text] ?? text).split(/\s+/);
  const fields = FIELDS.map((field, index) =>
    fieldSet(parts[index] ?? "*", field)
  );
  const isAny = (index: number) => /^[*?]/.test(parts[index] ?? "*");
  const [minutes, hours, days, months, weekdays] = fields as [
    Set<number>,
    Set<number>,
    Set<number>,
    Set<number>,
    Set<number>,
  ];
  const local = localTimes(zone?.[1] || timeZone);
  const isDay = (date: Date) => {
    if (!months.has(date.getUTCMonth() + 1)) return false;
    const byDate = days.has(date.getUTCDate());
    const byWeekday = weekdays.has(date.getUTCDay());
    // If both fields are restricted, either may match.
    return isAny(2) || isAny(4) ? byDate && byWeekday : byDate || byWeekday;
  };
  return {
    next(after) {
      const start = local.of(after);
      const first = Math.floor(start / DAY_MS) * DAY_MS;
      for (let day = 0; day < SEARCH_DAYS; day++) {
        const midnight = first + day * DAY_MS;
        if (!isDay(new Date(midnight))) continue;
        for (const hour of hours) {
          for (const minute of minutes) {
            const wall = midnight + (hour * 60 + minute) * MINUTE_MS;
            if (wall + DAY_MS < start) continue;
            const time = local.instant(wall);
            if (time !== undefined && time > after) return time;
          }
        }
      }
      return undefined;
    },
  };
}

function everyDuration(text: string): CronTimes {
  let period = 0;
  for (const [, count, unit] of text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s)/g)) {
    period += Number(count) * (UNITS_MS[unit ?? ""] ?? 0);
  }
  const seconds = Math.max(1_000, Math.floor(period / 1_000) * 1_000);
  return { next: (after) => Math.floor(after / 1_000) * 1_000 + seconds };
}

function fieldSet(text: string, field: CronField): Set<number> {
  const values = new Set<number>();
  for (const range of text.split(",")) {
    const [span = "", step = ""] = range.split("/");
    const [first = "", last] = span.split("-");
    const isAny = first === "*" || first === "?";
    const start = isAny ? field.low : numberOf(first, field) ?? NaN;
    const end = isAny || (last === undefined && step !== "")
      ? field.high
      : numberOf(last ?? first, field) ?? NaN;
    for (let value = start; value <= end; value += Number(step) || 1) {
      values.add(value);
    }
  }
  return new Set([...values].sort((a, b) => a - b));
}

/** Conversion between instants and wall clock times of a time zone, which are represented as UTC. */
function localTimes(timeZone: string): {
  of(instant: number): number;
  instant(wall: number): number | undefined;
} {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  const of = (instant: number) => {
    if (timeZone === "UTC") return instant;
    const parts = Object.fromEntries(
      format.formatToParts(instant).map(({ type, value }) => [type, value]),
    );
    const { year, month, day, hour, minute, second } = parts;
    return Date.UTC(
      Number(year),
      Number(month) - 1,
      Number(day),
      Number(hour),
      Number(minute),
      Number(second),
    );
  };
  return {
    of,
    instant(wall) {
      // The offset of the day before finds the first of two equal wall times.
      for (const guess of [wall - DAY_MS, wall + DAY_MS]) {
        const instant = wall - (of(guess) - guess);
        if (of(instant) === wall) return instant;
      }
      return undefined;
    },
  };
}
