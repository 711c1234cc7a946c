import { test } from "node:test";
import { runCell } from "./fault_cell.ts";
import { OPERATIONS } from "./fault_gate.ts";
import { FAULT_ROWS } from "./fault_rows.ts";

for (const row of FAULT_ROWS) {
  for (const operation of OPERATIONS) {
    if (typeof row.effects[operation] === "string") continue;
    test(
      `Fault matrix: ${operation} survives ${row.id}`,
      () => runCell(row, operation),
    );
  }
}
