import {
  type CronField,
  DESCRIPTORS,
  FIELDS,
  numberOf,
} from "./cron_schedule.ts";

const UNITS_MS: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1_000,
  ms: 1,
};
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Longest search for the next time: leap days on a weekday recur in 28 years. */
const SEARCH_DAYS = 366 * 29;

/** Times of a cron schedule. */
export interface CronTimes {
  /** First scheduled time after an instant, in milliseconds since 1970; undefined if none exists. */
  next(after: number): number | undefined;
}

/**
 * Parses a valid schedule in cron format, as the CronJobs of Kubernetes and its
 * parser robfig/cron read it: a time that a change of the clock skips has no run,
 * and one that it repeats has two.
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
  // A step above one restricts a field.
  const isAny = (index: number) =>
    (parts[index] ?? "*").split(",").some((range) =>
      /^[*?](\/0*1)?$/.test(range)
    );
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
  const firstOf = (midnight: number, after: number) => {
    const offset = local.offset(midnight);
    let first: number | undefined;
    for (const hour of hours) {
      for (const minute of minutes) {
        const wall = midnight + (hour * 60 + minute) * MINUTE_MS;
        const instants = offset === undefined
          ? local.instants(wall)
          : [wall - offset];
        for (const time of instants) {
          if (time > after && !(time >= (first ?? Infinity))) first = time;
        }
        if (offset !== undefined && first !== undefined) return first;
      }
    }
    return first;
  };
  return {
    next(after) {
      const today = Math.floor(local.of(after) / DAY_MS) * DAY_MS;
      // A clock that is put back may repeat the end of the day before.
      for (let day = -1; day < SEARCH_DAYS; day++) {
        const midnight = today + day * DAY_MS;
        if (!isDay(new Date(midnight))) continue;
        const time = firstOf(midnight, after);
        if (time !== undefined) return time;
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
  /** Offset of the day that begins at a wall clock time; undefined if it changes. */
  offset(midnight: number): number | undefined;
  /** Instants at which clocks show a time: none, one or two. */
  instants(wall: number): readonly number[];
} {
  if (timeZone === "UTC") {
    return {
      of: (instant) => instant,
      offset: () => 0,
      instants: (wall) => [wall],
    };
  }
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
  const offsetAt = (instant: number) => of(instant) - instant;
  return {
    of,
    offset(midnight) {
      // No offset is larger than 14 hours.
      const before = offsetAt(midnight - 14 * HOUR_MS);
      const after = offsetAt(midnight + 38 * HOUR_MS);
      return before === after ? before : undefined;
    },
    instants(wall) {
      const offsets = [wall - DAY_MS, wall + DAY_MS].map(offsetAt);
      return [...new Set(offsets)].map((offset) => wall - offset)
        .filter((instant) => of(instant) === wall);
    },
  };
}
