import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { assembledModule } from "../../tools/assemble.ts";

test("The structure program is what its WebAssembly text assembles to", async () => {
  const file = new URL(
    "../../core/json/structure_program.ts",
    import.meta.url,
  );
  assert.equal(readFileSync(file, "utf8"), await assembledModule());
});
