import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Report, runsOf } from "./headlines.ts";

/** Runtimes in the order of the guide. */
const RUNTIMES = ["node", "deno", "bun"] as const;

function file(runtime: string): string {
  return fileURLToPath(new URL(`../results/${runtime}.json`, import.meta.url));
}

/** Stores a report; benches that it lacks are kept from earlier runs. */
export function keepReport(report: Report): void {
  const [runtime = ""] = report.runtime.split(" ");
  mkdirSync(new URL("../results/", import.meta.url), { recursive: true });
  const path = file(runtime);
  const kept = existsSync(path)
    ? merged(report, JSON.parse(readFileSync(path, "utf8")) as Report)
    : report;
  writeFileSync(path, `${JSON.stringify(kept, null, 2)}\n`);
}

function merged(report: Report, last: Report): Report {
  const measured = new Set(report.results.map(({ bench }) => bench));
  const isOther = ({ bench }: { readonly bench: string }) =>
    !measured.has(bench);
  const earlier = runsOf(last).map((run) => ({
    ...run,
    benches: run.benches.filter((bench) => !measured.has(bench)),
  })).filter(({ benches }) => benches.length > 0);
  return {
    ...report,
    results: [...last.results.filter(isOther), ...report.results],
    remarks: [
      ...(last.remarks ?? []).filter(isOther),
      ...(report.remarks ?? []),
    ],
    runs: [...earlier, ...runsOf(report)],
  };
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
