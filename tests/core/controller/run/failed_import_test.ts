import assert from "node:assert/strict";
import { test } from "node:test";
import { lazyApplyMemory } from "../../../../core/controller/run/run_writes.ts";
import { failFirstImports } from "../../../support/failed_imports.ts";

test("The memory of applies loads after it could not be loaded once", async () => {
  using imports = failFirstImports(/\/apply_memory\.ts$/);
  const memory = lazyApplyMemory();
  const first = await Promise.resolve(memory()).catch(String);
  if (imports.failed.size > 0) {
    assert.match(String(first), /Too many open files/);
  }
  const [one, other] = await Promise.all([memory(), memory()]);
  assert.equal(one, other);
});
