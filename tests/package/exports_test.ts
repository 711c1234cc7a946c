import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { publint } from "publint";
import { VERSION } from "../../dev/cli/version.ts";
import { PROJECT, runCommand } from "../support/child_process.ts";
import {
  denoJson,
  packageJson,
  packageOf,
  projectText,
  WORKSPACE,
} from "./shipped_files.ts";

const PACKAGES = WORKSPACE.map((folder) => ({
  folder,
  npm: packageJson(folder),
  jsr: denoJson(folder),
}));
const [OPERATOR, DEV] = PACKAGES.map(({ npm }) => npm);

test("package.json and deno.json have the same name, version and license", () => {
  for (const { npm, jsr } of PACKAGES) {
    for (const field of ["name", "version", "license"] as const) {
      assert.equal(npm[field], jsr[field]);
    }
  }
});

test("The development package needs the operator package of its own version", () => {
  assert.deepEqual(DEV?.peerDependencies, {
    "@coracle/operator": OPERATOR?.version,
  });
  assert.equal(DEV.version, OPERATOR?.version);
  assert.equal(
    denoJson("dev").imports["@coracle/operator"],
    `jsr:@coracle/operator@${OPERATOR?.version}`,
  );
});

test("VERSION is the version of the package", () => {
  assert.equal(VERSION, DEV?.version);
});

test("The changelog has a section for the version or for unreleased changes", () => {
  const changelog = projectText("CHANGELOG.md");
  const [, heading] = /^## (\S+)/m.exec(changelog) ?? [];
  assert(heading === "Unreleased" || heading === OPERATOR?.version, heading);
});

test("package.json and deno.json export the same entry points", () => {
  for (const { npm, jsr } of PACKAGES) {
    assert.deepEqual(Object.keys(npm.exports), Object.keys(jsr.exports));
    for (const [entry, source] of Object.entries(jsr.exports)) {
      const built = source.replace("./", "./dist/").replace(/\.ts$/, "");
      assert.deepEqual(npm.exports[entry], {
        "@coracle/source": source,
        types: `${built}.d.ts`,
        default: `${built}.js`,
      });
    }
  }
});

test("Tools can import package.json, which has the version", () => {
  for (const { folder } of PACKAGES) {
    const { exports } = JSON.parse(projectText(join(folder, "package.json")));
    assert.equal(exports["./package.json"], "./package.json");
  }
});

test("publint finds no fault in the packages", async () => {
  for (const { folder } of PACKAGES) {
    const { messages } = await publint({
      pkgDir: join(PROJECT, folder),
      pack: "npm",
      strict: true,
    });
    assert.deepEqual(messages, [], folder);
  }
});

test("Every exported and executable file exists, as source and as built", () => {
  for (const { folder, npm } of PACKAGES) {
    const files = [
      ...Object.values(npm.exports).flatMap((paths) => Object.values(paths)),
      ...Object.values(npm.bin ?? {}),
    ];
    for (const file of files) {
      assert(existsSync(join(PROJECT, folder, file)), `${folder} ${file}`);
    }
  }
});

test("CommonJS can require every entry point", async () => {
  const code = PACKAGES.flatMap(({ folder, npm }) =>
    Object.values(npm.exports).map(({ default: file = "" }) =>
      `require(${JSON.stringify(join(PROJECT, folder, file))});`
    )
  ).join("\n");
  // The built packages, as a user without the sources has them.
  const { code: exit, stderr } = await runCommand(["node", "-e", code], {
    env: { NODE_OPTIONS: undefined },
  });
  assert.equal(exit, 0, stderr);
});

test("Dependencies have the same versions for npm and JSR", () => {
  for (const { npm, jsr } of PACKAGES) {
    const versions = { ...npm.peerDependencies, ...npm.dependencies };
    for (const [bare, mapped] of Object.entries(jsr.imports)) {
      if (bare.startsWith("@coracle/")) continue;
      const name = packageOf(bare);
      const path = bare.slice(name.length);
      // A folder of a package, as import maps have it.
      const root = path === "/" ? "/" : "";
      assert.equal(mapped, `npm:${root}${name}@${versions[name]}${path}`);
    }
  }
});

test("Names of copied dependencies lead to installed packages outside of bundles", () => {
  for (const { folder, npm } of PACKAGES) {
    for (const paths of Object.values(npm.imports ?? {})) {
      const { module = "", default: installed = "" } = paths;
      assert(existsSync(join(PROJECT, folder, module)), module);
      assert(packageOf(installed) in npm.dependencies, installed);
    }
  }
});

test("Every entry point begins with a module doc", () => {
  for (const { folder, jsr } of PACKAGES) {
    for (const source of Object.values(jsr.exports)) {
      const text = projectText(join(folder, source));
      const [, doc = ""] = /^(?:\/\/.*\n)*\/\*\*([^]*?)\*\//.exec(text) ?? [];
      assert.match(doc, /@module/, source);
    }
  }
});
