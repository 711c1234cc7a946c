import assert from "node:assert/strict";
import { copyFile, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { PROJECT, runCommand } from "../support/child_process.ts";
import type { InstalledPackage } from "../support/installed_package.ts";
import { installPackage } from "../support/installed_package.ts";
import { packageJson, shippedSources } from "./shipped_files.ts";

const PACKAGE = packageJson();

let installed: InstalledPackage;

before(async () => {
  installed = await installPackage(Object.keys(PACKAGE.dependencies));
});

after(() => installed?.remove());

test("The tarball holds what is shipped, built and as source, and no more", () => {
  const expected = new Set([
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "package.json",
  ]);
  for (const source of shippedSources()) {
    const built = `dist/${source.replace(/\.ts$/, "")}`;
    expected.add(source);
    for (const ending of [".js", ".js.map", ".d.ts", ".d.ts.map"]) {
      expected.add(built + ending);
    }
  }
  assert.deepEqual(installed.files.toSorted(), [...expected].toSorted());
});

test("The installed command runs", async () => {
  const bin = join(installed.folder, "node_modules", ".bin", "coracle");
  assert((await stat(bin)).mode & 0o100, "not executable");
  assert.match(await readFile(bin, "utf8"), /^#!\/usr\/bin\/env node\n/);
  const { code, stdout } = await runCommand([bin, "--version"], {
    cwd: installed.folder,
    env: installed.env,
  });
  assert.equal(code, 0);
  assert.equal(stdout, `coracle ${PACKAGE.version}\n`);
});

test("A consumer's compiler finds the types of every entry point", async () => {
  await copyFile(
    join(PROJECT, "examples/webpage.ts"),
    join(installed.folder, "webpage.ts"),
  );
  const flags =
    "--noEmit --strict --module nodenext --target es2023 --types node";
  const types = join(PROJECT, "node_modules", "@types");
  const { code, stdout } = await runCommand(
    ["tsc", ...flags.split(" "), "--typeRoots", types, "webpage.ts"],
    { cwd: installed.folder, env: installed.env },
  );
  assert.equal(code, 0, stdout);
});

test("Every entry point loads on each runtime", async () => {
  const specifiers = Object.keys(PACKAGE.exports).map((entry) =>
    PACKAGE.name + entry.slice(1)
  );
  const script = `await Promise.all([${
    specifiers.map((name) => `import(${JSON.stringify(name)})`).join(", ")
  }]); console.log("loaded");`;
  const runtimes = [
    ["node", "--input-type=module", "--eval", script],
    ["deno", "eval", "--ext=js", script],
    ["bun", "--eval", script],
  ];
  for (const command of runtimes) {
    const { code, stdout, stderr } = await runCommand(command, {
      cwd: installed.folder,
      env: installed.env,
    });
    assert.equal(code, 0, `${command[0]}: ${stderr}`);
    assert.equal(stdout, "loaded\n");
  }
});
