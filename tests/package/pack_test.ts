import assert from "node:assert/strict";
import { copyFile, readFile, stat } from "node:fs/promises";
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

test("The tarball contains the shipped files, built and as source, and no others", () => {
  const expected = new Set([
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "package.json",
  ]);
  for (const source of shippedSources()) {
    const built = `dist/${source.replace(/\.ts$/, "")}`;
    expected.add(source);
    for (const ending of [".d.ts", ".d.ts.map"]) expected.add(built + ending);
  }
  const entryPoints = [
    ...Object.values(PACKAGE.exports).map((paths) => paths["default"] ?? ""),
    ...Object.values(PACKAGE.bin),
    "./dist/cli/main_file.js",
  ].map((path) => path.replace("./", ""));
  const { files } = installed;
  // Chunks are named by what is in them.
  const chunks = files.filter((file) => CHUNK.test(file));
  for (const built of [...entryPoints, ...chunks]) {
    expected.add(built).add(`${built}.map`);
  }
  assert.deepEqual(files.toSorted(), [...expected].toSorted());
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

test("The example runs from the installed package on each runtime", async () => {
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
    const client = new Client(await loadConfig({ kubeconfig }));
    for (const runtime of ["node", "deno", "bun"] as const) {
      const command = [...runtimeCommand(runtime), "webpage.ts"];
      const operator = new Program(command, {
        cwd,
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
