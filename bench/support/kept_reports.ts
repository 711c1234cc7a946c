import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Report } from "./headlines.ts";

/** Runtimes in the order of the guide. */
const RUNTIMES = ["node", "deno", "bun"] as const;

function file(runtime: string): string {
  return fileURLToPath(new URL(`../results/${runtime}.json`, import.meta.url));
}

/** Stores a report in place of the last one on the same runtime. */
export function keepReport(report: Report): void {
  const [runtime = ""] = report.runtime.split(" ");
  mkdirSync(new URL("../results/", import.meta.url), { recursive: true });
  writeFileSync(file(runtime), `${JSON.stringify(report, null, 2)}\n`);
}

/** Reports whose numbers are in the guide: Node's, then the others'. */
export function keptReports(): readonly [Report, ...Report[]] {
  const [node, ...others] = RUNTIMES.map(file).filter(existsSync).map((path) =>
    JSON.parse(readFileSync(path, "utf8")) as Report
  );
  if (node === undefined) {
    throw new Error(
      "Cannot read the numbers: bench/results/node.json must be there: received no file",
    );
  }
  return [node, ...others];
}
