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

/** Error of Node with a code. */
type NodeError = Error & { readonly code: string };

/** A loaded operator file with the operators that it has created. */
export interface OperatorModule {
  /** Path of the file as the user wrote it. */
  readonly file: string;
  /** Operators that the file has created so far, in order of creation. */
  readonly operators: readonly OperatorHandle[];
  /**
   * Exports of the file; resolves when the module has been evaluated. A file that
   * awaits `operator.run()` is evaluated when its operator has stopped.
   */
  readonly exports: Promise<Readonly<Record<string, unknown>>>;
}

/**
 * Resolves the path of an operator file.
 *
 * @param file Path as the user wrote it.
 * @returns The absolute path.
 * @throws {UsageError} If the file does not exist or is not a module.
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
 * Imports an operator file and collects the operators that it creates. The
 * process stays in development mode afterwards, since a file may create
 * operators at any time.
 *
 * @param file Path as the user wrote it.
 * @param options Whether the operators run, and callbacks for them.
 * @throws {UsageError} If the file does not exist or is not a module.
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

/** Error of loading a file, with a known cause explained. */
function loadError(file: string, error: unknown): unknown {
  // Only Node checks the extension; versions before 22.19 do not strip types.
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
  // In packages made by `npm init`, .ts and .js files are not ES modules to Node.
  if (
    !(error instanceof SyntaxError) ||
    !/import statement outside a module/.test(error.message)
  ) return error;
  const extension = extname(file);
  const renamed = `${basename(file, extension)}.m${extension.slice(1)}`;
  return new UsageError(
    `Cannot load ${file}: it is an ES module, but its package.json does not say so: run "npm pkg set type=module" or rename it to ${renamed}: received ${error.message}`,
  );
}

/**
 * Imports an operator file without running its operators.
 *
 * @param file Path as the user wrote it.
 * @returns The module, after it has been evaluated.
 * @throws {UsageError} If the file does not exist or is not a module.
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
 * Kinds that a file defines: those that its operators reconcile and those that
 * it exports.
 *
 * @throws {UsageError} If the file defines no kind.
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
      `Cannot read the kinds of ${module.file}: it exports no kind, and code behind import.meta.main runs only when the file is the main module: export the result of defineKind: received ${
        exportsText(exports)
      }`,
    );
  }
  throw new UsageError(
    `Cannot read the kinds of ${module.file}: it defines no kind: export the result of defineKind, or register it with an Operator: received ${
      exportsText(exports)
    }`,
  );
}

function isKind(value: unknown): value is ResolvedKind {
  return typeof value === "object" && value !== null && "kind" in value &&
    typeof value.kind === "string";
}

/**
 * Checks that a file has created an operator.
 *
 * @throws {UsageError} If it has not.
 */
export async function requireOperator(
  module: OperatorModule,
  exports: Readonly<Record<string, unknown>>,
): Promise<void> {
  if (module.operators.length > 0) return;
  if (await isGuarded(module)) {
    throw new UsageError(
      `Cannot run ${module.file}: it creates no operator when it is imported, because code behind import.meta.main runs only when the file is the main module: run the file itself with KUBECONFIG set to the file that "coracle apiserver" writes, or remove the guard`,
    );
  }
  throw new UsageError(
    `Cannot run ${module.file}: it creates no operator: write "const operator = new Operator()", register a kind with it, and end with "await operator.run()": received ${
      exportsText(exports)
    }`,
  );
}

/** Whether a file has code that runs only when it is the main module. */
async function isGuarded({ file }: OperatorModule): Promise<boolean> {
  return (await readFile(file, "utf8")).includes("import.meta.main");
}

/** Maximum number of exports that an error message names. */
const MAX_NAMES = 5;

/** Exports of a file, for an error message. */
function exportsText(exports: Readonly<Record<string, unknown>>): string {
  const names = Object.keys(exports);
  if (names.length === 0) return "no exports";
  const more = names.length - MAX_NAMES;
  const named = names.slice(0, MAX_NAMES).join(", ");
  return `exports ${named}${more > 0 ? ` and ${more} more` : ""}`;
}
