import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { VERSION } from "../../cli/version.ts";
import { PROJECT, runCommand } from "../support/child_process.ts";
import {
  denoJson,
  packageJson,
  packageOf,
  projectText,
} from "./shipped_files.ts";

const NPM = packageJson();
const JSR = denoJson();

test("package.json and deno.json have the same name, version and license", () => {
  for (const field of ["name", "version", "license"] as const) {
    assert.equal(NPM[field], JSR[field]);
  }
});

test("VERSION is the version of the package", () => {
  assert.equal(VERSION, NPM.version);
});

test("The changelog has a section for the version or for unreleased changes", () => {
  const changelog = projectText("CHANGELOG.md");
  const [, heading] = /^## (\S+)/m.exec(changelog) ?? [];
  assert(heading === "Unreleased" || heading === NPM.version, heading);
});

test("package.json and deno.json export the same entry points", () => {
  assert.deepEqual(Object.keys(NPM.exports), Object.keys(JSR.exports));
  for (const [entry, source] of Object.entries(JSR.exports)) {
    const built = source.replace("./", "./dist/").replace(/\.ts$/, "");
    assert.deepEqual(NPM.exports[entry], {
      "@coracle/source": source,
      types: `${built}.d.ts`,
      default: `${built}.js`,
    });
  }
});

test("Every exported and executable file exists, as source and as built", () => {
  const files = [
    ...Object.values(NPM.exports).flatMap((paths) => Object.values(paths)),
    ...Object.values(NPM.bin),
  ];
  for (const file of files) {
    assert(existsSync(join(PROJECT, file)), file);
  }
});

test("CommonJS can require every entry point", async () => {
  const code = Object.values(NPM.exports).map(({ default: file = "" }) =>
    `require(${JSON.stringify(join(PROJECT, file))});`
  ).join("\n");
  const { code: exit, stderr } = await runCommand(["node", "-e", code]);
  assert.equal(exit, 0, stderr);
});

test("Dependencies have the same versions for npm and JSR", () => {
  for (const [bare, mapped] of Object.entries(JSR.imports)) {
    const name = packageOf(bare);
    const path = bare.slice(name.length);
    assert.equal(mapped, `npm:${name}@${NPM.dependencies[name]}${path}`);
  }
});

test("Names of copied dependencies lead to installed packages outside of bundles", () => {
  for (const paths of Object.values(NPM.imports)) {
    const { module = "", default: installed = "" } = paths;
    assert(existsSync(join(PROJECT, module)), module);
    assert(packageOf(installed) in NPM.dependencies, installed);
  }
});

test("Every entry point begins with a module doc", () => {
  for (const source of Object.values(JSR.exports)) {
    const [, doc = ""] =
      /^(?:\/\/.*\n)*\/\*\*([^]*?)\*\//.exec(projectText(source)) ?? [];
    assert.match(doc, /@module/, source);
  }
});
