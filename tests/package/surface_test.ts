import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { PROJECT, runCommand } from "../support/child_process.ts";
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

/** The names that each entry point exports, types too. */
async function surface(): Promise<ReadonlyMap<string, readonly string[]>> {
  const entries = entryPoints();
  const { code, stdout, stderr } = await runCommand(
    ["deno", "doc", "--json", ...entries.values()],
  );
  assert.equal(code, 0, stderr);
  const { nodes } = JSON.parse(stdout) as {
    readonly nodes: Readonly<
      Record<string, { readonly symbols: readonly { readonly name: string }[] }>
    >;
  };
  return new Map(Array.from(entries, ([entry, source]) => {
    const { href } = pathToFileURL(join(PROJECT, source));
    const names = nodes[href]?.symbols.map(({ name }) => name) ?? [];
    return [entry, [...new Set(names)].toSorted()];
  }));
}

const SURFACE = await surface();

test("Each entry point exports the names in surface.json and no others", () => {
  const actual = Object.fromEntries(
    [...SURFACE].filter(([entry]) => entry !== INTERNAL),
  );
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

test("The internal entry point exports what the development package uses", () => {
  const used = new Set(
    shippedSources("dev").flatMap((file) =>
      [...projectText(file).matchAll(INTERNAL_IMPORT)]
        .flatMap(([, names = ""]) => names.split(","))
        .map((name) => name.trim().replace(/^type /, "").replace(/ as .*/, ""))
    ),
  );
  used.delete("");
  assert(used.size > 10, `only ${used.size} names were found`);
  assert.deepEqual(SURFACE.get(INTERNAL), [...used].toSorted());
});
