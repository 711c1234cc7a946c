import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { PROJECT, runCommand } from "../support/child_process.ts";

const COMMAND = "tools/docs_sample.ts";

test("Commands of the project name what they take and refuse the rest", async () => {
  const cases = {
    "--sead=2":
      "Cannot print a sample: it takes --seed VALUE, --count VALUE: received --sead=2 (Unknown option '--sead')\n",
    "--count=0":
      'Cannot print a sample: --count must be an integer of 1 or more: received "0"\n',
    "--seed=":
      'Cannot print a sample: --seed must be an integer of 0 or more: received ""\n',
  };
  for (const [argument, message] of Object.entries(cases)) {
    const { code, stderr } = await runCommand(
      [process.execPath, COMMAND, argument],
      { cwd: PROJECT },
    );
    assert.deepEqual({ code, stderr }, { code: 2, stderr: message });
  }
});

test("Commands of the project end with what was wrong, without a stack", async () => {
  const { code, stderr } = await runCommand(
    [process.execPath, "tests/package/compile_with.ts", "nope"],
    { cwd: PROJECT },
  );
  const message =
    "Cannot compile an operator: write a version such as 5.9: received nope\n";
  assert.deepEqual({ code, stderr }, { code: 1, stderr: message });
});
