import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runCommand } from "../support/child_process.ts";
import {
  denoJson,
  projectText,
  shippedSources,
  updating,
  WORKSPACE,
} from "./shipped_files.ts";

const LIST = new URL("./surface.json", import.meta.url);

/** Entry point without a promise. */
const INTERNAL = "@coracle/operator/internal";

const INTERNAL_IMPORT =
  /^(?:import|export)(?: type)? \{([^}]*)\} from "@coracle\/operator\/internal";$/gm;

/** Sources of the entry points by their names. */
function entryPoints(): ReadonlyMap<string, string> {
  return new Map(WORKSPACE.flatMap((folder) => {
    const { name, exports } = denoJson(folder);
    return Object.entries(exports).map(([entry, source]) =>
      [name + entry.slice(1), join(folder, source)] as const
    );
  }));
}

/** The names that an entry point exports, types too. */
async function namesOf(source: string): Promise<readonly string[]> {
  const { code, stdout, stderr } = await runCommand(
    ["deno", "doc", "--json", source],
  );
  assert.equal(code, 0, stderr);
  return exportedNames(JSON.parse(stdout));
}

/** The names that each entry point with a promise exports. */
async function surface(): Promise<Record<string, readonly string[]>> {
  const names: Record<string, readonly string[]> = {};
  for (const [entry, source] of entryPoints()) {
    if (entry !== INTERNAL) names[entry] = await namesOf(source);
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

test("The internal entry point exports what the development package uses", async () => {
  const used = new Set(
    shippedSources("dev").flatMap((file) =>
      [...projectText(file).matchAll(INTERNAL_IMPORT)]
        .flatMap(([, names = ""]) => names.split(","))
        .map((name) => name.trim().replace(/^type /, "").replace(/ as .*/, ""))
    ),
  );
  used.delete("");
  assert(used.size > 10, `only ${used.size} names were found`);
  const source = entryPoints().get(INTERNAL) ?? "";
  assert.deepEqual(await namesOf(source), [...used].toSorted());
});
