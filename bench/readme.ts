/**
 * Writes the numbers of a run into the README, and the charts that it shows:
 * `readme.ts [FILE]`, where FILE is what `run.ts --json FILE` has written. The
 * file is kept as `bench/results.json`, from which a test sees that the README
 * says nothing else.
 *
 * @module
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { charts } from "./support/charts.ts";
import type { Report } from "./support/headlines.ts";
import { withNumbers } from "./support/readme_table.ts";

function path(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

/** @throws {Error} If the file is not what `run.ts --json` writes. */
function readReport(file: string): { text: string; report: Report } {
  try {
    const text = readFileSync(file, "utf8");
    const report = JSON.parse(text) as Report;
    if (!Array.isArray(report.results)) throw new TypeError("no results");
    return { text, report };
  } catch (error) {
    process.stderr.write(
      `Cannot write the numbers: ${file} must be a report that run.ts --json has written: received ${
        (error as Error).message
      }\n`,
    );
    process.exit(1);
  }
}

const kept = path("./results.json");
const [file = kept] = process.argv.slice(2);
const { text, report } = readReport(file);
writeFileSync(kept, text);
mkdirSync(path("./charts"), { recursive: true });
for (const [name, picture] of Object.entries(charts(report))) {
  writeFileSync(path(`./charts/${name}`), picture);
}
const readme = path("../README.md");
writeFileSync(readme, withNumbers(readFileSync(readme, "utf8"), report));
