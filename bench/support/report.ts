import type { Bench, Measure, Remark, Result } from "./bench.ts";
import { digits } from "./digits.ts";
import { median } from "./sampling.ts";
import { verdicts } from "./targets.ts";

/** Measures of one subject in each round. */
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

/** Text table of the results of one bench. */
export function table(
  bench: Bench,
  results: readonly Result[],
  remarks: readonly Remark[] = [],
): string {
  const width = Math.max(...bench.subjects.map(({ name }) => name.length));
  const base = results[0];
  const lines = [`${bench.name}: ${bench.what}`];
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
  for (const { subject, settings, missing } of remarks) {
    if (missing !== undefined) {
      lines.push(`  ${subject.padEnd(width)}  not measured: ${missing}`);
    } else if (settings !== undefined) lines.push(`  ${subject}: ${settings}`);
  }
  for (const { target, text, met, margin } of verdicts(results)) {
    const { subject, unit } = target;
    lines.push(
      `  ${met ? "met" : "MISSED"}: ${subject}: ${text}, ${unit} (× ${
        digits(margin)
      } of what it must be)`,
    );
  }
  return lines.join("\n");
}

/** Measures of one subject before and after a change. */
export interface Pair {
  readonly subject: string;
  readonly before: readonly Measure[];
  readonly after: readonly Measure[];
}

/** Text table of the effect of a change on the subjects of a bench. */
export function comparison(bench: Bench, pairs: readonly Pair[]): string {
  const lines = [`${bench.name}: ${bench.what}`];
  for (const { subject, before, after } of pairs) {
    lines.push(`  ${subject}`);
    for (const unit of new Set(before.map((measure) => measure.unit))) {
      const [was, is] = [before, after].map((measures) =>
        measures.filter((measure) => measure.unit === unit)
          .map(({ value }) => value)
      ) as [number[], number[]];
      const ratios = was.map((value, i) =>
        value === is[i] ? 1 : (is[i] ?? NaN) / value
      );
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
