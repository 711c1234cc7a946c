import { charts } from "./charts.ts";
import { digits } from "./digits.ts";
import {
  barsOf,
  type Headline,
  HEADLINES,
  type Report,
  runsOf,
} from "./headlines.ts";
import { verdicts } from "./targets.ts";

/** Markers between which the guide has the numbers of a run. */
const BEGIN = "<!-- numbers: npm run bench:guide writes these lines -->";
const END = "<!-- end of numbers -->";

/** Alternative texts of the charts. */
const CHART_TEXTS: Readonly<Record<string, string>> = {
  "headlines.svg": "Bar chart of Coracle and other clients",
  "memory.svg": "Memory over time, with a million Pods",
};

/**
 * Numbers section of the guide `docs/performance.md`: a table of the measures beside rivals, and one
 * of the same measures on other runtimes, with the commands and the machine.
 *
 * @param report Report of Node.
 * @param others Reports of other runtimes.
 */
export function numbersSection(
  report: Report,
  others: readonly Report[] = [],
): string {
  const pictures = Object.keys(charts(report)).map((name) =>
    `![${CHART_TEXTS[name] ?? name}](../bench/charts/${name})`
  );
  return [
    ...runsOf(report).flatMap((run, _index, { length }) => {
      const benches = length > 1 ? ` of ${run.benches.join(", ")}` : "";
      const where = `on ${run.machine}, ${runtimeName(run)}:`;
      return [wrapped(`Medians${benches} ${where}`), commands([run])];
    }),
    comparisonTable(report),
    ...subjectTables(report),
    ...pictures,
    ...others.length > 0
      ? [
        wrapped(
          `The same measures on ${others.map(runtimeName).join(" and ")}:`,
        ),
        commands(others),
        runtimesTable([report, ...others]),
      ]
      : [],
  ].join("\n\n");
}

/** Text in lines of at most 80 characters, as the formatter breaks them. */
function wrapped(text: string, indent = ""): string {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const longer = lines.length === 0 ? word : `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && longer.length > 80) lines.push(indent + word);
    else lines.splice(-1, 1, longer);
  }
  return lines.join("\n");
}

/** Name of a runtime, such as `Node 24.21.0`. */
function runtimeName({ runtime }: Pick<Report, "runtime">): string {
  return runtime.replace(/^./, (letter) => letter.toUpperCase());
}

function commands(reports: readonly Pick<Report, "command">[]): string {
  const lines = reports.map(({ command }) => command);
  return `\`\`\`sh\n${lines.join("\n")}\n\`\`\``;
}

function valueText({ shortUnit }: Headline, value: number): string {
  return `${digits(value)} ${shortUnit}`;
}

function comparisonTable(report: Report): string {
  const measured = verdicts(report.results);
  const rows = HEADLINES.flatMap((headline) => {
    const { bench, subject, unit, what } = headline;
    const [own, ...others] = barsOf(headline, report);
    if (own === undefined) return [];
    const beside = others.map(({ name, value }) =>
      `${name} ${valueText(headline, value)}`
    );
    const targets = measured.filter(({ target }) =>
      target.bench === bench && target.subject === subject &&
      target.unit === unit
    ).map(({ text, met }) => `${text}: ${met ? "met" : "missed"}`);
    return [[
      what,
      `**${valueText(headline, own.value)}**`,
      beside.join("; ") || "–",
      targets.join("; ") || "–",
      `\`${bench}\``,
    ]];
  });
  return markdownTable([
    ["measure", "Coracle", "rivals", "target", "bench"],
    ...rows,
  ]);
}

/** Benches whose subjects the guide shows one per row, with their titles. */
const SUBJECT_TABLES: Readonly<Record<string, string>> = {
  "reconcile":
    "Operators that write a status, each in its own language, ten runs at once without a client-side rate limit, on a real API server, after eight storms of 2,000 changes; the server's time includes the load's change:",
  "reconcile-embedded": "The same on the embedded API server:",
  "cleanup":
    "Objects with a finalizer: created, greeted and deleted, which are three writes:",
  "dependents": "Ten dependents in a workflow, one of them changed:",
};

/** Tables with a row per subject and a column per measure. */
function subjectTables({ results, remarks = [] }: Report): readonly string[] {
  return Object.entries(SUBJECT_TABLES).flatMap(([bench, title]) => {
    const own = results.filter((result) => result.bench === bench);
    const units = [...new Set(own.map(({ unit }) => unit))];
    // Reports of other versions measured something else.
    if (!units.some((unit) => unit.startsWith("µs CPU/"))) return [];
    const about = remarks.filter((remark) => remark.bench === bench);
    const rows = [...new Set(own.map(({ subject }) => subject))].map((name) => [
      name,
      ...units.map((unit) => {
        const found = own.find((one) =>
          one.subject === name && one.unit === unit
        );
        return found === undefined ? "–" : digits(found.value);
      }),
    ]);
    const missing = about.flatMap(({ subject, missing }) =>
      missing === undefined ? [] : [[
        subject,
        `not measured: ${missing}`,
        ...units.slice(1).map(() => ""),
      ]]
    );
    const settings = about.flatMap(({ subject, settings }) =>
      settings === undefined ? [] : [wrapped(`- ${subject}: ${settings}`, "  ")]
    );
    return [
      wrapped(title),
      markdownTable([["subject", ...units], ...rows, ...missing]),
      ...settings.length > 0 ? [settings.join("\n")] : [],
    ];
  });
}

/** Measures that Bun does not support. */
const NOT_EVERYWHERE = "B garbage/";

function runtimesTable(reports: readonly Report[]): string {
  const rows = HEADLINES.flatMap((headline) => {
    if (headline.unit.startsWith(NOT_EVERYWHERE)) return [];
    const values = reports.map((report) => barsOf(headline, report)[0]?.value);
    if (values.slice(1).every((value) => value === undefined)) return [];
    const texts = values.map((value) =>
      value === undefined ? "–" : valueText(headline, value)
    );
    return [[headline.what, ...texts]];
  });
  return markdownTable([["measure", ...reports.map(runtimeName)], ...rows]);
}

/** Markdown table as the formatter writes it; the first row is the header. */
function markdownTable(table: readonly (readonly string[])[]): string {
  const widths = (table[0] ?? []).map((_head, column) =>
    Math.max(...table.map((row) => [...row[column] ?? ""].length))
  );
  const line = (cells: readonly string[], filler: string) =>
    `| ${
      cells.map((cell, i) =>
        cell + filler.repeat((widths[i] ?? 0) - [...cell].length)
      ).join(" | ")
    } |`;
  return [
    ...table.slice(0, 1).map((row) => line(row, " ")),
    line(widths.map(() => ""), "-"),
    ...table.slice(1).map((row) => line(row, " ")),
  ].join("\n");
}

/**
 * Replaces the numbers in the text of the guide.
 *
 * @param reports Reports of Node, then of other runtimes.
 * @throws {SyntaxError} If the markers are missing.
 */
export function withNumbers(
  guide: string,
  [report, ...others]: readonly [Report, ...Report[]],
): string {
  const begin = guide.indexOf(BEGIN);
  const end = guide.indexOf(END);
  if (begin < 0 || end < begin) {
    throw new SyntaxError(
      `Cannot write the numbers: the guide must have "${BEGIN}" and "${END}", in that order`,
    );
  }
  const before = guide.slice(0, begin + BEGIN.length);
  return `${before}\n\n${numbersSection(report, others)}\n\n${
    guide.slice(end)
  }`;
}
