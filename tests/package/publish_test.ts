import assert from "node:assert/strict";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { PROJECT, runCommand } from "../support/child_process.ts";
import { WORKSPACE } from "./shipped_files.ts";

/** Imports of the user's operator file, and of what it had loaded. */
const COMPUTED_IMPORTS = [
  /dev\/cli\/dev_turn\.ts:\d+:\d+/,
  /dev\/cli\/operator_module\.ts:\d+:\d+/,
  /dev\/testing\/check\/fresh_modules\.ts:\d+:\d+/,
];

/** With all steps it checks the types of what is published a second time. */
const CHECK_LIMIT_MS = 180_000;
/** Whether types that JSR cannot derive are found does not depend on it. */
const FLAGS = process.env["TEST_MATRIX"] ? [] : ["--no-check"];

for (const folder of WORKSPACE) {
  test(`JSR accepts the package of ${folder} in a dry run`, {
    timeout: CHECK_LIMIT_MS + 5_000,
  }, async () => {
    const { code, stdout, stderr } = await runCommand([
      "deno",
      "publish",
      "--dry-run",
      "--allow-dirty",
      ...FLAGS,
    ], {
      cwd: join(PROJECT, folder),
      env: { NO_COLOR: "1" },
      limit: CHECK_LIMIT_MS,
    });
    assert.equal(code, 0, stdout + stderr);
    assert.doesNotMatch(stderr, /slow type[^s]/i);
    const warnings = stderr.split("\n")
      .filter((line) => line.startsWith("warning"));
    const files = folder === "dev" ? COMPUTED_IMPORTS : [];
    assert.deepEqual(
      warnings,
      files.map(() =>
        "warning[unanalyzable-dynamic-import]: unable to analyze dynamic import"
      ),
    );
    for (const file of files) assert.match(stderr, file);
  });
}
