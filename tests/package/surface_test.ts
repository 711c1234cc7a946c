import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { runCommand } from "../support/child_process.ts";
import { denoJson, projectText, updating } from "./shipped_files.ts";

const LIST = new URL("./surface.json", import.meta.url);

/** The names that each entry point exports, types too. */
async function surface(): Promise<Record<string, readonly string[]>> {
  const names: Record<string, readonly string[]> = {};
  for (const [entry, source] of Object.entries(denoJson().exports)) {
    const { code, stdout, stderr } = await runCommand(
      ["deno", "doc", "--json", source],
    );
    assert.equal(code, 0, stderr);
    names[entry] = exportedNames(JSON.parse(stdout));
  }
  return names;
}

/** Kinds are many and generated: their list would only repeat the generator. */
function exportedNames(doc: {
  readonly nodes: Readonly<
    Record<string, { readonly symbols: readonly { readonly name: string }[] }>
  >;
}): readonly string[] {
  const names = Object.values(doc.nodes).flatMap(({ symbols }) =>
    symbols.map((symbol) => symbol.name)
  );
  return [...new Set(names)].toSorted();
}

test("Each entry point exports the names in surface.json and no others", async () => {
  const actual = await surface();
  if (updating()) {
    writeFileSync(LIST, `${JSON.stringify(actual, null, 2)}\n`);
  }
  const expected = JSON.parse(projectText("tests/package/surface.json"));
  assert.deepEqual(
    actual,
    expected,
    "if the change is wanted: UPDATE=1 npm run test:package, and a line in CHANGELOG.md",
  );
});
