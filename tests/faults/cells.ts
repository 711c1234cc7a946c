/**
 * Runs all cells of the fault matrix on this runtime, and with `--peer` those of
 * the informer of `@kubernetes/client-node`; prints a {@linkcode CellReport} as
 * the last line.
 *
 * @module
 */
import process from "node:process";
import { runCell } from "./fault_cell.ts";
import { OPERATIONS } from "./fault_gate.ts";
import { FAULT_ROWS } from "./fault_rows.ts";
import type { PeerResult } from "./peer_cell.ts";

/** Results by `ROW/OPERATION`. */
export interface CellReport {
  /** Failure of a cell; null if it held. */
  readonly cells: Readonly<Record<string, string | null>>;
  readonly peer: Readonly<Record<string, PeerResult>>;
}

const cells: Record<string, string | null> = {};
for (const row of FAULT_ROWS) {
  for (const operation of OPERATIONS) {
    if (typeof row.effects[operation] === "string") continue;
    cells[`${row.id}/${operation}`] = await runCell(row, operation)
      .then(() => null, (error) => (error as Error).message);
  }
}
const peer: Record<string, PeerResult> = {};
if (process.argv.includes("--peer")) {
  const { runPeerCell } = await import("./peer_cell.ts");
  // What it throws where nobody catches must not end the others.
  process.on("uncaughtException", () => {});
  process.on("unhandledRejection", () => {});
  await Promise.all(
    FAULT_ROWS.flatMap((row) =>
      (["list", "watch"] as const).map(async (operation) => {
        peer[`${row.id}/${operation}`] = await runPeerCell(row, operation);
      })
    ),
  );
}
const report: CellReport = { cells, peer };
process.stdout.write(`${JSON.stringify(report)}\n`);
process.exit(0);
