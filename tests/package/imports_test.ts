import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { isBuiltin } from "node:module";
import { test } from "node:test";
import { PROJECT } from "../support/child_process.ts";
import { importFault } from "./architecture.ts";
import {
  denoJson,
  packageJson,
  packageOf,
  projectText,
  shippedImports,
  shippedSources,
  WORKSPACE,
} from "./shipped_files.ts";

const IMPORTS = await shippedImports();

/** Files that may import a package; elsewhere it would be loaded needlessly. */
const OWNERS: Readonly<Record<string, RegExp>> = {
  // Rules of CRDs and health checks in CEL; both load it with the first expression.
  "@marcbachmann/cel-js":
    /^(?:dev\/apiserver\/|workflows\/kstatus\/cel_rules\.ts$)/,
};

test("Imports of shipped files follow the direction of the arrows", () => {
  const faults = IMPORTS.map(({ file, specifier }) =>
    importFault(file, specifier)
  );
  assert.deepEqual(faults.filter((fault) => fault !== undefined), []);
});

test("Bare imports of shipped files are mapped for JSR and installed by npm", () => {
  for (const folder of WORKSPACE) {
    const own = new Set(shippedSources(folder));
    const imports = IMPORTS.filter(({ file }) => own.has(file));
    const mapped = Object.keys(denoJson(folder).imports);
    const { dependencies, peerDependencies } = packageJson(folder);
    const installed = Object.keys({ ...dependencies, ...peerDependencies });
    assert.deepEqual(
      [...new Set(mapped.map(packageOf))].toSorted(),
      installed.toSorted(),
    );
    for (const { file, specifier } of imports) {
      if (/^\.{1,2}\//.test(specifier) || isBuiltin(specifier)) continue;
      const name = specifier.startsWith("@coracle/")
        ? packageOf(specifier)
        : specifier;
      const isMapped = mapped.some((one) =>
        one.endsWith("/") ? name.startsWith(one) : name === one
      );
      assert(isMapped, `${file} imports ${specifier}`);
    }
  }
});

test("Examples and their tests import no private file of the project", () => {
  for (const file of globSync("examples/*.ts", { cwd: PROJECT })) {
    assert.doesNotMatch(
      projectText(file),
      /from "\.\.\/|import\("\.\.\//,
      file,
    );
  }
});

test("Built-in modules are imported with the node: prefix", () => {
  for (const { file, specifier } of IMPORTS) {
    if (!isBuiltin(specifier)) continue;
    assert.match(specifier, /^node:/, `${file} imports ${specifier}`);
  }
});

test("Packages are imported only where they belong", () => {
  for (const { file, specifier } of IMPORTS) {
    const owner = OWNERS[packageOf(specifier)];
    if (owner === undefined) continue;
    assert.match(file, owner, `${file} imports ${specifier}`);
  }
});
