import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Report } from "./headlines.ts";

/** Runtimes in the order of the guide. */
const RUNTIMES = ["node", "deno", "bun"] as const;

function file(runtime: string): string {
  return fileURLToPath(new URL(`../results/${runtime}.json`, import.meta.url));
}

/**
 * Stores a report. It replaces the last one of the runtime, but for other benches
 * that the last one measured on the same machine and with the same version.
 */
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
  if (report.machine !== last.machine || report.runtime !== last.runtime) {
    return report;
  }
  const benches = new Set(report.results.map(({ bench }) => bench));
  const isOther = ({ bench }: { readonly bench: string }) =>
    !benches.has(bench);
  const others = last.results.filter(isOther);
  if (others.length === 0) return report;
  return {
    ...report,
    command: [...new Set([last.command, report.command])].join("\n"),
    results: [...others, ...report.results],
    remarks: [
      ...(last.remarks ?? []).filter(isOther),
      ...(report.remarks ?? []),
    ],
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
