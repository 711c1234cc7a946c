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
import { join, relative } from "node:path";
import { after, before, test } from "node:test";
import { Client, loadConfig } from "@coracle/operator/client";
import { tellWebPageStory } from "../scenarios/webpage/webpage_story.ts";
import { PROJECT, runCommand } from "../support/child_process.ts";
import {
  type Installation,
  installPackages,
} from "../support/installed_package.ts";
import { Program, runtimeCommand } from "../support/program.ts";
import { packageJson, shippedSources, WORKSPACE } from "./shipped_files.ts";

const PACKAGES = WORKSPACE.map((folder) => packageJson(folder));
const [, DEV] = PACKAGES;
/** Entry points of both packages as programs import them. */
const ENTRY_POINTS = PACKAGES.flatMap(({ name, exports }) =>
  Object.keys(exports).map((entry) => name + entry.slice(1))
);
const CHUNK = /^dist\/chunks\/\w+-\w+\.js$/;
/** Modules that the command line loads by their paths. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  dev: [
    "./dist/cli/main_file.js",
    "./dist/cli/check_worker.js",
    "./dist/cli/envtest/etcd.js",
  ],
};
/** Largest bytes of the tarball and of its files, and number of files. */
const LIMITS: Readonly<Record<string, readonly [number, number, number]>> = {
  "@coracle/operator": [670_000, 2_300_000, 375],
  "@coracle/dev": [575_000, 2_050_000, 185],
};

/** Both packages. */
let installed: Installation;
/** The operator package alone, as in an image. */
let production: Installation;

before(async () => {
  const both = await installPackages(WORKSPACE, ["."]);
  [installed, production] = both as [Installation, Installation];
}, { timeout: 180_000 });

after(async () => {
  await installed?.remove();
  await production?.remove();
});

test("Tarballs contain declarations and code that entry points need", () => {
  WORKSPACE.forEach((folder, index) => {
    const { exports, bin = {}, imports = {} } = PACKAGES[index]!;
    const files = installed.packages[index]!.files.map(({ path }) => path);
    const entryPoints = [
      ...Object.values(exports).map((paths) => paths["default"] ?? ""),
      ...Object.values(bin),
      ...PROGRAMS[folder] ?? [],
    ].map((path) => path.replace("./", ""));
    const expected = new Set([
      "AGENTS.md",
      "LICENSE",
      "README.md",
      "package.json",
      ...entryPoints,
      ...Object.values(imports).map((paths) => paths["module"]?.slice(2)),
    ]);
    for (const entry of entryPoints) {
      assert(files.includes(entry.replace(/js$/, "d.ts")), entry);
    }
    const declared = new Set(
      shippedSources(folder).map((file) =>
        join("dist", relative(folder, file)).replace(/ts$/, "d.ts")
      ),
    );
    const others = files.filter((file) =>
      !expected.delete(file) && !declared.has(file) && !CHUNK.test(file)
    );
    assert.deepEqual(others, []);
    assert.deepEqual([...expected], []);
  });
});

test("Tarballs are small", () => {
  for (const { name, files, size, unpackedSize } of installed.packages) {
    const [tarball, unpacked, count] = LIMITS[name]!;
    assert(size <= tarball, `${name}: ${size} bytes`);
    assert(unpackedSize <= unpacked, `${name}: ${unpackedSize} bytes of files`);
    assert(files.length <= count, `${name}: ${files.length} files`);
  }
});

test("npm runs no script of a package when it is installed", () => {
  const installing = ["preinstall", "install", "postinstall", "prepare"];
  for (const { scripts } of PACKAGES) {
    assert.deepEqual(
      Object.keys(scripts).filter((name) => installing.includes(name)),
      [],
    );
  }
});

test("The operator package alone refuses CEL and says what to install", async () => {
  const { folder, env } = production;
  const code = `
    import { celRules } from "@coracle/operator/workflows";
    await celRules([{ group: "a.dev", current: "true" }]).catch(({ message }) =>
      console.log(message));
  `;
  await writeFile(join(folder, "cel.mjs"), code);
  for (const runtime of ["node", "deno", "bun"] as const) {
    const command = [...runtimeCommand(runtime), "cel.mjs"];
    const { stdout, stderr } = await runCommand(command, { cwd: folder, env });
    assert.match(
      stdout,
      /must be installed: run "npm install @marc\S+ce/,
      stderr,
    );
  }
  const bundling = await runCommand([
    "esbuild",
    ...["cel.mjs", "--bundle", "--format=esm", "--platform=node"],
    ...["--outfile=bundle/cel.mjs", "--log-level=warning"],
  ], { cwd: folder, env });
  assert.deepEqual([bundling.code, bundling.stderr], [0, ""]);
});

test("esbuild bundles the operator without a warning", async () => {
  const { folder, env } = production;
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

test("The installed command runs, and keeps for the next start what Node compiled", async () => {
  const { folder, env } = installed;
  const bin = join(folder, "node_modules", ".bin", "coracle");
  assert((await stat(bin)).mode & 0o100, "not executable");
  assert.match(await readFile(bin, "utf8"), /^#!\/usr\/bin\/env node\n/);
  // Nothing can be written below a file.
  for (const temporary of [folder, bin]) {
    const { code, stdout, stderr } = await runCommand([bin, "--version"], {
      cwd: folder,
      env: { ...env, TMPDIR: temporary, NODE_COMPILE_CACHE: undefined },
    });
    assert.deepEqual({ code, stdout, stderr }, {
      code: 0,
      stdout: `coracle ${DEV?.version}\n`,
      stderr: "",
    });
  }
  assert((await stat(join(folder, "node-compile-cache"))).isDirectory());
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
  await writeFile(
    join(installed.folder, "entry_points.ts"),
    ENTRY_POINTS.map((name, index) =>
      `export * as entry${index} from ${JSON.stringify(name)};\n`
    ).join(""),
  );
  // Without `--skipLibCheck` the compiler reads all declarations.
  const flags =
    "--noEmit --strict --module nodenext --target es2023 --types node";
  const types = join(PROJECT, "node_modules", "@types");
  const { code, stdout } = await runCommand(
    [
      ...["tsc", ...flags.split(" "), "--typeRoots", types],
      ...["webpage.ts", "entry_points.ts"],
    ],
    { cwd: installed.folder, env: installed.env },
  );
  assert.equal(code, 0, stdout);
});

test("The example runs without the development package, and as a bundle", async () => {
  const { folder, env } = production;
  const kubeconfig = join(installed.folder, "kubeconfig");
  const bin = join(installed.folder, "node_modules", ".bin", "coracle");
  const cwd = folder;
  const server = new Program(
    [bin, "apiserver", "--port=0", `--kubeconfig=${kubeconfig}`, "--simulate"],
    { cwd: installed.folder, env },
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
  const script = `await Promise.all([${
    ENTRY_POINTS.map((name) => `import(${JSON.stringify(name)})`).join(", ")
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

test("Stack traces and inspected objects show the names of packed code", async () => {
  const { folder, env } = installed;
  const code = `
    import { Client, Informer } from "@coracle/operator";
    import { ConfigMap } from "@coracle/operator/kinds";
    for (const name of ${JSON.stringify(ENTRY_POINTS)}) {
      for (const [key, value] of Object.entries(await import(name))) {
        if (typeof value === "function" && value.name !== key) {
          console.log(name, key, value.name);
        }
      }
    }
    const client = new Client({ server: "http://127.0.0.1:1" });
    const informer = new Informer(client, ConfigMap);
    await informer.stop();
    try {
      informer.start();
    } catch ({ stack }) {
      console.log(stack);
    }
    try {
      new Client({ unknown: true });
    } catch ({ stack }) {
      console.log(stack);
    }
  `;
  await writeFile(join(folder, "names.mjs"), code);
  const { stdout } = await runCommand(["node", "names.mjs"], {
    cwd: folder,
    env,
  });
  assert.match(stdout, /^Error: Cannot start/, stdout);
  const frames = stdout.matchAll(/^ +at (.*) \(file:.*\/chunks\//gm);
  assert.deepEqual([...frames].map(([, name]) => name), [
    "#checkNotStopped",
    "Informer.start",
    "checkOptions",
    "clientSettings",
    "new Client",
  ]);
});

test("Both packages share one copy of the operator on each runtime", async () => {
  const { folder, env } = installed;
  const code = `
    import { ApiServer } from "@coracle/dev/apiserver";
    import { Client } from "@coracle/operator";
    const server = await ApiServer.start({ port: false });
    console.log(server.client instanceof Client);
    await server.stop();
  `;
  await writeFile(join(folder, "copies.mjs"), code);
  for (const runtime of ["node", "deno", "bun"] as const) {
    const command = [...runtimeCommand(runtime), "copies.mjs"];
    const { stdout, stderr } = await runCommand(command, { cwd: folder, env });
    assert.equal(stdout, "true\n", stderr);
  }
});
