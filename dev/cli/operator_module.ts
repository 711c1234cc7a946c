import { realpathSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { basename, dirname, extname, resolve } from "node:path";
import process from "node:process";
import { setInterval } from "node:timers";
import { pathToFileURL } from "node:url";
import type { OperatorHandle, OperatorOptions } from "@coracle/operator/core";
import { type OperatorHooks, replaceHost } from "@coracle/operator/internal";
import {
  exportedOperators,
  type Exports,
  type FoundOperators,
} from "../testing/check/exported_operators.ts";
import { loadError } from "../testing/check/load_error.ts";
import { suggestion, UsageError } from "./command.ts";
import { loadedFiles } from "./loaded_files.ts";

/** Interval of checks whether the main module is being loaded, in milliseconds. */
const MAIN_CHECK_MS = 10;
const MODULE_REGEXP = /\.[cm]?[jt]sx?$/;

/** A loaded operator file with the operators that it has created. */
export interface OperatorModule {
  /** Path of the file as the user wrote it. */
  readonly file: string;
  /** Operators that the file has created so far, in order of creation. */
  readonly operators: readonly OperatorHandle[];
  /**
   * Exports of the file; the promise resolves when the module has been
   * evaluated. A file that awaits `operator.run()` is evaluated when its
   * operator has stopped.
   */
  readonly exports: Promise<Exports>;
  /** Whether the file is the main module of this process. */
  readonly isMain: boolean;
  /** Ends the observation of new operators. */
  release(): void;
}

/** Options for the description of an operator file. */
export interface DescribeOptions {
  /** Value of `--export`. */
  readonly export: string | undefined;
  /** Whether the file must have operators, and not just kinds. */
  readonly operators: boolean;
}

/** Flag `--export`, of the commands that load an operator file. */
export const EXPORT_FLAG = {
  "export NAME": "export that is the operator, or a function that returns it",
} as const;

/**
 * Resolves the path of an operator file.
 *
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
 * Imports an operator file and collects the operators that it creates, until it
 * is released, since a file may create operators at any time.
 *
 * @throws {UsageError} If the file does not exist or is not a module.
 */
export async function loadOperatorModule(
  file: string,
  options: Omit<OperatorHooks, "made">,
): Promise<OperatorModule> {
  const path = await findOperatorFile(file);
  const operators: OperatorHandle[] = [];
  const release = replaceHost({
    operators: {
      ...options,
      made: (operator) => void operators.push(operator),
    },
  });
  const exports = importModule(path).catch((error) => {
    throw importError(file, error, options.runs);
  });
  return { file, operators, exports, isMain: false, release };
}

/**
 * Collects the operators of a file that this process will run as its main
 * module. Must be called in a preloaded module.
 */
export function loadMainModule(
  file: string,
  options: Omit<OperatorHooks, "made">,
): OperatorModule {
  const operators: OperatorHandle[] = [];
  const loaded = Promise.withResolvers<Exports>();
  // The module is in the loader's cache then: an import before it began would
  // take its place as the main module.
  const path = realpathSync(file);
  const begun = () => {
    clearInterval(timer);
    void importModule(file).then(loaded.resolve, loaded.reject);
  };
  process.once("beforeExit", begun);
  // A file whose timers keep the process alive may only export a function.
  const timer = setInterval(() => {
    if (loadedFiles().has(path)) begun();
  }, MAIN_CHECK_MS).unref();
  const release = replaceHost({
    operators: {
      ...options,
      made(operator) {
        operators.push(operator);
        setImmediate(begun);
      },
    },
  });
  const { promise: exports } = loaded;
  exports.catch(() => {}); // Reported where it is awaited.
  return { file, operators, exports, isMain: true, release };
}

async function importModule(path: string): Promise<Exports> {
  // deno-lint-ignore coracle/literal-import -- the user names the file
  return await import(pathToFileURL(path).href);
}

/** Error of loading a file, with a known cause explained. */
function importError(file: string, error: unknown, runs: boolean): unknown {
  // Only Node checks the extension; versions before 22.19 do not strip types.
  const { code, message } = Object(error) as Partial<
    Error & { readonly code: string }
  >;
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
  ) {
    // A file that runs its operator is evaluated until that fails.
    return runs && message?.startsWith("Cannot ")
      ? error
      : loadError(file, error);
  }
  const extension = extname(file);
  const renamed = `${basename(file, extension)}.m${extension.slice(1)}`;
  return new UsageError(
    `Cannot load ${file}: it is an ES module, but its package.json does not say so: run "npm pkg set type=module" or rename it to ${renamed}: received ${error.message}`,
  );
}

/**
 * Operators of a file that has been evaluated, by {@linkcode exportedOperators}.
 *
 * @param name Value of `--export`.
 * @param options Options for a function that returns an operator.
 * @throws {UsageError} If the export does not exist or is not an operator.
 */
export async function selectOperators(
  module: Omit<OperatorModule, "release">,
  name: string | undefined,
  options: OperatorOptions,
): Promise<FoundOperators> {
  const exports = await module.exports;
  const { operators } = module;
  // A main module that has created its operators has called its functions.
  const calls = !module.isMain || operators.length === 0;
  const found = await exportedOperators(exports, {
    made: operators,
    name,
    argument: options,
    calls,
  });
  if (name !== undefined && found.operators.length === 0) {
    if (name in exports && !calls) return { ...found, operators };
    throw new UsageError(
      `Cannot run ${module.file}: --export must name an Operator or a function that returns one: received ${found.received}`,
    );
  }
  return found;
}

/** Error for a file that creates no operator. */
export function noOperatorError(file: string, received: string): UsageError {
  return new UsageError(
    `Cannot run ${file}: it creates no operator: export an Operator, or a function "operator" that returns one, or name the export by --export: received ${received}`,
  );
}

/** Whether a file has code that runs only when it is the main module. */
export async function isGuarded(file: string): Promise<boolean> {
  return (await readFile(file, "utf8")).includes("import.meta.main");
}
