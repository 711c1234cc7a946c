/**
 * Compiles an operator against the packed declarations, with the least version of
 * TypeScript that `docs/versions.md` states: `npm run test:typescript`, or other
 * versions: `npm run test:typescript -- 5.7 5.9`.
 *
 * A version comes from npm into `.cache` once. The operator is the web page
 * example, beside a program that imports all entry points; the compiler reads all
 * declarations, so without `--skipLibCheck`.
 *
 * @module
 */
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { PROJECT, runCommand } from "../support/child_process.ts";
import { commandLine } from "../support/command_line.ts";
import { installPackages } from "../support/installed_package.ts";
import { packageJson } from "./shipped_files.ts";

const FLAGS = [
  ...["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022"],
  ...["--types", "node"],
  ...["--typeRoots", join(PROJECT, "node_modules", "@types")],
];
const LIMIT_MS = 180_000;

/** The least version of TypeScript, as users read it. */
async function leastVersion(): Promise<string> {
  const page = await readFile(join(PROJECT, "docs/versions.md"), "utf8");
  const [, version] = /needs TypeScript (\d+\.\d+)\s+or\s+later/.exec(page) ??
    [];
  if (version !== undefined) return version;
  throw new Error("Cannot compile: docs/versions.md states no version");
}

/** Path of a compiler, which npm installs into the cache once. */
async function compiler(version: string): Promise<string> {
  const folder = join(PROJECT, ".cache", `typescript-${version}`);
  await mkdir(folder, { recursive: true });
  const { code, stderr } = await runCommand([
    ...["npm", "install", `--prefix=${folder}`, "--prefer-offline"],
    ...["--no-audit", "--no-fund", "--ignore-scripts", "--no-save"],
    `typescript@${version}`,
  ], { cwd: folder, env: { NODE_OPTIONS: undefined }, limit: LIMIT_MS });
  if (code !== 0) throw new Error(`Cannot install TypeScript: ${stderr}`);
  return join(folder, "node_modules/typescript/lib/tsc.js");
}

const { positionals } = commandLine("compile an operator", {}, "versions");
const versions = positionals.length > 0 ? positionals : [await leastVersion()];
for (const version of versions) {
  if (/^\d+\.\d+(?:\.\d+)?$/.test(version)) continue;
  throw new Error(
    `Cannot compile an operator: write a version such as 5.9: received ${version}`,
  );
}
const [installed] = await installPackages(["."]);
if (installed === undefined) throw new Error("Cannot compile: no package");
const { folder, env, remove } = installed;
try {
  const { name, exports } = packageJson(".");
  const specifiers = Object.keys(exports).filter((entry) =>
    !entry.endsWith(".json")
  ).map((entry) => name + entry.slice(1));
  await writeFile(
    join(folder, "entry_points.ts"),
    specifiers.map((specifier, index) =>
      `export * as e${index} from "${specifier}";\n`
    ).join(""),
  );
  await copyFile(
    join(PROJECT, "examples/webpage.ts"),
    join(folder, "webpage.ts"),
  );
  for (const version of versions) {
    const tsc = [process.execPath, await compiler(version)];
    const asked = await runCommand([...tsc, "--version"], { env });
    const { code, stdout, stderr } = await runCommand(
      [...tsc, ...FLAGS, "webpage.ts", "entry_points.ts"],
      { cwd: folder, env, limit: LIMIT_MS },
    );
    process.stdout.write(
      `TypeScript ${asked.stdout.trim().replace("Version ", "")}: ${
        code === 0 ? "compiles" : `does not compile\n${stdout}${stderr}`
      }\n`,
    );
    if (code !== 0) process.exitCode = 1;
  }
} finally {
  await remove();
}
