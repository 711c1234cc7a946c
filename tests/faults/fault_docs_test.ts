import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { PROJECT } from "../support/child_process.ts";
import { OPERATIONS } from "./fault_gate.ts";
import { FAULT_ROWS } from "./fault_rows.ts";
import { writtenCells } from "./fault_table.ts";

test("docs/faults.md has the cells of the fault matrix, and none failed", async () => {
  const text = await readFile(`${PROJECT}/docs/faults.md`, "utf8");
  const written = writtenCells(text);
  assert.deepEqual(
    [...written.keys()],
    FAULT_ROWS.map(({ title }) => title),
    "run npm run test:faults",
  );
  for (const { title, effects } of FAULT_ROWS) {
    const cells = written.get(title) ?? [];
    OPERATIONS.forEach((operation, index) => {
      const isEmpty = typeof effects[operation] === "string";
      assert.match(cells[index] ?? "", isEmpty ? /^– / : /^✓$/, title);
    });
  }
});
