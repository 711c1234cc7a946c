/**
 * Builds `dist` of the packages from their sources: `npm run build`, or
 * `npm run build -- operator` and `npm run build -- dev` one of them.
 *
 * The compiler writes declarations file by file; `declarations.ts` selects those
 * that an entry point needs. The code of all entry points of a package is bundled, with what
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
import { neededDeclarations } from "./declarations.ts";

/** The part of package.json that says what there is to build. */
interface Package {
  readonly name: string;
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

/** Imports, as esbuild writes them: first in a file, or first of a module in it. */
const IMPORTS =
  /^((?:\/\/ [\w./-]+\n)?)((?:import (?:[\w$]+(?:, )?)?(?:\{[^}]*\}|\* as [\w$]+)?(?: from )?"[^"]+";\n)+)/gm;
/** Exports, as esbuild writes them: last in a file. */
const EXPORTS = /(?:^|\n)export \{[^}]*\};\s*$/;
/** A list of names that a declaration file exports from another one. */
const REEXPORT = /^export (?:type )?\{([^}]*)\} from "([^"]+)"/gm;
const NAMED_TWICE = /^var (\w+) = class _\1\b/gm;
/** What stands for the mark of a private name, in code and in texts. */
const PRIVATE = "private$";
const PRIVATE_NAME = /(?<![\w"'`/\\#&])#(?=[A-Za-z_])/g;

/** Entry point that is not for users. */
const INTERNAL = "./internal";

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
  const { name: specifier, exports, bin = {}, imports = {} } = JSON.parse(
    readFileSync(join(folder, "package.json"), "utf8"),
  ) as Package;
  // The sources that package.json and the command line want as built files.
  const sourceOf = (built: string): string =>
    built.replace("./dist/", "").replace(/\.js$/, ".ts");
  const entryPoints = Object.entries(exports).flatMap(([subpath, paths]) =>
    typeof paths === "string"
      ? []
      : { file: sourceOf(paths.default), isPublic: subpath !== INTERNAL }
  );
  for (const built of [...Object.values(bin), ...PROGRAMS[name] ?? []]) {
    entryPoints.push({ file: sourceOf(built), isPublic: false });
  }
  const dist = join(folder, "dist");
  rmSync(dist, { recursive: true, force: true });
  writeDeclarations(
    folder,
    entryPoints,
    reexported(specifier + INTERNAL.slice(1)),
  );
  const options = [
    "--target=node22",
    `--outdir=${dist}`,
    "--log-level=warning",
  ];
  run(
    "esbuild",
    ...entryPoints.map(({ file }) => join(folder, file)),
    ...["--bundle", "--splitting", "--format=esm", "--platform=node"],
    ...["--packages=external", `--outbase=${folder}`],
    "--chunk-names=chunks/[name]-[hash]",
    ...options,
  );
  // Without indentation and long names of local variables the package is smaller by
  // a third. Stack traces keep the names of functions, classes and methods, which
  // `partsOf` hides from the compiler.
  const outputs = globSync(`${dist}/**/*.js`).map((file) => {
    const parts = partsOf(linked(readFileSync(file, "utf8"), imports));
    writeFileSync(file, parts.body);
    return { file, ...parts };
  });
  run(
    "esbuild",
    ...outputs.map(({ file }) => file),
    ...["--minify", "--line-limit=250"],
    ...[`--outbase=${dist}`, "--allow-overwrite"],
    ...options,
  );
  for (const { file, imported, exported } of outputs) {
    const body = readFileSync(file, "utf8").replaceAll(PRIVATE, "#");
    writeFileSync(file, `${imported}${body}${exported}`);
  }
  for (const dependency of Object.keys(imports)) vendor(dependency);
}

/** Writes the declarations that the entry points need; docs for public ones only. */
function writeDeclarations(
  folder: string,
  entryPoints: readonly { readonly file: string; readonly isPublic: boolean }[],
  reexported: readonly string[],
): void {
  const from = join(DECLARATIONS, folder);
  const declared = entryPoints.map(({ file, isPublic }) => ({
    file: file.replace(/\.ts$/, ".d.ts"),
    isPublic,
  }));
  const declarations = neededDeclarations({
    read(path) {
      const file = join(from, path);
      return existsSync(file) ? readFileSync(file, "utf8") : undefined;
    },
    entryPoints: declared.map(({ file }) => file),
    undocumented: declared.filter(({ isPublic }) => !isPublic)
      .map(({ file }) => file),
    reexported,
  });
  for (const [path, text] of declarations) {
    const file = join(folder, "dist", path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

/** Names that modules of the packages export from another package. */
function reexported(specifier: string): readonly string[] {
  const names: string[] = [];
  for (const file of globSync(`${DECLARATIONS}/**/*.d.ts`)) {
    const text = readFileSync(file, "utf8");
    for (const [, list = "", from] of text.matchAll(REEXPORT)) {
      if (from === specifier) {
        names.push(...list.match(/\w+(?= *(?:,|as |$))/g) ?? []);
      }
    }
  }
  return names;
}

/**
 * Parts of a bundled file. The compiler gets only the body: in a text without
 * imports and exports it leaves the names of the top level as they are, and it
 * takes private names for public ones.
 */
function partsOf(code: string): {
  readonly imported: string;
  readonly body: string;
  readonly exported: string;
} {
  if (code.includes(PRIVATE)) {
    throw new Error(`Cannot build: a file contains ${PRIVATE}`);
  }
  let [imported = ""] = /^(?:#!.*\n)?/.exec(code) ?? [];
  let exported = "";
  const body = withOwnNames(code.slice(imported.length))
    .replaceAll(IMPORTS, (_, module: string, statements: string) => {
      imported += compact(statements);
      return module;
    })
    .replace(EXPORTS, (statement) => {
      exported = compact(statement);
      return "";
    })
    .replaceAll(PRIVATE_NAME, PRIVATE);
  return { imported, body, exported };
}

/**
 * Code whose classes have their names: esbuild turns one that mentions itself into
 * `var Client = class _Client`.
 */
function withOwnNames(code: string): string {
  let text = code;
  for (const [head, name = ""] of code.matchAll(NAMED_TWICE)) {
    text = text.replace(head, `class ${name}`)
      .replaceAll(new RegExp(`\\b_${name}\\b`, "g"), name);
  }
  return text;
}

/** Import or export statements without needless white space. */
function compact(statements: string): string {
  return statements.replaceAll(/\s+/g, " ").replaceAll(/ ?([{},;"]) ?/g, "$1");
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
