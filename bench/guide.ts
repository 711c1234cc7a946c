/**
 * Writes the numbers of benchmark runs into `docs/performance.md` and its charts:
 * `guide.ts [FILE…]`, where each FILE was written by `run.ts --json FILE` on
 * Node, Deno or Bun. Reports are kept as `bench/results/RUNTIME.json`, against
 * which a test checks the guide; without a FILE the guide is rewritten from
 * those.
 *
 * @module
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { charts } from "./support/charts.ts";
import type { Report } from "./support/headlines.ts";
import { keepReport, keptReports } from "./support/kept_reports.ts";
import { withNumbers } from "./support/numbers_table.ts";

function path(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

/** @throws {Error} If the file is not what `run.ts --json` writes. */
function readReport(file: string): Report {
  try {
    const report = JSON.parse(readFileSync(file, "utf8")) as Report;
    if (!Array.isArray(report.results)) throw new TypeError("no results");
    return report;
  } catch (error) {
    process.stderr.write(
      `Cannot write the numbers: ${file} must be a report that run.ts --json has written: received ${
        (error as Error).message
      }\n`,
    );
    process.exit(1);
  }
}

for (const report of process.argv.slice(2).map(readReport)) keepReport(report);
const reports = keptReports();
mkdirSync(path("./charts"), { recursive: true });
for (const [name, picture] of Object.entries(charts(reports[0]))) {
  writeFileSync(path(`./charts/${name}`), picture);
}
const guide = path("../docs/performance.md");
writeFileSync(guide, withNumbers(readFileSync(guide, "utf8"), reports));
