/** Limits of the five fields: minute, hour, day of month, month, day of week. */
const LIMITS = [[0, 59], [0, 23], [1, 31], [1, 12], [0, 6]] as const;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** Times of a cron expression, in UTC. */
export interface Schedule {
  /** First time after a moment; undefined if none exists within four years. */
  next(after: number): number | undefined;
}

/**
 * Parses a cron expression of five fields, each with `*`, numbers, ranges, lists
 * and steps.
 *
 * @throws {RangeError} If it is invalid; the message is made for a status.
 */
export function parseSchedule(text: string): Schedule {
  const fields = text.trim().split(/\s+/);
  if (fields.length !== LIMITS.length) {
    throw new RangeError(`schedule needs five fields: "${text}"`);
  }
  const [minutes, hours, days, months, weekdays] = fields.map(values) as [
    Set<number>,
    Set<number>,
    Set<number>,
    Set<number>,
    Set<number>,
  ];
  // Cron joins the two kinds of days by "or" if both are restricted.
  const anyDay = fields[2] === "*" || fields[4] === "*";
  const matchesDay = (date: Date) => {
    const ofMonth = days.has(date.getUTCDate());
    const ofWeek = weekdays.has(date.getUTCDay());
    return months.has(date.getUTCMonth() + 1) &&
      (anyDay ? ofMonth && ofWeek : ofMonth || ofWeek);
  };
  return {
    next(after) {
      let time = Math.floor(after / MINUTE_MS) * MINUTE_MS + MINUTE_MS;
      const end = time + 4 * 366 * DAY_MS;
      while (time < end) {
        const date = new Date(time);
        if (!matchesDay(date)) {
          time = Math.floor(time / DAY_MS) * DAY_MS + DAY_MS;
        } else if (
          hours.has(date.getUTCHours()) && minutes.has(date.getUTCMinutes())
        ) return time;
        else time += MINUTE_MS;
      }
      return undefined;
    },
  };
}

/** Numbers that a field allows. */
function values(field: string, index: number): Set<number> {
  const [lowest, highest] = LIMITS[index] ?? [0, 0];
  const found = new Set<number>();
  for (const part of field.split(",")) {
    const [, from, to, step = "1"] =
      /^(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:\/(\d{1,2}))?$/.exec(part) ?? [];
    if (!/^[\d*]/.test(part) || !/^[\d*/-]+$/.test(part)) {
      throw new RangeError(`schedule has an invalid field: "${field}"`);
    }
    const first = from === undefined ? lowest : Number(from);
    const last = from === undefined || (to === undefined && part.includes("/"))
      ? highest
      : Number(to ?? from);
    const isRange = first >= lowest && last <= highest && first <= last;
    if (
      !isRange || Number(step) === 0 || (from === undefined && part[0] !== "*")
    ) {
      throw new RangeError(`schedule has an invalid field: "${field}"`);
    }
    for (let value = first; value <= last; value += Number(step)) {
      found.add(value);
    }
  }
  return found;
}
