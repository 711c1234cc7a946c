import assert from "node:assert/strict";
import {
  copyFile,
  mkdtemp,
  readFile,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Client } from "../../core/client/client.ts";
import { loadConfig } from "../../core/config/load_config.ts";
import { tellWebPageStory } from "../scenarios/webpage/webpage_story.ts";
import { PROJECT, runCommand } from "../support/child_process.ts";
import type { InstalledPackage } from "../support/installed_package.ts";
import { installPackage } from "../support/installed_package.ts";
import { Program, runtimeCommand } from "../support/program.ts";
import { packageJson, shippedSources } from "./shipped_files.ts";

const PACKAGE = packageJson();
const CHUNK = /^dist\/chunks\/\w+-\w+\.js$/;

let installed: InstalledPackage;

before(async () => {
  installed = await installPackage(Object.keys(PACKAGE.dependencies));
});

after(() => installed?.remove());

test("The tarball contains declarations and code that entry points need", () => {
  const { files } = installed;
  const entryPoints = [
    ...Object.values(PACKAGE.exports).map((paths) => paths["default"] ?? ""),
    ...Object.values(PACKAGE.bin),
    "./dist/cli/main_file.js",
    "./dist/cli/check_worker.js",
    "./dist/cli/envtest/etcd.js",
  ].map((path) => path.replace("./", ""));
  const expected = new Set([
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "package.json",
    ...entryPoints,
    ...Object.values(PACKAGE.imports).map((paths) => paths["module"]?.slice(2)),
  ]);
  for (const entry of entryPoints) {
    assert(files.includes(entry.replace(/js$/, "d.ts")), entry);
  }
  const declared = new Set(
    shippedSources().map((file) => `dist/${file.replace(/ts$/, "d.ts")}`),
  );
  const others = files.filter((file) =>
    !expected.delete(file) && !declared.has(file) && !CHUNK.test(file)
  );
  assert.deepEqual(others, []);
  assert.deepEqual([...expected], []);
});

test("The tarball is small", () => {
  const { files, size, unpackedSize } = installed;
  assert(size <= 1_200_000, `${size} bytes`);
  assert(unpackedSize <= 4_100_000, `${unpackedSize} bytes of files`);
  assert(files.length <= 1000, `${files.length} files`);
});

test("npm runs no script of the package when it is installed", () => {
  const installing = ["preinstall", "install", "postinstall", "prepare"];
  assert.deepEqual(
    Object.keys(PACKAGE.scripts).filter((name) => installing.includes(name)),
    [],
  );
});

test("esbuild bundles the package without a warning", async () => {
  const { folder, env } = installed;
  await copyFile(
    join(PROJECT, "examples/webpage.ts"),
    join(folder, "webpage.ts"),
  );
  const { code, stderr } = await runCommand([
    "esbuild",
    "webpage.ts",
    "--bundle",
    "--format=esm",
    "--platform=node",
    "--outfile=bundle/webpage.mjs",
    "--log-level=warning",
  ], { cwd: folder, env });
  assert.equal(code, 0, stderr);
  assert.equal(stderr, "");
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

test("The installed command runs a file as the main module", async () => {
  const { folder, env } = installed;
  const bin = join(folder, "node_modules", ".bin", "coracle");
  await writeFile(
    join(folder, "guarded.mjs"),
    `import { Operator } from "@coracle/operator";
if (import.meta.main) {
  const operator = new Operator({ probes: { port: 8099 } });
  operator.register({ group: "", version: "v1", kind: "Pod" }, { reconcile() {} });
  await operator.run();
}
`,
  );
  const { code, stdout, stderr } = await runCommand(
    [bin, "manifests", "guarded.mjs", "--image=a"],
    { cwd: folder, env },
  );
  assert.equal(code, 0, stderr);
  assert.match(stdout, /containerPort: 8099/);
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

test("The example runs as it is and as a bundle on each runtime", async () => {
  const { folder, env } = installed;
  const kubeconfig = join(folder, "kubeconfig");
  const bin = join(folder, "node_modules", ".bin", "coracle");
  const cwd = folder;
  const server = new Program(
    [bin, "apiserver", "--port=0", `--kubeconfig=${kubeconfig}`, "--simulate"],
    { cwd, env },
  );
  try {
    await server.says(/Serving on https:/);
    await copyFile(
      join(PROJECT, "examples/webpage.ts"),
      join(folder, "webpage.ts"),
    );
    // A bundle needs no package beside it.
    const alone = await mkdtemp(join(tmpdir(), "coracle-bundle-"));
    const bundle = join(alone, "webpage.mjs");
    await copyFile(join(folder, "bundle", "webpage.mjs"), bundle);
    const client = new Client(await loadConfig({ kubeconfig }));
    for (
      const command of [
        [...runtimeCommand("node"), "webpage.ts"],
        [...runtimeCommand("deno"), "webpage.ts"],
        [...runtimeCommand("bun"), "webpage.ts"],
        [...runtimeCommand("node"), bundle],
        [...runtimeCommand("deno"), bundle],
        [...runtimeCommand("bun"), bundle],
      ]
    ) {
      const operator = new Program(command, {
        cwd: command.includes(bundle) ? alone : cwd,
        env: { ...env, KUBECONFIG: kubeconfig },
      });
      try {
        await operator.says(/Operator started/);
        await tellWebPageStory(client, "default");
        assert.equal(await operator.end("SIGTERM"), 0, operator.describe());
      } finally {
        await operator.kill();
      }
    }
    await client.close();
    await rm(alone, { recursive: true, force: true });
    assert.equal(await server.end("SIGTERM"), 0, server.describe());
  } finally {
    await server.kill();
  }
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
