import assert from "node:assert/strict";
import { test } from "node:test";
import { fuzz } from "./fuzz_run.ts";

test("500 random requests have answers and cause no internal error", async () => {
  const { faults, statuses } = await fuzz({ requests: 500, seed: 14 });
  assert.deepEqual(faults, []);
  const total = Object.values(statuses).reduce((sum, count) => sum + count, 0);
  assert.equal(total, 500);
  for (const status of ["200", "201", "400", "404", "422"]) {
    assert.ok((statuses[status] ?? 0) > 0, `no answer ${status}`);
  }
});
