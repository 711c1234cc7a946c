/**
 * What an operator that cannot start prints, and its exit code, if its program
 * catches the error as docs/deploy.md shows.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { PROJECT, runCommand } from "../support/child_process.ts";
import { runtimeCommand } from "../support/program.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

const folder = temporaryFolder();

test("An operator that cannot start ends with its error alone, and code 1", async () => {
  const library = pathToFileURL(join(PROJECT, "mod.ts")).href;
  const program = writeText(
    folder,
    "main.ts",
    `import process from "node:process";
import { Operator, untyped } from "${library}";

const operator = new Operator();
operator.register(untyped({ group: "", version: "v1", kind: "Pod" }), {
  reconcile() {},
});
await operator.run().catch((error: unknown) => {
  console.error(String(error));
  process.exitCode = 1;
});
`,
  );
  const { code, stdout, stderr } = await runCommand(
    [...runtimeCommand(), program],
    { env: { KUBECONFIG: "/no/kubeconfig", HOME: folder } },
  );
  assert.match(stderr, /^Error: Cannot find a cluster: [^\n]+\n$/);
  assert.deepEqual({ code, stdout }, { code: 1, stdout: "" });
});
