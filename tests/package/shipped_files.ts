/**
 * Shipped files, read from the package's lists, and their imports, read by the
 * compiler that resolves them.
 *
 * @module
 */

import { globSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { PROJECT, runCommand } from "../support/child_process.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

/** Part of package.json that the tests read. */
export interface PackageJson {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly exports: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly scripts: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly imports?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<
    Record<string, { readonly optional: boolean }>
  >;
  readonly devDependencies: Readonly<Record<string, string>>;
}

/** Folders of the packages that are published to npm and JSR. */
export const WORKSPACE: readonly string[] = [".", "dev"];

/** Part of deno.json that the tests read. */
export interface DenoJson {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly exports: Readonly<Record<string, string>>;
  readonly imports: Readonly<Record<string, string>>;
  readonly publish: { readonly include: readonly string[] };
}

/** Import of a shipped file. */
export interface ShippedImport {
  readonly file: string;
  readonly specifier: string;
}

/** Reads a file of the project as text. */
export function projectText(path: string): string {
  return readFileSync(join(PROJECT, path), "utf8");
}

/** package.json of a package; its exports are the entry points, without itself. */
export function packageJson(folder = "."): PackageJson {
  const { exports, ...others } = JSON.parse(
    projectText(join(folder, "package.json")),
  );
  const { "./package.json": _itself, ...entryPoints } = exports;
  return { exports: entryPoints, ...others };
}

/** deno.json of a package. */
export function denoJson(folder = "."): DenoJson {
  return JSON.parse(projectText(join(folder, "deno.json")));
}

/** The source files that packages ship, from the root of the project. */
export function shippedSources(
  ...folders: readonly string[]
): readonly string[] {
  const patterns = (folders.length === 0 ? WORKSPACE : folders)
    .flatMap((folder) =>
      denoJson(folder).publish.include.map((entry) =>
        posix.join(folder, entry.endsWith(".ts") ? entry : `${entry}/**/*.ts`)
      )
    );
  return globSync(patterns, { cwd: PROJECT })
    .map((file) => file.replaceAll("\\", "/")).toSorted();
}

/** Every import in files that packages ship, of types, literal dynamic ones too. */
export async function shippedImports(): Promise<readonly ShippedImport[]> {
  const root = pathToFileURL(PROJECT).href.replace(/\/?$/, "/");
  const shipped = new Set(shippedSources());
  const entries = WORKSPACE.flatMap((folder) =>
    Object.values(denoJson(folder).exports).map((path) =>
      `import ${JSON.stringify(`${root}${posix.join(folder, path)}`)};\n`
    )
  );
  // One module that imports all entry points, since they share most files.
  const all = writeText(temporaryFolder(), "all.ts", entries.join(""));
  const { code, stdout, stderr } = await runCommand(
    ["deno", "info", "--json", `--config=${join(PROJECT, "deno.json")}`, all],
  );
  if (code !== 0) throw new Error(`deno info: ${stderr}`);
  const { modules } = JSON.parse(stdout) as {
    modules: {
      specifier: string;
      error?: string;
      dependencies?: { specifier: string }[];
    }[];
  };
  return modules.flatMap(({ specifier, error, dependencies = [] }) => {
    if (error !== undefined) throw new Error(`${specifier}: ${error}`);
    if (!specifier.startsWith(root)) return [];
    const file = decodeURI(specifier.slice(root.length));
    if (!shipped.has(file)) return [];
    return dependencies.map((one) => ({ file, specifier: one.specifier }));
  });
}

/** The package that a bare specifier names, without a path in it. */
export function packageOf(specifier: string): string {
  return specifier.split("/").slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

/** Whether the run writes the lists instead of comparing them. */
export function updating(): boolean {
  return process.env["UPDATE"] === "1";
}
