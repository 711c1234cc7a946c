const LAYOUTS = {
  time: "2006-01-02T15:04:05Z07:00",
  microTime: "2006-01-02T15:04:05.000000Z07:00",
} as const;

const MOMENT =
  /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:[.,](\d+))?(Z|[+-]\d{2}:\d{2})$/;

/**
 * Parses a time as Go does and formats it as the server does: in UTC, with
 * second or microsecond precision.
 *
 * @returns Formatted time, or the problem with Go's message.
 */
export function decodeTime(
  text: string,
  form: "time" | "microTime",
): { text: string } | { problem: string } {
  const match = MOMENT.exec(text);
  const [, , , , , , , fraction = "", zone] = match ?? [];
  const seconds = text.slice(0, 19);
  const time = match ? Date.parse(`${seconds}${zone}`) : NaN;
  // Date.parse accepts days that Go rejects, such as February 30.
  const day = Number(match?.[3]);
  const inMonth = new Date(Date.parse(`${seconds}Z`)).getUTCDate() === day;
  const needsFraction = form === "microTime" && fraction.length !== 6;
  if (Number.isNaN(time) || !inMonth || needsFraction) {
    return { problem: parseProblem(text, form) };
  }
  const utc = new Date(time).toISOString().slice(0, 19);
  return {
    text: form === "time"
      ? `${utc}Z`
      : `${utc}.${fraction.slice(0, 6).padEnd(6, "0")}Z`,
  };
}

function parseProblem(text: string, form: "time" | "microTime"): string {
  const shown = JSON.stringify(text);
  return `parsing time ${shown} as "${
    LAYOUTS[form]
  }": cannot parse ${shown} as "2006"`;
}
