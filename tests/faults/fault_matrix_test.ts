import { test } from "node:test";
import { partOfRounds } from "../support/part_of_rounds.ts";
import { runCell } from "./fault_cell.ts";
import { OPERATIONS } from "./fault_gate.ts";
import { FAULT_ROWS } from "./fault_rows.ts";

// With a quarter of the rounds it is every fourth operation of a row, beginning
// with another one in each row.
const step = Math.round(OPERATIONS.length / partOfRounds(OPERATIONS.length));

for (const [at, row] of FAULT_ROWS.entries()) {
  const operations = OPERATIONS.filter((operation) =>
    typeof row.effects[operation] !== "string"
  );
  for (
    const operation of operations.filter((_, of) => (at + of) % step === 0)
  ) {
    test(
      `Fault matrix: ${operation} survives ${row.id}`,
      () => runCell(row, operation),
    );
  }
}
