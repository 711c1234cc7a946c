const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_HOURS = 24;
const YEAR_HOURS = 365 * DAY_HOURS;

/**
 * Duration in kubectl's format: the longer, the coarser.
 *
 * @param duration Milliseconds; slightly negative values are allowed.
 */
export function humanDuration(duration: number): string {
  const seconds = Math.trunc(duration / SECOND_MS);
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.trunc(duration / MINUTE_MS);
  if (minutes < 10) return `${minutes}m${rest(seconds % 60, "s")}`;
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.trunc(duration / HOUR_MS);
  if (hours < 8) return `${hours}h${rest(minutes % 60, "m")}`;
  if (hours < 2 * DAY_HOURS) return `${hours}h`;
  const days = Math.trunc(hours / DAY_HOURS);
  if (hours < 8 * DAY_HOURS) return `${days}d${rest(hours % DAY_HOURS, "h")}`;
  if (hours < 2 * YEAR_HOURS) return `${days}d`;
  const years = Math.trunc(hours / YEAR_HOURS);
  if (hours < 8 * YEAR_HOURS) return `${years}y${rest(days % 365, "d")}`;
  return `${years}y`;
}

function rest(count: number, unit: string): string {
  return count === 0 ? "" : `${count}${unit}`;
}

/** Age of a timestamp in kubectl's format; `<unknown>` if absent. */
export function humanAge(timestamp: string | undefined, now: number): string {
  if (!timestamp) return "<unknown>";
  const time = Date.parse(timestamp);
  return Number.isNaN(time) ? "<invalid>" : humanDuration(now - time);
}
