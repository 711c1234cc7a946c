import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { programFile } from "../../dev/cli/runtime.ts";

test("Programs of the command are found in folders with any name", () => {
  const folder = fileURLToPath(
    new URL("./my%20files%20%C3%A9%23/dist/", import.meta.url),
  );
  for (const own of ["cli/bin.js", "chunks/runtime-ABC.js"]) {
    const { href } = pathToFileURL(join(folder, ...own.split("/")));
    assert.equal(
      programFile("check_worker", href),
      join(folder, "cli", "check_worker.js"),
    );
  }
});
