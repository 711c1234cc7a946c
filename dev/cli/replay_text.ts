import type { RequestField } from "../testing/replay/compare_requests.ts";
import type {
  ReplayReport,
  RunDifference,
} from "../testing/replay/replay_report.ts";
import { printableLine } from "./printable.ts";

/** Number of differences that are shown, and of fields of each. */
const SHOWN = 10;
const SHOWN_FIELDS = 10;
/** Maximum length of a value, in UTF-16 code units. */
const MAX_VALUE = 200;

/** Text of the result of a replay. */
export function replayText(report: ReplayReport): string {
  const { runs, objects, requests, equal, from, to, differing } = report;
  const { differences, unrepeatable, notes } = report;
  const lines = [
    `${counted(runs, "run")} of ${
      counted(objects, "object")
    } from ${from} to ${to}: ${equal} of ${requests} requests are equal.`,
  ];
  if (differing === 0) {
    if (Object.keys(unrepeatable).length === 0) lines.push("No run differs.");
  } else {
    lines.push(
      differing === 1
        ? "1 run differs:"
        : `${differing} runs differ. The first:`,
    );
    lines.push(...differences.slice(0, SHOWN).flatMap(differenceLines));
    const left = differing - Math.min(differing, SHOWN);
    if (left > 0) lines.push(`and ${left} more runs (--json has them)`);
  }
  for (const [why, count] of Object.entries(unrepeatable)) {
    lines.push(
      `${counted(count, "run")} cannot be repeated to the end: ${why}`,
    );
  }
  lines.push(...notes);
  return lines.map((line) => `${printableLine(line)}\n`).join("");
}

function differenceLines(one: RunDifference): readonly string[] {
  const { controller, object, at, cause, attempt, what, fields = [] } = one;
  const { recorded, repeated, note } = one;
  const retry = attempt > 0 ? `, retry ${attempt}` : "";
  return [
    `  ${object} (${controller}) at ${at}, because ${cause}${retry}: ${what}`,
    ...recorded === undefined ? [] : [`    then  ${recorded}`],
    ...repeated === undefined || repeated === recorded
      ? []
      : [`    now   ${repeated}`],
    ...fields.slice(0, SHOWN_FIELDS).map(fieldLine),
    ...fields.length > SHOWN_FIELDS
      ? [`      and ${fields.length - SHOWN_FIELDS} more fields`]
      : [],
    ...note === undefined ? [] : [`    note  ${note}`],
  ];
}

function fieldLine(field: RequestField): string {
  const { path, recorded, repeated } = field;
  if (!("recorded" in field)) return `      ${path}: + ${shown(repeated)}`;
  if (!("repeated" in field)) return `      ${path}: - ${shown(recorded)}`;
  return `      ${path}: ${shown(recorded)} → ${shown(repeated)}`;
}

function shown(value: unknown): string {
  const text = JSON.stringify(
    value,
    (_, part: unknown) => typeof part === "bigint" ? Number(part) : part,
  ) ?? "";
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
