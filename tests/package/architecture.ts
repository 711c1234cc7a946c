/**
 * Which part of the tree may import which, said once for the lint rule that
 * tells it at the line and for the test that walks the whole graph.
 *
 * @module
 */

import { posix } from "node:path";

const BASE: readonly string[] = ["core"];
const API: readonly string[] = [...BASE, "core/api"];
const MIDDLE: readonly string[] = [
  ...API,
  "core/json",
  "core/queue",
  "core/patch",
  "core/config",
];
const CLIENT: readonly string[] = [...MIDDLE, "core/client"];
const CACHE: readonly string[] = [...CLIENT, "core/cache", "core/crd"];
const CORE: readonly string[] = [...CACHE, "core/controller", "core/operator"];

/**
 * What the files of a folder may import beside those of the same folder; a
 * folder within one of these counts as it. `core` stands for the files right in
 * it: clock, logger and metrics.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  "core": [],
  "core/api": BASE,
  "core/json": API,
  "core/queue": API,
  "core/patch": API,
  "core/config": API,
  "core/kinds": API,
  "core/client": MIDDLE,
  "core/cache": CLIENT,
  "core/crd": CLIENT,
  "core/controller": CACHE,
  "core/operator": [...CACHE, "core/controller"],
  "apiserver": [...CLIENT, "core/crd", "core/kinds"],
  "cli": [...CORE, "core/kinds", "apiserver"],
  "sources": [...CORE, "core/kinds"],
  "workflows": [...CORE, "core/kinds", "sources"],
  "testing": [...CLIENT, "core/crd", "core/kinds", "apiserver"],
};

/** The entry points of the rooms, and of which folders they show names. */
const ENTRY_POINTS: Readonly<Record<string, readonly string[]>> = {
  "mod.ts": ["core/mod.ts", "sources/mod.ts", "workflows/mod.ts"],
  "core/mod.ts": CORE,
};

/** Only here are all kinds together, and the command line finds them by name. */
const ALL_KINDS = "core/kinds/mod.ts";

/** The folder of {@linkcode MAY_IMPORT} that a file belongs to. */
function folderOf(file: string): string | undefined {
  let folder = posix.dirname(file);
  while (!(folder in MAY_IMPORT) && folder !== ".") {
    folder = posix.dirname(folder);
  }
  return folder === "." ? undefined : folder;
}

/**
 * Why a file must not import another one; undefined if it may.
 *
 * @param file The importing file, from the root of the project with slashes.
 * @param specifier What it imports, as written; only relative ones are judged.
 */
export function importFault(
  file: string,
  specifier: string,
): string | undefined {
  if (!specifier.startsWith(".")) return undefined;
  const target = posix.join(posix.dirname(file), specifier);
  const entryPoint = ENTRY_POINTS[file];
  const folder = folderOf(file);
  if (entryPoint === undefined && folder === undefined) return undefined;
  if (entryPoint?.includes(target)) return undefined;
  if (folder === "cli" && target === ALL_KINDS) return undefined;
  if (posix.basename(target) === "mod.ts") {
    return `Cannot import ${target} from ${file}: a mod.ts is for users, import the file that has the name`;
  }
  const from = folderOf(target);
  const allowed = entryPoint ?? [...MAY_IMPORT[folder ?? ""] ?? [], folder];
  if (from !== undefined && allowed.includes(from)) return undefined;
  const known = [...allowed].filter((name) => name !== undefined).join(", ");
  return `Cannot import ${target} from ${file}: it may import only from ${known}`;
}
