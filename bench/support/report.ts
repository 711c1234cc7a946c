import type { Bench, Curve, Measure } from "./bench.ts";
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
  /** Of the first round, where it has one. */
  readonly curve?: Curve | undefined;
}

/** What one subject gave in each round. */
export interface Rounds {
  readonly bench: Bench;
  readonly subject: string;
  readonly rounds: readonly (readonly Measure[])[];
}

/** Medians and spread of every measure of a subject. */
export function resultsOf({ bench, subject, rounds }: Rounds): Result[] {
  return (rounds[0] ?? []).map(({ unit, curve }) => {
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
      ...(curve !== undefined && { curve }),
    };
  });
}

/** A number with three significant digits, or whole. */
export function digits(value: number): string {
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

/** What one subject gave before and after a change, in turns. */
export interface Pair {
  readonly subject: string;
  readonly before: readonly Measure[];
  readonly after: readonly Measure[];
}

/** What a change did to the subjects of a bench, as a table for people. */
export function comparison(bench: Bench, pairs: readonly Pair[]): string {
  const lines = [`${bench.name}: ${bench.what}`];
  for (const { subject, before, after } of pairs) {
    lines.push(`  ${subject}`);
    for (const unit of new Set(before.map((measure) => measure.unit))) {
      const [was, is] = [before, after].map((measures) =>
        measures.filter((measure) => measure.unit === unit)
          .map(({ value }) => value)
      ) as [number[], number[]];
      const ratios = was.map((value, i) => (is[i] ?? NaN) / value);
      lines.push(
        `    ${digits(median(was)).padStart(9)} → ${
          digits(median(is)).padStart(9)
        } ${unit}  × ${digits(median(ratios))} (${
          digits(Math.min(...ratios))
        } to ${digits(Math.max(...ratios))})`,
      );
    }
  }
  return lines.join("\n");
}
