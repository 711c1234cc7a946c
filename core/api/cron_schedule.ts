/** Named cron schedules, such as `@daily`. */
export const DESCRIPTORS: Readonly<Record<string, string>> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

/** Field of a schedule: its lowest and highest value, and names of values. */
export interface CronField {
  readonly low: number;
  readonly high: number;
  readonly names?: readonly string[];
}

/** Fields of a cron schedule: minutes, hours, days, months and weekdays. */
export const FIELDS: readonly CronField[] = [
  { low: 0, high: 59 },
  { low: 0, high: 23 },
  { low: 1, high: 31 },
  {
    low: 1,
    high: 12,
    names: "jan feb mar apr may jun jul aug sep oct nov dec".split(" "),
  },
  { low: 0, high: 6, names: "sun mon tue wed thu fri sat".split(" ") },
];

/** Checks a cron schedule; returns the violation or undefined. */
export function scheduleProblem(schedule: string): string | undefined {
  const text = schedule.replace(/^(?:CRON_)?TZ=\S*\s+/, "");
  if (text.startsWith("@")) {
    const known = Object.hasOwn(DESCRIPTORS, text) ||
      /^@every (?:\d+(?:\.\d+)?(?:h|ms|m|s))+$/.test(text);
    return known ? undefined : `unrecognized descriptor: ${text}`;
  }
  const parts = text.split(/\s+/).filter((part) => part !== "");
  if (parts.length !== FIELDS.length) {
    return `expected exactly 5 fields, found ${parts.length}: [${
      parts.join(" ")
    }]`;
  }
  for (const [index, field] of FIELDS.entries()) {
    // The parser of Kubernetes passes over empty entries, as in "1,2,".
    const ranges = (parts[index] ?? "").split(",").filter((one) => one !== "");
    for (const range of ranges) {
      const problem = rangeProblem(range, field);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}

function rangeProblem(text: string, field: CronField): string | undefined {
  const [range = "", step, ...more] = text.split("/");
  if (more.length > 0) return `too many slashes: ${text}`;
  const [first = "", last, ...rest] = range.split("-");
  if (rest.length > 0) return `too many hyphens: ${text}`;
  if (step !== undefined && !/^\d+$/.test(step)) return notANumber(step);
  if (step !== undefined && Number(step) === 0) {
    return `step of range should be a positive number: ${text}`;
  }
  if (range === "*" || range === "?") return undefined;
  const start = numberOf(first, field);
  const end = last === undefined ? start : numberOf(last, field);
  if (start === undefined) return notANumber(first);
  if (end === undefined) return notANumber(last ?? "");
  if (start < field.low) {
    return `beginning of range (${start}) below minimum (${field.low}): ${text}`;
  }
  if (end > field.high) {
    return `end of range (${end}) above maximum (${field.high}): ${text}`;
  }
  return start > end
    ? `beginning of range (${start}) beyond end of range (${end}): ${text}`
    : undefined;
}

/** Value of a name or number; undefined if it is neither. */
export function numberOf(
  text: string,
  { names = [], low }: CronField,
): number | undefined {
  const name = names.indexOf(text.toLowerCase());
  if (name >= 0) return name + low;
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

function notANumber(text: string): string {
  return `failed to parse int from ${text}: strconv.Atoi: parsing ${
    JSON.stringify(text)
  }: invalid syntax`;
}

/** Checks the name of a time zone; returns the violation or undefined. */
export function timeZoneProblem(name: string): string | undefined {
  if (name === "") return "timeZone must be nil or non-empty string";
  if (name.toLowerCase() === "local") {
    return "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
  }
  try {
    const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: name })
      .resolvedOptions();
    const isMisspelt = timeZone !== name &&
      timeZone.toLowerCase() === name.toLowerCase();
    if (!isMisspelt && !isForeign(name)) return undefined;
  } catch {
    // There is no such zone.
  }
  return `unknown time zone ${name}`;
}

/** Names of three capitals that are time zones of IANA. */
const SHORT_ZONES: readonly string[] =
  "CET EET EST GMT HST MET MST PRC ROC ROK UCT UTC WET".split(" ");

/**
 * Whether only a runtime knows a time zone, and the database of IANA has none of this
 * name: offsets, names without capitals, and abbreviations, which runtimes take for
 * zones that few mean, such as `BST` for that of Bangladesh.
 */
function isForeign(name: string): boolean {
  return /^[+-]/.test(name) || name === name.toLowerCase() ||
    name.startsWith("SystemV/") ||
    (/^[A-Z]{3}$/.test(name) && !SHORT_ZONES.includes(name));
}
