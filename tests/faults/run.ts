/**
 * Runs the fault matrix on Node, Deno and Bun, and the informer of
 * `@kubernetes/client-node` on Node, and writes the results into docs/faults.md.
 *
 * @module
 */
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import process from "node:process";
import { PROJECT, runCommand } from "../support/child_process.ts";
import { commandLine } from "../support/command_line.ts";
import type { CellReport } from "./cells.ts";
import {
  faultTable,
  type Runtime,
  RUNTIMES,
  withFaultTable,
} from "./fault_table.ts";

const CELLS = fileURLToPath(new URL("./cells.ts", import.meta.url));
const PAGE = `${PROJECT}/docs/faults.md`;
const COMMANDS: Readonly<Record<Runtime, readonly string[]>> = {
  node: ["node", "--conditions=@coracle/source", CELLS, "--peer"],
  deno: ["deno", "run", "-A", "--no-check", CELLS],
  bun: ["bun", "--conditions=@coracle/source", CELLS],
};

commandLine("write the table of faults", {});
const reports: Partial<Record<Runtime, CellReport>> = {};
let failed = 0;
for (const runtime of RUNTIMES) {
  const { stdout, stderr } = await runCommand(COMMANDS[runtime], {
    limit: 300_000,
  });
  const report = JSON.parse(stdout.trim().split("\n").at(-1) || stderr);
  reports[runtime] = report;
  const all = Object.entries((report as CellReport).cells);
  for (const [cell, failure] of all) {
    if (failure === null) continue;
    failed++;
    process.stderr.write(`${runtime} ${cell}: ${failure}\n`);
  }
  process.stdout.write(`${runtime}: ${all.length} cells\n`);
}
const table = faultTable(reports as Record<Runtime, CellReport>);
await writeFile(PAGE, withFaultTable(await readFile(PAGE, "utf8"), table));
await runCommand(["deno", "fmt", "-q", PAGE]);
process.exitCode = failed > 0 ? 1 : 0;
