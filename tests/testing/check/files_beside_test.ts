import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import {
  examplesBeside,
  readExamples,
} from "../../../dev/testing/check/example_files.ts";
import {
  optionsBeside,
  readOptions,
} from "../../../dev/testing/check/options_file.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";

const POD = "apiVersion: v1\nkind: Pod\nmetadata: { name: a }\n";

test("The options of a check are in the file of the operator's name", async () => {
  const folder = temporaryFolder();
  const at = (name: string) => join(folder, name);
  for (const name of ["a.check.ts", "b.check.mjs", "plain"]) {
    writeText(folder, name, "");
  }
  assert.equal(await optionsBeside(at("a.ts")), at("a.check.ts"));
  assert.equal(await optionsBeside(at("b.mjs")), at("b.check.mjs"));
  assert.equal(await optionsBeside(at("b.ts")), undefined);
  assert.equal(await optionsBeside(at("plain")), undefined);
});

test("The options of a check are those that a file may have", async () => {
  assert.deepEqual(await readOptions(undefined), {});
  const folder = temporaryFolder();
  const file = (name: string, value: string) =>
    writeText(folder, name, `export default ${value};\n`);
  const options = await readOptions(
    file("a.mjs", "{ ignore: ['x'], kinds: [] }"),
  );
  assert.deepEqual(options, { ignore: ["x"], kinds: [] });
  for (
    const [name, value, received] of [
      ["b.mjs", "{ ignore: [], seed: 1 }", "ignore, seed"],
      ["c.mjs", "{}", "object"],
      ["d.mjs", "undefined", "undefined"],
    ] as const
  ) {
    await assert.rejects(readOptions(file(name, value)), {
      name: "TypeError",
      message: new RegExp(`with externals, .*: received ${received}$`),
    });
  }
});

test("The examples of a check are in the YAML file of the operator's name", async () => {
  const folder = temporaryFolder();
  writeText(folder, "a.yaml", `---\n${POD}---\n---\n${POD}`);
  const found = await examplesBeside(join(folder, "a.mts"));
  assert.deepEqual(found?.map(({ kind }) => kind), ["Pod", "Pod"]);
  assert.equal(await examplesBeside(join(folder, "b.ts")), undefined);
});

test("The examples of a check have the values that kubectl reads", async () => {
  const folder = temporaryFolder();
  const spec = "{ mode: 0644, on: yes, at: 2026-01-01 }";
  const file = writeText(folder, "a.yaml", `${POD}spec: ${spec}\n`);
  const [pod] = await readExamples(file);
  assert.deepEqual(pod?.["spec"], { mode: 420, on: true, at: "2026-01-01" });
});

test("An example must be an object with a version, a kind and metadata", async () => {
  const folder = temporaryFolder();
  for (
    const [text, received] of [
      [`${POD}---\ntext\n`, "another value in document 2"],
      ["kind: Pod\nmetadata: {}\n", "another value in document 1"],
      ["apiVersion: v1\nmetadata: {}\n", "another value in document 1"],
      ["apiVersion: v1\nkind: Pod\nmetadata: a\n", "another value"],
      ["a: [", "Flow sequence"],
      ["a: 1\na: 2\n", "Map keys must be unique"],
    ] as const
  ) {
    const file = writeText(folder, "a.yaml", text);
    await assert.rejects(readExamples(file), (error: Error) => {
      assert.ok(error instanceof TypeError);
      assert.ok(error.message.startsWith(`Cannot read ${file}: each of its`));
      assert.ok(error.message.includes(`received ${received}`), error.message);
      return true;
    });
  }
  await assert.rejects(
    readExamples(join(folder, "none.yaml")),
    /^TypeError: Cannot read examples: ENOENT/,
  );
});
