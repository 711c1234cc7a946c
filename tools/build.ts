/**
 * Builds `dist` of the packages from their sources: `npm run build`, or
 * `npm run build -- operator` and `npm run build -- dev` one of them.
 *
 * The compiler writes declarations file by file; those that an entry point needs
 * are copied. The code of all entry points of a package is bundled, with what
 * several of them share in chunks: a program that imports one loads a few dozen
 * files instead of hundreds, in a third of the time. What the sources import
 * dynamically stays a file of its own, loaded when needed. The development package
 * imports the operator package by its names, so that a process has one copy of it.
 *
 * Dependencies of the operator in CommonJS are imported by names such as `#yaml`,
 * which package.json resolves to the package, and for bundlers (condition `module`)
 * to a copy in `dist/vendor` that is an ES module: bundlers turn `require` of a
 * built-in module into an error at run time where there is no `require`.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import {
  cpSync,
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
  /** Files of the entry points; package.json as it is. */
  readonly exports: Readonly<
    Record<string, string | { readonly default: string }>
  >;
  readonly bin?: Readonly<Record<string, string>>;
  readonly imports?: Readonly<Record<string, { readonly default: string }>>;
}

/** Folders of the packages by their short names. */
const FOLDERS: Readonly<Record<string, string>> = { operator: ".", dev: "dev" };

/** Modules that are loaded by their paths, in processes of the command line. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  dev: [
    "./dist/cli/main_file.js",
    "./dist/cli/check_worker.js",
    "./dist/cli/envtest/etcd.js",
  ],
};

/** Exports of the copied dependencies. */
const VENDORED: Readonly<Record<string, string>> = {
  "#undici": `export { default } from "undici/lib/dispatcher/client.js";`,
  "#ws": `export * from "ws";`,
  "#yaml": `export * from "yaml";`,
};

/** Where the compiler writes the declarations of all sources. */
const DECLARATIONS = ".cache/declarations";

const root = fileURLToPath(new URL("..", import.meta.url));
process.chdir(root);

const names = process.argv.slice(2);
for (const name of names) {
  if (name in FOLDERS) continue;
  const known = Object.keys(FOLDERS).join(" or ");
  process.stderr.write(
    `Cannot build: a package is ${known}: received ${name}\n`,
  );
  process.exit(2);
}
rmSync(DECLARATIONS, { recursive: true, force: true });
run(
  "npm",
  ...["run", "--silent", "tsc", "--", "--noCheck", "--emitDeclarationOnly"],
  ...["--rootDir", ".", "--outDir", DECLARATIONS],
);
for (const name of names.length > 0 ? names : Object.keys(FOLDERS)) build(name);

function run(command: string, ...args: readonly string[]): void {
  const shell = process.platform === "win32";
  execFileSync(command, args, { stdio: "inherit", shell });
}

/** Builds one package. */
function build(name: string): void {
  const folder = FOLDERS[name] ?? name;
  const { exports, bin = {}, imports = {} } = JSON.parse(
    readFileSync(join(folder, "package.json"), "utf8"),
  ) as Package;
  // The sources that package.json and the command line want as built files.
  const entryPoints = [
    ...Object.values(exports).flatMap((paths) =>
      typeof paths === "string" ? [] : paths.default
    ),
    ...Object.values(bin),
    ...PROGRAMS[name] ?? [],
  ].map((built) => built.replace("./dist/", "").replace(/\.js$/, ".ts"));
  const dist = join(folder, "dist");
  rmSync(dist, { recursive: true, force: true });
  copyDeclarations(folder, entryPoints);
  const options = [
    "--target=node22",
    `--outdir=${dist}`,
    "--log-level=warning",
  ];
  run(
    "esbuild",
    ...entryPoints.map((entry) => join(folder, entry)),
    ...["--bundle", "--splitting", "--format=esm", "--platform=node"],
    ...["--packages=external", `--outbase=${folder}`],
    "--chunk-names=chunks/[name]-[hash]",
    ...options,
  );
  const outputs = globSync(`${dist}/**/*.js`);
  for (const file of outputs) {
    writeFileSync(file, linked(readFileSync(file, "utf8"), imports));
  }
  // Without indentation the package is smaller by a fifth; names and lines stay for
  // stack traces.
  run(
    "esbuild",
    ...outputs,
    ...["--minify-whitespace", "--minify-syntax", "--line-limit=250"],
    ...[`--outbase=${dist}`, "--allow-overwrite"],
    ...options,
  );
  for (const dependency of Object.keys(imports)) vendor(dependency);
}

/** Copies the declarations of the entry points with those that they import. */
function copyDeclarations(
  folder: string,
  entryPoints: readonly string[],
): void {
  const from = join(DECLARATIONS, folder);
  const seen = new Set<string>();
  const visit = (path: string): void => {
    const file = join(from, path);
    if (seen.has(path) || !existsSync(file)) return;
    seen.add(path);
    cpSync(file, join(folder, "dist", path));
    const text = readFileSync(file, "utf8");
    for (
      const [, other = ""] of text.matchAll(/["'](\.{1,2}\/[^"']+)\.[jt]s["']/g)
    ) {
      visit(join(dirname(path), `${other}.d.ts`));
    }
  };
  for (const entry of entryPoints) visit(entry.replace(/\.ts$/, ".d.ts"));
}

/** Code with the names of copied dependencies, and without needless imports. */
function linked(
  code: string,
  imports: NonNullable<Package["imports"]>,
): string {
  let text = code;
  for (const [name, { default: path }] of Object.entries(imports)) {
    text = text.replaceAll(`from "${path}"`, `from "${name}"`)
      .replaceAll(`import("${path}")`, `import("${name}")`);
  }
  // They only keep the order of side effects, and no file has any.
  return text.replaceAll(/^import "\.[^"]*";\n/gm, "");
}

/** Writes the copy of a dependency. */
function vendor(name: string): void {
  const entry = VENDORED[name];
  if (entry === undefined) {
    throw new Error(`Cannot build: the exports of ${name} must be listed`);
  }
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
    // Of the two builds of the parser one is enough: that without SIMD runs on all
    // processors, and responses are parsed as fast.
    ...(name === "#undici"
      ? [
        "--define:esbuildDetection=1",
        "--external:../web/*",
        "--external:*/llhttp_simd-wasm.js",
      ]
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
