import assert from "node:assert/strict";
import { test } from "node:test";
import { runCommand } from "../support/child_process.ts";

test("JSR would take the package", async () => {
  const { code, stdout, stderr } = await runCommand([
    "deno",
    "publish",
    "--dry-run",
    "--allow-dirty",
  ]);
  assert.equal(code, 0, stdout + stderr);
  assert.doesNotMatch(stderr, /slow type|warning/i);
});
