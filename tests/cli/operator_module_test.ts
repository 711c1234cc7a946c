import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  readOperatorModule,
  requireOperator,
} from "../../cli/operator_module.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

const fixture = (name: string) =>
  fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url));

async function refusal(file: string): Promise<string> {
  const module = await readOperatorModule(file);
  const refused = requireOperator(module, await module.exports);
  return await refused.then(() => "", (error: Error) => error.message);
}

test("requireOperator names the exports of a file without an operator", async () => {
  assert.match(
    await refusal(fixture("nothing.ts")),
    /^Cannot run .*nothing\.ts: it creates no operator: .*received exports answer$/,
  );
});

test("requireOperator recognizes a file with an import.meta.main guard", async () => {
  assert.match(
    await refusal(fixture("main_only.ts")),
    /^Cannot run .*main_only\.ts: it creates no operator when it is imported, .*import\.meta\.main/,
  );
});

test("readOperatorModule explains how to make a package of ES modules", async (context) => {
  if (process.versions["bun"] ?? process.versions["deno"]) {
    return context.skip("to other runtimes than Node each .ts file is one");
  }
  const folder = temporaryFolder();
  writeText(folder, "package.json", '{ "type": "commonjs" }');
  const file = writeText(
    folder,
    "lamp.ts",
    'import { sep } from "node:path";\nexport const letter = sep;\n',
  );
  await assert.rejects(readOperatorModule(file), {
    message:
      /^Cannot load .*lamp\.ts: .*"npm pkg set type=module" or rename it to lamp\.mts: received /,
  });
});

test("readOperatorModule names the Node version that runs TypeScript", async (context) => {
  if (process.versions["bun"] ?? process.versions["deno"]) {
    return context.skip("other runtimes than Node run them all");
  }
  // To this Node what .ts is to older ones.
  const file = writeText(temporaryFolder(), "lamp.tsx", "export {};");
  const module = await readOperatorModule(file).catch((error) => error);
  assert.match(
    module.message,
    /^Cannot load .*lamp\.tsx: this Node does not run \.tsx files: \.ts needs Node 22\.19 or later, .*: received Node \d/,
  );
});
