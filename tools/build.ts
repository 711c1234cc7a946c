/**
 * Builds `dist` from the sources: `npm run build`.
 *
 * The compiler writes declarations file by file; those that no entry point needs
 * are removed. The code of all entry points is bundled, with what several of them
 * share in chunks: a program that imports one loads a few dozen files instead of
 * hundreds, in a third of the time. What the sources import dynamically stays a
 * file of its own, loaded when needed.
 *
 * Dependencies in CommonJS are imported by names such as `#yaml`, which
 * package.json resolves to the package, and for bundlers (condition `module`) to a
 * copy in `dist/vendor` that is an ES module: bundlers turn `require` of a built-in
 * module into an error at run time where there is no `require`.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import {
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** The part of package.json that says what there is to build. */
interface Package {
  readonly exports: Readonly<Record<string, { readonly default: string }>>;
  readonly bin: Readonly<Record<string, string>>;
  readonly imports: Readonly<Record<string, { readonly default: string }>>;
}

/** Exports of the copied dependencies. */
const VENDORED: Readonly<Record<string, string>> = {
  "#undici": `export { default } from "undici/lib/dispatcher/client.js";`,
  "#ws": `export * from "ws";`,
  "#yaml": `export * from "yaml";`,
};

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

const { exports, bin, imports } = JSON.parse(
  readFileSync("package.json", "utf8"),
) as Package;
const entryPoints = [
  ...Object.values(exports).map((paths) => paths.default),
  ...Object.values(bin),
  // Loaded by their paths, in processes that the command line starts.
  "./dist/cli/main_file.js",
  "./dist/cli/check_worker.js",
  "./dist/cli/envtest/etcd.js",
].map(sourceOf);

rmSync("dist", { recursive: true, force: true });
run(
  "npm",
  ...["run", "--silent", "tsc", "--", "--noCheck", "--emitDeclarationOnly"],
  ...["--rootDir", ".", "--outDir", "dist"],
);
removeUnneededDeclarations();
run(
  "esbuild",
  ...entryPoints,
  "--bundle",
  "--splitting",
  "--format=esm",
  "--packages=external",
  "--platform=node",
  "--target=node22",
  "--outdir=dist",
  "--outbase=.",
  "--chunk-names=chunks/[name]-[hash]",
  "--log-level=warning",
);
const outputs = globSync("dist/**/*.js");
for (const file of outputs) {
  writeFileSync(file, linked(readFileSync(file, "utf8")));
}
// Without indentation the package is smaller by an eighth; names and lines stay
// for stack traces.
run(
  "esbuild",
  ...outputs,
  "--minify-whitespace",
  "--line-limit=100",
  "--target=node22",
  "--outdir=dist",
  "--outbase=dist",
  "--allow-overwrite",
  "--log-level=warning",
);
for (const [name, entry] of Object.entries(VENDORED)) vendor(name, entry);

/** Removes the declarations that those of the entry points do not import. */
function removeUnneededDeclarations(): void {
  const needed = new Set<string>();
  const visit = (file: string): void => {
    if (needed.has(file) || !existsSync(file)) return;
    needed.add(file);
    const text = readFileSync(file, "utf8");
    for (
      const [, path = ""] of text.matchAll(/["'](\.{1,2}\/[^"']+)\.[jt]s["']/g)
    ) {
      visit(join(dirname(file), `${path}.d.ts`));
    }
  };
  for (const entry of entryPoints) {
    visit(join("dist", entry.replace(/\.ts$/, ".d.ts")));
  }
  for (const file of globSync("dist/**/*.d.ts")) {
    if (!needed.has(file)) rmSync(file);
  }
}

/** Code with the names of copied dependencies, and without needless imports. */
function linked(code: string): string {
  let text = code;
  for (const [name, { default: path }] of Object.entries(imports)) {
    text = text.replaceAll(`from "${path}"`, `from "${name}"`)
      .replaceAll(`import("${path}")`, `import("${name}")`);
  }
  // They only keep the order of side effects, and no file has any.
  return text.replaceAll(/^import "\.[^"]*";\n/gm, "");
}

/** Writes the copy of a dependency. */
function vendor(name: string, entry: string): void {
  const file = `dist/vendor/${name.slice(1)}.js`;
  const bundle = (input: string, ...options: readonly string[]): string =>
    execFileSync("esbuild", [
      "--bundle",
      "--format=esm",
      "--platform=node",
      "--target=node22",
      ...options,
    ], { input, encoding: "utf8", maxBuffer: 2 ** 26 });
  const code = bundle(
    entry,
    ...["--external:bufferutil", "--external:utf-8-validate"],
    // The entry point of yaml for browsers is an ES module.
    ...(name === "#yaml" ? ["--platform=browser"] : []),
    // As in Node itself without undici's experimental parser, and without its forms.
    ...(name === "#undici"
      ? ["--define:esbuildDetection=1", "--external:../web/*"]
      : []),
  ).replaceAll(
    /__require\("([\w/:]+)"\)/g,
    (call, module: string) =>
      isBuiltin(module) ? `process.getBuiltinModule("${module}")` : call,
  );
  const folder = name.slice(1);
  const license = readFileSync(`node_modules/${folder}/LICENSE`, "utf8");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(
    file,
    `/*! ${folder}\n${license.trimEnd()}\n*/\n${
      bundle(code, "--minify", "--packages=external")
    }`,
  );
}
