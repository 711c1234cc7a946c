/**
 * Import rules of the source trees of both packages, for the lint rule that reports
 * a line and for the test that checks the whole graph.
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
const CACHE: readonly string[] = [
  ...CLIENT,
  "core/cache",
  "core/crd",
  "core/conversion",
];
const CORE: readonly string[] = [
  ...CACHE,
  "core/admission",
  "core/controller",
  "core/operator",
];
/** What every folder of `workflows` may import from outside. */
const OUTSIDE: readonly string[] = [...CORE, "core/kinds", "sources"];
/** The folders of `workflows`, each may import some before it. */
const WORKFLOWS: readonly string[] = [
  "workflows",
  "workflows/conditions",
  "workflows/kstatus",
  "workflows/dependents",
  "workflows/graph",
  "workflows/phases",
  "workflows/apply",
];

/**
 * Folders from which the files of a folder may import, beside their own; a
 * subfolder follows the rule of its parent. `core` stands for the files directly
 * in it: clock, logger, metrics and tracing.
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
  "core/crd": [...CLIENT, "core/kinds"],
  "core/conversion": [...CLIENT, "core/crd"],
  "core/admission": [...CLIENT, "core/crd", "core/conversion"],
  "core/controller": [...CACHE, "core/admission"],
  "core/operator": [...CACHE, "core/admission", "core/controller"],
  "sources": [...CORE, "core/kinds"],
  "workflows": [...OUTSIDE, ...WORKFLOWS],
  "workflows/conditions": OUTSIDE,
  "workflows/kstatus": [...OUTSIDE, "workflows/conditions"],
  "workflows/dependents": OUTSIDE,
  "workflows/graph": [
    ...OUTSIDE,
    "workflows/conditions",
    "workflows/dependents",
    "workflows/kstatus",
  ],
  "workflows/phases": [...OUTSIDE, "workflows/conditions"],
  "workflows/apply": [
    ...OUTSIDE,
    "workflows/dependents",
    "workflows/graph",
    "workflows/kstatus",
  ],
  "dev/apiserver": [],
  "dev/testing": ["dev/apiserver"],
  "dev/cli": ["dev/apiserver", "dev/testing"],
};

/** Entry points over several folders, and what each may export. */
const ENTRY_POINTS: Readonly<Record<string, readonly string[]>> = {
  "mod.ts": [...CORE, "sources", ...WORKFLOWS],
  "core/mod.ts": [...CORE, "core/client/mod.ts"],
  "core/client/mod.ts": [...CLIENT, "core/cache"],
  "core/internal.ts": CORE,
  "dev/mod.ts": ["dev/apiserver", "dev/testing"],
};

/** Entry points of the operator that the embedded API server may import. */
const FOR_SERVER: readonly string[] = ["client", "crd", "internal", "kinds"]
  .map((name) => `@coracle/operator/${name}`);
const FOR_TOOLS: readonly string[] = [
  ...FOR_SERVER,
  "@coracle/operator",
  "@coracle/operator/core",
];
/** Entry points that the folders of `dev` may import; others import none. */
const MAY_IMPORT_BY_NAME: Readonly<Record<string, readonly string[]>> = {
  "dev": FOR_TOOLS,
  "dev/apiserver": FOR_SERVER,
  "dev/testing": FOR_TOOLS,
  "dev/cli": FOR_TOOLS,
};

/** Folder of {@linkcode MAY_IMPORT} that a file belongs to. */
function folderOf(file: string): string | undefined {
  let folder = posix.dirname(file);
  while (!(folder in MAY_IMPORT) && folder !== ".") {
    folder = posix.dirname(folder);
  }
  return folder === "." ? undefined : folder;
}

/**
 * Reason why a file must not import another one, or an entry point of one of the
 * packages; undefined if it may.
 *
 * @param file Path of the importing file from the root of the project.
 * @param specifier Specifier as written; those of other packages are not checked.
 */
export function importFault(
  file: string,
  specifier: string,
): string | undefined {
  const entryPoint = ENTRY_POINTS[file];
  const folder = folderOf(file);
  if (entryPoint === undefined && folder === undefined) return undefined;
  if (specifier.startsWith("@coracle/")) {
    const allowed = MAY_IMPORT_BY_NAME[folder ?? posix.dirname(file)] ?? [];
    return allowed.includes(specifier)
      ? undefined
      : refusal(file, specifier, allowed);
  }
  if (!specifier.startsWith(".")) return undefined;
  const target = posix.join(posix.dirname(file), specifier);
  if (entryPoint?.includes(target)) return undefined;
  if (posix.basename(target) === "mod.ts") {
    return `Cannot import ${target} from ${file}: a mod.ts is for users, import the file that has the name`;
  }
  const from = folderOf(target);
  const allowed = entryPoint ?? [...MAY_IMPORT[folder ?? ""] ?? [], folder];
  if (from !== undefined && allowed.includes(from)) return undefined;
  return refusal(file, target, allowed);
}

function refusal(
  file: string,
  target: string,
  allowed: readonly (string | undefined)[],
): string {
  const known = allowed.filter((name) => name !== undefined).join(", ");
  return `Cannot import ${target} from ${file}: it may import only from ${
    known || "files of its package"
  }`;
}
