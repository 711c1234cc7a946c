import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { resolve } from "node:path";
import process from "node:process";
import { after, test } from "node:test";
import { UsageError } from "../../dev/cli/command.ts";
import { mainTask, runAsMain } from "../../dev/cli/main_process.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

const VARIABLE = "CORACLE_MAIN_TASK";
const main = process.argv[1];
const { TMPDIR } = process.env;
after(() => {
  process.argv[1] = main ?? "";
  delete process.env[VARIABLE];
  if (TMPDIR === undefined) delete process.env["TMPDIR"];
  else process.env["TMPDIR"] = TMPDIR;
});

test("mainTask is the task of the main module, not of a process that it starts", () => {
  assert.equal(mainTask(), undefined);
  const options = { export: undefined, operators: true };
  const task = { task: "describe", file: "a/op.ts", options } as const;
  process.env[VARIABLE] = JSON.stringify({ ...task, command: process.pid });
  assert.equal(mainTask(), undefined);
  process.argv[1] = resolve("a/op.ts");
  assert.deepEqual(mainTask(), JSON.parse(JSON.stringify(task)));
  delete process.env[VARIABLE];
});

test("runAsMain leaves no file, whether the process answers, refuses or fails", async () => {
  const folder = temporaryFolder();
  const empty = writeText(folder, "empty.mjs", "export const answer = 42;\n");
  const broken = writeText(folder, "broken.mjs", "process.exit(1);\n");
  const run = (file: string, name?: string) =>
    runAsMain({
      task: "describe",
      file,
      options: { export: name, operators: true },
    });
  process.env["TMPDIR"] = temporaryFolder();
  assert.deepEqual(await run(empty), {
    operators: [],
    definitions: [],
    conversions: [],
    policies: [],
    rules: [],
    received: "exports answer",
  });
  await assert.rejects(
    run(empty, "nope"),
    (error) => error instanceof UsageError && /--export/.test(error.message),
  );
  await assert.rejects(run(broken), /as a program it failed; a function/);
  assert.deepEqual(readdirSync(process.env["TMPDIR"]), []);
});
