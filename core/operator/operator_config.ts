import { readFile } from "node:fs/promises";
import { milliseconds } from "../api/duration.ts";
import { checkKind, type Kind } from "../api/kind.ts";
import {
  type AnyRow,
  type AnyTable,
  checkOption,
  checkOptions,
  isRow,
  nearestName,
  type OptionRules,
  type OptionType,
  typeOf,
} from "../api/options.ts";
import { hostProcess } from "../config/host_process.ts";
import {
  CONTROLLER_OPTIONS,
  type ControllerOptions,
} from "../controller/controller_options.ts";
import {
  type ConfiguredOptions,
  OPERATOR_OPTIONS,
  type OperatorConfig,
  type OperatorOptions,
} from "./operator_options.ts";

/** Options of {@linkcode loadOperatorConfig}. */
export interface LoadOperatorConfigOptions {
  /**
   * Path of a YAML or JSON file. Defaults to the value of the environment
   * variable `CORACLE_CONFIG`; without it no file is read.
   */
  readonly file?: string | undefined;
  /** Environment variables. Defaults to those of the process. */
  readonly environment?:
    | Readonly<Record<string, string | undefined>>
    | undefined;
}

const RULES: OptionRules<LoadOperatorConfigOptions> = {
  file: "name?",
  environment: "object?",
};

const OPERATOR_PREFIX = "CORACLE_OPERATOR_";
const CONTROLLER_PREFIX = "CORACLE_CONTROLLER_";

/**
 * Loads options from a file and the environment, so that an operator can be
 * configured where it is deployed. Pass the result to
 * `new Operator({ config })`: it overrides the options in the program, and the
 * environment overrides the file.
 *
 * In the file, options have the names that they have in the program; those of
 * controllers stand under `controllers` and the name of the controller. In the
 * environment, names are in capitals: `CORACLE_OPERATOR_SHUTDOWN_GRACE=30s`,
 * `CORACLE_CONTROLLER_WEBPAGE_RETRY_MAX_ATTEMPTS=3`.
 *
 * @param options The file and the environment.
 * @throws {TypeError | RangeError | SyntaxError} If a name is unknown or a value
 * is not valid; the error names where it was found.
 * @throws {Error} If the file cannot be read.
 */
export async function loadOperatorConfig(
  options: LoadOperatorConfigOptions = {},
): Promise<OperatorConfig> {
  checkOptions(options, RULES, "loadOperatorConfig()");
  const { environment = hostProcess.env } = options;
  const { file = environment["CORACLE_CONFIG"] } = options;
  const { controllers = {}, ...operator } = file === undefined
    ? {}
    : record(await parseFile(file), file);
  const byName: Record<string, ConfiguredOptions> = {};
  for (
    const [name, given] of Object.entries(record(controllers, "controllers"))
  ) {
    byName[name] = readValues(
      record(given, name),
      CONTROLLER,
      `${file}, ${name}`,
    );
  }
  const variables = readVariables(environment, OPERATOR_PREFIX, OPERATOR);
  const unknown = variables.unknown[0];
  if (unknown !== undefined) {
    throw unknownVariable(unknown, OPERATOR_PREFIX, OPERATOR);
  }
  return {
    operator: merge(
      readValues(operator, OPERATOR, file ?? ""),
      variables.options,
    ),
    controllers: byName,
    environment,
  };
}

/** Options of an operator, overridden by its configuration. */
export function configuredOperator(options: OperatorOptions): OperatorOptions {
  return options?.config === undefined
    ? options
    : merge(options as ConfiguredOptions, options.config.operator);
}

/**
 * Options of a controller, overridden by the configuration of the operator.
 *
 * @param kind The kind of the primaries.
 * @param options The options of the user; only those for the name are checked.
 * @param config The configuration of the operator, if it has one.
 * @throws {TypeError} If the kind or the options are not valid.
 */
export function configuredController<O extends ControllerOptions<never>>(
  kind: Kind,
  options: O,
  config: OperatorConfig | undefined,
): O {
  const subject = "a controller";
  checkKind(kind, subject);
  checkOption(options, "object", { name: "options", subject });
  if (config === undefined) return options;
  const { name = kind.kind.toLowerCase() } = options;
  const { environment, controllers } = config;
  const variables = readVariables(
    environment,
    variablePrefix(name),
    CONTROLLER,
  );
  const given = merge(controllers[name] ?? {}, variables.options);
  return merge(options as ConfiguredOptions, given) as unknown as O;
}

/**
 * Checks that there are controllers, and that the configuration only names
 * controllers that exist.
 *
 * @param names The names of the controllers.
 * @param config The configuration of the operator, if it has one.
 * @throws {Error} If there is no controller.
 * @throws {TypeError} If the file or the environment names an unknown controller.
 */
export function checkControllerNames(
  names: readonly string[],
  config: OperatorConfig | undefined,
): void {
  if (names.length === 0) {
    throw new Error(
      "Cannot start an operator: it has no controller, so register one first",
    );
  }
  if (config === undefined) return;
  for (const name of Object.keys(config.controllers)) {
    if (names.includes(name)) continue;
    const nearest = nearestName(name, names) ?? names.join(", ");
    throw new TypeError(
      `Cannot use the configuration: there is no controller of this name, did you mean ${nearest}?: received "${name}"`,
    );
  }
  const prefixes = names.map(variablePrefix);
  for (const variable of Object.keys(config.environment)) {
    if (!variable.startsWith(CONTROLLER_PREFIX)) continue;
    // The name of one controller may be the beginning of another's.
    const meant = prefixes.filter((prefix) => variable.startsWith(prefix));
    const isKnown = meant.some((prefix) =>
      optionOf(variable.slice(prefix.length), CONTROLLER) !== undefined
    );
    if (isKnown) continue;
    throw unknownVariable(variable, meant[0] ?? prefixes[0] ?? "", CONTROLLER);
  }
}

async function parseFile(file: string): Promise<unknown> {
  let content: string;
  try {
    content = await readFile(file, "utf8");
  } catch (error) {
    throw new Error(
      `Cannot read the configuration: received ${(error as Error).message}`,
      { cause: error },
    );
  }
  const { parse } = await import("yaml");
  try {
    return parse(content) ?? {};
  } catch (error) {
    throw new SyntaxError(
      `Cannot read the configuration ${file}: it must be YAML or JSON: received ${
        (error as Error).message
      }`,
      { cause: error },
    );
  }
}

/**
 * Reader of the value of one option.
 *
 * @param value The value in the file or variable.
 * @param place Where the value was found, for errors.
 * @throws {TypeError | RangeError | SyntaxError} If the value is not valid.
 */
type Reader = (value: unknown, place: string) => unknown;

/** Readers by the path of the option, such as `retry.maxAttempts`. */
type Readers = Readonly<Record<string, Reader>>;

/** Readers for the types of options that text can express. */
const READERS: Readonly<Partial<Record<OptionType, Reader>>> = {
  boolean: readBoolean,
  string: readText,
  name: readText,
  selector: readText,
  strings: readList,
  number: readNumber,
  positive: readNumber,
  count: readWholeNumber,
  size: readWholeNumber,
  port: readWholeNumber,
  bytes: (value, place) =>
    typeof value === "number" ? value : readText(value, place),
  duration: readDuration,
};

const OPERATOR: Readers = readersOf(OPERATOR_OPTIONS);
const CONTROLLER: Readers = readersOf(CONTROLLER_OPTIONS);

/** Readers for the options of a table that can be configured. */
function readersOf(table: AnyTable, prefix = ""): Readers {
  const readers: Record<string, Reader> = {};
  for (const [name, entry] of Object.entries(table)) {
    const row: AnyRow = isRow(entry) ? entry : { type: entry };
    if (row.configurable === false) continue;
    const path = prefix + name;
    if (row.options === undefined) {
      const read = readerOf(row);
      if (read !== undefined) readers[path] = read;
      continue;
    }
    Object.assign(readers, readersOf(row.options as AnyTable, `${path}.`));
    if ("off" in row) readers[path] = readOff;
    // Options that the program has set can be removed by false.
    else if (!("default" in row)) {
      readers[path] = (value, place) => void readOff(value, place);
    }
  }
  return readers;
}

function readerOf(row: AnyRow): Reader | undefined {
  const { type, words } = row;
  if (words !== undefined) {
    return (value, place) => readWordOrList(value, words, place);
  }
  const read = typeof type === "string"
    ? READERS[typeOf(type) as OptionType]
    : readText;
  if (read === undefined || !("off" in row)) return read;
  return (value, place) =>
    value === false || value === "false" ? false : read(value, place);
}

/** Reads nested options by the readers of their paths. */
function readValues(
  options: ConfiguredOptions,
  readers: Readers,
  place: string,
): ConfiguredOptions {
  const result: Record<string, unknown> = {};
  for (const [path, value] of leaves(options, readers)) {
    const read = readers[path];
    if (read === undefined) {
      const nearest = nearestName(path, Object.keys(readers));
      throw new TypeError(
        `Cannot use the configuration ${place}: there is no option "${path}"${
          nearest ? `, did you mean "${nearest}"?` : ""
        }: received ${JSON.stringify(value)}`,
      );
    }
    set(result, path, read(value, `${place}: ${path}`));
  }
  return result;
}

/** Values of nested options with their paths. */
function* leaves(
  options: ConfiguredOptions,
  readers: Readers,
  prefix = "",
): Iterable<[string, unknown]> {
  for (const [name, value] of Object.entries(options)) {
    const path = prefix + name;
    const nested = Object.keys(readers).some((known) =>
      known.startsWith(`${path}.`)
    );
    if (nested && isPlain(value)) yield* leaves(value, readers, `${path}.`);
    else yield [path, value];
  }
}

/** Options in the variables of a prefix, and variables without an option. */
function readVariables(
  environment: Readonly<Record<string, string | undefined>>,
  prefix: string,
  readers: Readers,
): { options: ConfiguredOptions; unknown: readonly string[] } {
  const options: Record<string, unknown> = {};
  const unknown: string[] = [];
  for (const [variable, value] of Object.entries(environment)) {
    if (!variable.startsWith(prefix) || value === undefined) continue;
    const found = optionOf(variable.slice(prefix.length), readers);
    if (found === undefined) unknown.push(variable);
    else set(options, found.path, found.read(value, variable));
  }
  return { options, unknown };
}

function optionOf(
  variable: string,
  readers: Readers,
): { readonly path: string; readonly read: Reader } | undefined {
  for (const [path, read] of Object.entries(readers)) {
    if (variableName(path) === variable) return { path, read };
  }
  return undefined;
}

/** Name of the variable for a path: `retry.maxAttempts` is `RETRY_MAX_ATTEMPTS`. */
function variableName(path: string): string {
  return path.replaceAll(/([a-z])([A-Z])/g, "$1_$2").replaceAll(/[.-]/g, "_")
    .toUpperCase();
}

function variablePrefix(controller: string): string {
  return `${CONTROLLER_PREFIX}${variableName(controller)}_`;
}

function unknownVariable(
  variable: string,
  prefix: string,
  readers: Readers,
): TypeError {
  const known = Object.keys(readers).map((path) => prefix + variableName(path));
  const nearest = nearestName(variable, known);
  return new TypeError(
    `Cannot use the environment: no option has this variable${
      nearest ? `, did you mean ${nearest}?` : ""
    }: received ${variable}`,
  );
}

/** Merges options and the options within them; the second ones win. */
function merge(
  first: ConfiguredOptions,
  second: ConfiguredOptions,
): ConfiguredOptions {
  const result: Record<string, unknown> = { ...first };
  for (const [name, value] of Object.entries(second)) {
    const before = result[name];
    result[name] = isPlain(before) && isPlain(value)
      ? { ...before, ...value }
      : value;
  }
  return result;
}

function isPlain(value: unknown): value is ConfiguredOptions {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function set(
  options: Record<string, unknown>,
  path: string,
  value: unknown,
): void {
  const [name = "", nested] = path.split(".");
  if (nested === undefined) options[name] = value;
  else {
    const inner = (options[name] ??= {}) as Record<string, unknown>;
    inner[nested] = value;
  }
}

function record(value: unknown, place: string): Record<string, unknown> {
  if (isPlain(value)) return value as Record<string, unknown>;
  throw new TypeError(
    `Cannot use the configuration ${place}: it must have named options: received ${
      JSON.stringify(value)
    }`,
  );
}

function refuse(value: unknown, place: string, rule: string): never {
  throw new TypeError(
    `Cannot use the configuration ${place}: it must be ${rule}: received ${
      JSON.stringify(value)
    }`,
  );
}

function readText(value: unknown, place: string): string {
  return typeof value === "string" ? value : refuse(value, place, "text");
}

function readBoolean(value: unknown, place: string): boolean {
  if (value === true || value === "true") return true;
  if (value === false || value === "false") return false;
  return refuse(value, place, "true or false");
}

function readNumber(value: unknown, place: string): number {
  const read = typeof value === "string" && value.trim() !== ""
    ? Number(value)
    : value;
  return typeof read === "number" && Number.isFinite(read)
    ? read
    : refuse(value, place, "a number");
}

function readWholeNumber(value: unknown, place: string): number {
  const read = readNumber(value, place);
  return Number.isInteger(read) ? read : refuse(value, place, "a whole number");
}

/** Reads a duration; digits without a unit are milliseconds. */
function readDuration(value: unknown, place: string): number {
  const plain = typeof value === "string" && /^\d+$/.test(value)
    ? Number(value)
    : value;
  return milliseconds(plain as string | number, place);
}

function readOff(value: unknown, place: string): false {
  if (value === false || value === "false") return false;
  return refuse(value, place, "false, or have options of its own");
}

/** Reads a list of texts; in a variable, commas separate them. */
function readList(value: unknown, place: string): readonly string[] {
  const items = typeof value === "string" ? value.split(",") : value;
  return isTexts(items) ? items : refuse(value, place, "a list of texts");
}

function readWordOrList(
  value: unknown,
  words: readonly string[],
  place: string,
): string | readonly string[] {
  if (words.includes(value as string)) return value as string;
  const items = typeof value === "string" ? value.split(",") : value;
  if (isTexts(items)) return items;
  const quoted = words.map((word) => JSON.stringify(word)).join(", ");
  return refuse(value, place, `${quoted} or a list of names`);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) &&
    value.every((item) => typeof item === "string");
}
