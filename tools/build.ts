/**
 * Builds `dist` from the sources: `npm run build`.
 *
 * The compiler writes declarations file by file. The code of all entry points
 * is bundled, with what several of them share in chunks: a program that imports
 * one loads a few dozen files instead of hundreds, in a third of the time. What
 * the sources import dynamically stays a file of its own, loaded when needed.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** The part of package.json that says what there is to build. */
interface Package {
  readonly exports: Readonly<Record<string, { readonly default: string }>>;
  readonly bin: Readonly<Record<string, string>>;
}

const root = fileURLToPath(new URL("..", import.meta.url));
process.chdir(root);

function run(command: string, ...args: readonly string[]): void {
  const shell = process.platform === "win32";
  execFileSync(command, args, { stdio: "inherit", shell });
}

/** The source that `package.json` wants to have as a built file. */
function sourceOf(built: string): string {
  return built.replace("./dist/", "").replace(/\.js$/, ".ts");
}

const { exports, bin } = JSON.parse(
  readFileSync("package.json", "utf8"),
) as Package;
const entryPoints = [
  ...Object.values(exports).map((paths) => paths.default),
  ...Object.values(bin),
].map(sourceOf);
/** Loaded by path, in processes that the command line starts. */
entryPoints.push("cli/main_file.ts");

rmSync("dist", { recursive: true, force: true });
run(
  "npm",
  ...["run", "--silent", "tsc", "--", "--noCheck"],
  ...["--emitDeclarationOnly", "--declarationMap"],
  ...["--rootDir", ".", "--outDir", "dist"],
);
run(
  "esbuild",
  ...entryPoints,
  "--bundle",
  "--splitting",
  "--format=esm",
  "--packages=external",
  "--platform=node",
  "--target=node22",
  "--sourcemap",
  // The sources are in the package.
  "--sources-content=false",
  "--outdir=dist",
  "--outbase=.",
  "--chunk-names=chunks/[name]-[hash]",
  "--log-level=warning",
);
