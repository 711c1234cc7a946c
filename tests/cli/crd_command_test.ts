import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";
import type { Terminal } from "../../cli/command.ts";
import { crdCommand } from "../../cli/crd_command.ts";
import { runCli } from "../../cli/main.ts";

async function crd(
  ...files: readonly string[]
): Promise<{ code: number; out: string; said: string }> {
  let out = "";
  let said = "";
  const terminal: Terminal = {
    colors: false,
    out: (text) => void (out += text),
    say: (text) => void (said += text),
    interrupts: () => new AbortController().signal,
  };
  const paths = files.map((file) =>
    fileURLToPath(new URL(`fixtures/${file}`, import.meta.url))
  );
  const code = await runCli(["crd", ...paths], {
    terminal,
    commands: [crdCommand],
  });
  return { code, out, said };
}

function names(yaml: string): readonly unknown[] {
  return parseAllDocuments(yaml).map((document) =>
    document.getIn(["metadata", "name"])
  );
}

test("coracle crd prints each exported kind once", async () => {
  const { code, out, said } = await crd("kinds.ts");
  assert.equal(said, "");
  assert.equal(code, 0);
  assert.deepEqual(names(out), ["boats.test.coracle.dev"]);
  assert.match(out, /^ +seats:\n +type: integer\n +minimum: 1$/m);
});

test("coracle crd finds the kinds that are only registered", async () => {
  const { code, out } = await crd("registers.ts");
  assert.equal(code, 0);
  assert.deepEqual(names(out), ["boats.test.coracle.dev"]);
});

test("coracle crd prints a kind of several files once", async () => {
  const { out } = await crd("kinds.ts", "again.ts");
  assert.deepEqual(names(out), ["boats.test.coracle.dev"]);
});

test("coracle crd says what a file without kinds has instead", async () => {
  const { code, out, said } = await crd("nothing.ts");
  assert.equal(code, 2);
  assert.equal(out, "");
  assert.match(
    said,
    /^Cannot read the kinds of .*nothing\.ts: it defines none: .*received exports answer\n/,
  );
  assert.match(
    (await crd("main_only.ts")).said,
    /it exports none, and what import\.meta\.main guards.*received exports start\n/,
  );
});

test("coracle crd tells a missing file from one that is no module", async () => {
  assert.match(
    (await crd("nothign.ts")).said,
    /there is no such file: received .*nothign\.ts \(did you mean "nothing\.ts"\?\)/,
  );
  assert.match((await crd(".")).said, /it is not a file: received /);
  assert.match(
    (await crd("../../../../README.md")).said,
    /an operator is a JavaScript or TypeScript module: received /,
  );
});

test("coracle crd shows where a file that throws is broken", async () => {
  const { code, said } = await crd("throws.ts");
  assert.equal(code, 1);
  assert.match(said, /^TypeError: the file itself is broken\n[^]*throws\.ts:1/);
});
