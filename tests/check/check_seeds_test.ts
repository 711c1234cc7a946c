import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { PROJECT } from "../support/child_process.ts";
import { Program } from "../support/program.ts";

test("check:seeds says how many seeds have run when a signal ends it", async (t) => {
  const file = join(PROJECT, "tests", "check", "check_seeds.ts");
  const program = new Program([
    "node",
    "--conditions=@coracle/source",
    file,
    ...["--workers", "1", "--seeds", "1000000", "--progress", "0.5"],
  ]);
  t.after(() => program.kill());
  await program.says(/^[1-9]\d* seeds in /m, 60_000);
  assert.equal(await program.end("SIGTERM"), 1);
  assert.match(
    program.output,
    /^[1-9]\d* seeds in [\d.]+ s, \d+ ms of CPU each: 0 failed; cut off by SIGTERM\n$/m,
  );
});
