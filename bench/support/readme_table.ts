import { charts } from "./charts.ts";
import { barsOf, HEADLINES, type Report } from "./headlines.ts";
import { digits } from "./report.ts";

/** Between these lines the README has what a run gave. */
const BEGIN = "<!-- numbers: npm run bench:readme writes these lines -->";
const END = "<!-- end of numbers -->";

/** What charts show, for those who do not see them. */
const CHART_TEXTS: Readonly<Record<string, string>> = {
  "headlines.svg": "The same as bars: Coracle, client-node and client-go",
  "memory.svg": "Memory over time, with a million Pods",
};

/** The table of the README, with the command and the machine that gave it. */
export function numbersSection(report: Report): string {
  const runtime = report.runtime.replace(/^node /, "Node ");
  const rows = HEADLINES.flatMap((headline) => {
    const [own, ...others] = barsOf(headline, report);
    if (own === undefined) return [];
    const text = (value: number) => `${digits(value)} ${headline.shortUnit}`;
    const beside = others.map(({ name, value }) => `${name} ${text(value)}`);
    return [[
      headline.what,
      `**${text(own.value)}**`,
      beside.join("; ") || "–",
      `\`${headline.bench}\``,
    ]];
  });
  const table = [["what", "Coracle", "others", "bench"], ...rows];
  const widths = [0, 1, 2, 3].map((column) =>
    Math.max(...table.map((row) => [...row[column] ?? ""].length))
  );
  const line = (cells: readonly string[], filler: string) =>
    `| ${
      cells.map((cell, i) =>
        cell + filler.repeat((widths[i] ?? 0) - [...cell].length)
      ).join(" | ")
    } |`;
  const lines = [
    ...table.slice(0, 1).map((row) => line(row, " ")),
    line(["", "", "", ""], "-"),
    ...table.slice(1).map((row) => line(row, " ")),
  ];
  const told = `Medians of one run on ${report.machine}, ${runtime}:`;
  const command = `\`\`\`sh\n${report.command}\n\`\`\``;
  const pictures = Object.keys(charts(report)).map((name) =>
    `![${CHART_TEXTS[name] ?? name}](bench/charts/${name})`
  );
  return [told, command, lines.join("\n"), ...pictures].join("\n\n");
}

/**
 * The README with the table of a run in place of the one that it has.
 *
 * @throws {SyntaxError} If it does not say where.
 */
export function withNumbers(readme: string, report: Report): string {
  const begin = readme.indexOf(BEGIN);
  const end = readme.indexOf(END);
  if (begin < 0 || end < begin) {
    throw new SyntaxError(
      `Cannot write the numbers: the README must have "${BEGIN}" and "${END}": received neither in that order`,
    );
  }
  const before = readme.slice(0, begin + BEGIN.length);
  return `${before}\n\n${numbersSection(report)}\n\n${readme.slice(end)}`;
}
