import assert from "node:assert/strict";
import { globSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { PROJECT, runCommand } from "../support/child_process.ts";
import { needsOwnProcess } from "../support/own_process.ts";
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

const RELATIVE_IMPORT = /^import( type)? \{([^}]*)\} from "(\.\.?\/[^"]+)";$/gm;

/** Sources of the entry points by their names. */
function entryPoints(): ReadonlyMap<string, string> {
  return new Map(WORKSPACE.flatMap((folder) => {
    const { name, exports } = denoJson(folder);
    return Object.entries(exports).map(([entry, source]) =>
      [name + entry.slice(1), join(folder, source)] as const
    );
  }));
}

/** Part of a documented declaration; a `reference` leads to another package. */
interface Declaration {
  readonly location: { readonly filename: string };
  readonly def?: { readonly target?: { readonly filename: string } };
}

/** Names that an entry point exports, types too, and the files that declare them. */
type Names = ReadonlyMap<string, readonly string[]>;

/** URL of a file that is given from the root of the project. */
function hrefOf(path: string): string {
  return pathToFileURL(join(PROJECT, path)).href;
}

/** The names of each entry point. */
async function surface(): Promise<ReadonlyMap<string, Names>> {
  const entries = entryPoints();
  const { code, stdout, stderr } = await runCommand(
    ["deno", "doc", "--json", ...entries.values()],
  );
  assert.equal(code, 0, stderr);
  const { nodes } = JSON.parse(stdout) as {
    readonly nodes: Readonly<
      Record<string, {
        readonly symbols: readonly {
          readonly name: string;
          readonly declarations: readonly Declaration[];
        }[];
      }>
    >;
  };
  return new Map(Array.from(entries, ([entry, source]) => {
    const names = new Map<string, readonly string[]>();
    for (const { name, declarations } of nodes[hrefOf(source)]?.symbols ?? []) {
      const files = declarations.map(({ location, def }) =>
        def?.target?.filename ?? location.filename
      );
      names.set(name, [...names.get(name) ?? [], ...files]);
    }
    return [entry, names];
  }));
}

const SURFACE = await surface();

test("Each entry point exports the names in surface.json and no others", () => {
  const actual = Object.fromEntries(
    [...SURFACE].filter(([entry]) => entry !== INTERNAL)
      .map(([entry, names]) => [entry, [...names.keys()].toSorted()]),
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
  const exported = SURFACE.get(INTERNAL)?.keys() ?? [];
  assert.deepEqual([...exported].toSorted(), [...used].toSorted());
});

test("A test imports by an inner path only names that no entry point exports", () => {
  const entryOf = new Map<string, string>();
  for (const [entry, source] of entryPoints()) {
    if (entry === INTERNAL) continue;
    const own = hrefOf(source);
    for (const [name, files] of SURFACE.get(entry) ?? []) {
      for (const file of [...files, own]) {
        entryOf.set(`${name} of ${file}`, entry);
      }
    }
  }
  const faults: string[] = [];
  for (const file of globSync("tests/**/*_test.ts", { cwd: PROJECT })) {
    const text = projectText(file);
    // Alone in its process, it would pay for all that the entry point loads.
    const isAlone = needsOwnProcess(text);
    for (const match of text.matchAll(RELATIVE_IMPORT)) {
      const [, type, list = "", specifier = ""] = match;
      const path = posix.join(posix.dirname(file), specifier);
      for (const text of list.split(",").map((one) => one.trim())) {
        const isType = type !== undefined || text.startsWith("type ");
        if (isAlone && !isType) continue;
        const name = text.replace(/^type /, "").replace(/ as .*/, "");
        const entry = entryOf.get(`${name} of ${hrefOf(path)}`);
        if (entry === undefined) continue;
        faults.push(`${file}: import ${name} from ${entry}, not ${path}`);
      }
    }
  }
  assert.deepEqual(faults, []);
});
