import type { Bench, Measure } from "./bench.ts";
import { median } from "./sampling.ts";

/** One line of the report; the form that `--json` writes. */
export interface Result {
  readonly bench: string;
  readonly subject: string;
  readonly unit: string;
  /** The median of all rounds. */
  readonly value: number;
  readonly min: number;
  readonly max: number;
}

/** What one subject gave in each round. */
export interface Rounds {
  readonly bench: Bench;
  readonly subject: string;
  readonly rounds: readonly (readonly Measure[])[];
}

/** Medians and spread of every measure of a subject. */
export function resultsOf({ bench, subject, rounds }: Rounds): Result[] {
  return (rounds[0] ?? []).map(({ unit }) => {
    const values = rounds.flatMap((round) =>
      round.filter((measure) => measure.unit === unit)
        .map(({ value }) => value)
    );
    return {
      bench: bench.name,
      subject,
      unit,
      value: median(values),
      min: Math.min(...values),
      max: Math.max(...values),
    };
  });
}

/** A number with three significant digits, or whole. */
function digits(value: number): string {
  return value >= 100
    ? Math.round(value).toLocaleString("en-US")
    : String(Number(value.toPrecision(3)));
}

/** The results of one bench as a table for people. */
export function table(bench: Bench, results: readonly Result[]): string {
  const width = Math.max(...bench.subjects.map(({ name }) => name.length));
  const base = results[0];
  const lines = [`${bench.name}: ${bench.what}`, `  aim: ${bench.target}`];
  let last = "";
  for (const { subject, unit, value, min, max } of results) {
    const name = (subject === last ? "" : subject).padEnd(width);
    const times = unit === base?.unit && subject !== base.subject
      ? `  × ${digits(value / base.value)}`
      : "";
    lines.push(
      `  ${name}  ${digits(value).padStart(9)} ${unit}  (${digits(min)} to ${
        digits(max)
      })${times}`,
    );
    last = subject;
  }
  return lines.join("\n");
}
