import { readdir, readFile, stat } from "node:fs/promises";
import { basename, dirname, extname, resolve } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import type { ResolvedKind } from "../core/api/kind.ts";
import type { DefinedKind } from "../core/crd/kind_definition.ts";
import { isDefinedKind } from "../core/crd/kind_definition.ts";
import type {
  Development,
  OperatorHandle,
} from "../core/operator/development.ts";
import { setDevelopment } from "../core/operator/development.ts";
import { UsageError } from "./command.ts";
import { suggestion } from "./suggestion.ts";

const MODULE_REGEXP = /\.[cm]?[jt]sx?$/;

/** An error of Node itself. */
type NodeError = Error & { readonly code: string };

/** A file that is being loaded, and what it has made so far. */
export interface OperatorModule {
  /** The file as the user wrote it. */
  readonly file: string;
  /** The operators that the file has made, in order; it grows meanwhile. */
  readonly operators: readonly OperatorHandle[];
  /**
   * What the file exports, once it has run to its end; a file that awaits
   * `operator.run()` ends when its operator stops.
   */
  readonly exports: Promise<Readonly<Record<string, unknown>>>;
}

/**
 * Finds an operator file.
 *
 * @param file Its path as the user wrote it.
 * @returns Its full path.
 * @throws {UsageError} If there is no such file, or it is no module.
 */
export async function findOperatorFile(file: string): Promise<string> {
  const path = resolve(file);
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || !found.isFile()) {
    const near = await modulesBeside(path);
    throw new UsageError(
      `Cannot load ${file}: ${
        found === undefined ? "there is no such file" : "it is not a file"
      }: received ${path}${suggestion(basename(path), near)}`,
    );
  }
  if (!MODULE_REGEXP.test(path)) {
    throw new UsageError(
      `Cannot load ${file}: an operator is a JavaScript or TypeScript module: received ${path}`,
    );
  }
  return path;
}

async function modulesBeside(path: string): Promise<readonly string[]> {
  const names = await readdir(dirname(path)).catch(() => []);
  return names.filter((name) => MODULE_REGEXP.test(name));
}

/**
 * Loads an operator file as its runtime would, and learns of the operators in
 * it. From here on the process is in development; it cannot be undone, since a
 * file may make operators at any time.
 *
 * @param file Its path as the user wrote it.
 * @param options Whether its operators run, and who is told of them.
 * @throws {UsageError} If there is no such file, or it is no module.
 */
export async function loadOperatorModule(
  file: string,
  options: Omit<Development, "operatorMade">,
): Promise<OperatorModule> {
  const path = await findOperatorFile(file);
  const operators: OperatorHandle[] = [];
  setDevelopment({
    ...options,
    operatorMade: (operator) => void operators.push(operator),
  });
  // deno-lint-ignore coracle/literal-import -- the user names the file
  const exports = import(pathToFileURL(path).href)
    .catch((error) => {
      throw loadError(file, error);
    });
  return { file, operators, exports };
}

/** What went wrong while a file was loaded, in the user's words if need be. */
function loadError(file: string, error: unknown): unknown {
  // Only Node looks at the extension, and older ones know no types.
  const { code, message } = Object(error) as Partial<NodeError>;
  if (
    code === "ERR_UNKNOWN_FILE_EXTENSION" &&
    message?.endsWith(`for ${resolve(file)}`)
  ) {
    return new UsageError(
      `Cannot load ${file}: this Node does not run ${
        extname(file)
      } files: .ts needs Node 22.19 or later, Deno or Bun: received Node ${process.versions.node}`,
    );
  }
  // `npm init` makes packages whose .ts and .js files are no ES modules to Node.
  if (
    !(error instanceof SyntaxError) ||
    !/import statement outside a module/.test(error.message)
  ) return error;
  const extension = extname(file);
  const renamed = `${basename(file, extension)}.m${extension.slice(1)}`;
  return new UsageError(
    `Cannot load ${file}: it is an ES module, and its package.json says that it is none, so run "npm pkg set type=module" or rename it to ${renamed}: received ${error.message}`,
  );
}

/**
 * Loads an operator file only to see what it has: its operators do not run.
 *
 * @param file Its path as the user wrote it.
 * @returns Once the file has run to its end.
 * @throws {UsageError} If there is no such file, or it is no module.
 */
export async function readOperatorModule(
  file: string,
): Promise<OperatorModule> {
  try {
    const module = await loadOperatorModule(file, { runs: false });
    await module.exports;
    return module;
  } finally {
    setDevelopment(undefined);
  }
}

/**
 * The kinds that a file defines: those that its operators reconcile, and those
 * that it exports.
 *
 * @throws {UsageError} If there are none.
 */
export async function definedKinds(
  module: OperatorModule,
): Promise<readonly DefinedKind[]> {
  const exports = await module.exports;
  const registered = module.operators.flatMap((operator) =>
    operator.controllers.map((controller) => controller.kind)
  );
  const kinds = new Set<DefinedKind>();
  for (const candidate of [...registered, ...Object.values(exports)]) {
    if (isKind(candidate) && isDefinedKind(candidate)) kinds.add(candidate);
  }
  if (kinds.size > 0) return [...kinds];
  if (await isGuarded(module)) {
    throw new UsageError(
      `Cannot read the kinds of ${module.file}: it exports none, and what import.meta.main guards, such as an operator, runs only where the file is started itself: export what defineKind gives: received ${
        exportsText(exports)
      }`,
    );
  }
  throw new UsageError(
    `Cannot read the kinds of ${module.file}: it defines none: export what defineKind gives, or register it with an Operator: received ${
      exportsText(exports)
    }`,
  );
}

function isKind(value: unknown): value is ResolvedKind {
  return typeof value === "object" && value !== null && "kind" in value &&
    typeof value.kind === "string";
}

/**
 * Refuses a file that has no operator.
 *
 * @throws {UsageError} If it has made none while it was loaded.
 */
export async function requireOperator(
  module: OperatorModule,
  exports: Readonly<Record<string, unknown>>,
): Promise<void> {
  if (module.operators.length > 0) return;
  if (await isGuarded(module)) {
    throw new UsageError(
      `Cannot run ${module.file}: it makes no operator here, since what import.meta.main guards runs only where the file is started itself: start it with KUBECONFIG set to what "coracle apiserver" writes, or take the guard away: received import.meta.main, which is false`,
    );
  }
  throw new UsageError(
    `Cannot run ${module.file}: it makes no operator: write "const operator = new Operator()", register a kind with it, and end with "await operator.run()": received ${
      exportsText(exports)
    }`,
  );
}

/** Whether a file does something only where it is started itself. */
async function isGuarded({ file }: OperatorModule): Promise<boolean> {
  return (await readFile(file, "utf8")).includes("import.meta.main");
}

/** How many exports an error message names. */
const MOST_NAMES = 5;

/** What a file exports, for an error message. */
function exportsText(exports: Readonly<Record<string, unknown>>): string {
  const names = Object.keys(exports);
  if (names.length === 0) return "no exports";
  const more = names.length - MOST_NAMES;
  const named = names.slice(0, MOST_NAMES).join(", ");
  return `exports ${named}${more > 0 ? ` and ${more} more` : ""}`;
}
