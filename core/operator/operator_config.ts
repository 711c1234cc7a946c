import { isJsonObject } from "../patch/json_value.ts";
import { loadModule } from "../clock.ts";
import { type Duration, milliseconds } from "../api/duration.ts";
import { checkKind, type Kind } from "../api/kind.ts";
import {
  type AnyRow,
  type AnyTable,
  checkOption,
  checkOptions,
  checkParts,
  isRow,
  nearestName,
  type OptionRules,
  type OptionType,
  typeOf,
} from "../api/options.ts";
import { hostProcess } from "../config/host_process.ts";
import type { ConfigurationFile } from "./configuration_file.ts";
import {
  CONTROLLER_OPTIONS,
  type ControllerOptions,
} from "../controller/controller_options.ts";
import { LOG_OPTIONS } from "./log_configuration.ts";
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
   * variable `CORACLE_CONFIG`; if that is not set, no file is read.
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

const CONFIG_PARTS: OptionRules<OperatorConfig> = {
  operator: "object",
  controllers: "object",
  environment: "object",
};

const OPERATOR_PREFIX = "CORACLE_OPERATOR_";
const CONTROLLER_PREFIX = "CORACLE_CONTROLLER_";

/**
 * Loads options from a file and the environment, so that an operator can be
 * configured where it is deployed. Pass the result as the option `config` of an
 * operator: it overrides the options in the program, and the environment
 * overrides the file.
 *
 * In the file, options have the names that they have in the program; those of
 * controllers are under `controllers` and the name of the controller. In the
 * environment, names are in capitals: `CORACLE_OPERATOR_SHUTDOWN_GRACE=30s`,
 * `CORACLE_CONTROLLER_WEBPAGE_RETRY_MAX_ATTEMPTS=3`.
 *
 * @param options The file and the environment.
 * @throws {TypeError | RangeError | SyntaxError} If a name is unknown or a
 * value is not valid; the error names where it was found.
 * @throws {Error} If the file cannot be read.
 */
export async function loadOperatorConfig(
  options: LoadOperatorConfigOptions = {},
): Promise<OperatorConfig> {
  checkOptions(options, RULES, "loadOperatorConfig()");
  const { environment = hostProcess.env } = options;
  const { file = environment["CORACLE_CONFIG"] } = options;
  const { controllers = {}, ...operator } = file === undefined
    ? {} as ConfigurationFile
    : await readFile(file);
  const byName: Record<string, ConfiguredOptions> = {};
  for (const [name, given] of Object.entries(controllers)) {
    byName[name] = readValues(given, CONTROLLER, `${file}, ${name}`);
  }
  const variables = readVariables(environment, OPERATOR_PREFIX, OPERATOR);
  const unknown = variables.unknown[0];
  if (unknown !== undefined) {
    throw unknownVariable(unknown, [OPERATOR_PREFIX], OPERATOR);
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
  const { config } = options ?? {};
  if (config === undefined) {
    const variables = logVariables();
    return variables === undefined
      ? options
      : merge(options as ConfiguredOptions, variables);
  }
  checkParts(config, CONFIG_PARTS, "an operator, config");
  return merge(options as ConfiguredOptions, config.operator);
}

/** Options of the log in the environment of the process; undefined without any. */
function logVariables(): ConfiguredOptions | undefined {
  const given: Record<string, string> = {};
  for (const path of Object.keys(LOG_OPTIONS)) {
    const name = OPERATOR_PREFIX + variableName(`log.${path}`);
    try {
      // By its name: on Deno a program may read some variables and no others.
      const value = hostProcess.env[name];
      if (value !== undefined && value !== "") given[name] = value;
    } catch {
      return undefined; // It may not read them.
    }
  }
  if (Object.keys(given).length === 0) return undefined;
  return readVariables(given, OPERATOR_PREFIX, OPERATOR).options;
}

/**
 * Options of a controller, overridden by the configuration of the operator.
 *
 * @param options The options of the user; only those for the name are checked.
 * @throws {TypeError} If the kind or the options are not valid.
 */
export function configuredController<
  O extends Pick<ControllerOptions<never>, "name">,
>(
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
  const prefix = variablePrefix(name);
  const variables = readVariables(environment, prefix, CONTROLLER);
  const given = merge(controllers[name] ?? {}, variables.options);
  return merge(options as ConfiguredOptions, given) as unknown as O;
}

/**
 * Checks that no controller has a name.
 *
 * @throws {TypeError} If one has it.
 */
export function checkFreeName(
  name: string,
  controllers: ReadonlyMap<string, unknown>,
): void {
  if (!controllers.has(name)) return;
  throw new TypeError(
    `Cannot register a controller: the name is taken, so set another one with { name }: received "${name}"`,
  );
}

/**
 * Checks that there are controllers, and that the configuration only names
 * controllers that exist.
 *
 * @param mayBeNone Whether the operator has something else to do.
 * @throws {Error} If there is no controller.
 * @throws {TypeError} If the file or the environment names an unknown controller.
 */
export function checkControllerNames(
  names: readonly string[],
  config: OperatorConfig | undefined,
  mayBeNone = false,
): void {
  if (names.length === 0 && !mayBeNone) {
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
    if (isServiceLink(variable, config.environment)) continue;
    // The name of one controller may be the beginning of another's.
    const meant = prefixes.filter((prefix) => variable.startsWith(prefix));
    const isKnown = meant.some((prefix) =>
      pathOf(variable.slice(prefix.length), CONTROLLER) !== undefined
    );
    if (isKnown) continue;
    throw unknownVariable(
      variable,
      meant.length > 0 ? meant : prefixes,
      CONTROLLER,
    );
  }
}

/** Reads a configuration file; loaded lazily, as few operators have one. */
async function readFile(file: string): Promise<ConfigurationFile> {
  const { readConfiguration } = await loadModule(
    import("./configuration_file.ts"),
  );
  return await readConfiguration(file);
}

/** Rows of options by their path, such as `retry.maxAttempts`. */
type Rows = Readonly<Record<string, AnyRow>>;

/** Types of options that cannot be expressed as text. */
const UNCONFIGURABLE: ReadonlySet<OptionType | undefined> = new Set([
  "any",
  "array",
  "function",
  "functions",
  "object",
  "map",
  "clock",
  "logger",
  "metrics",
  "signal",
]);

const OPERATOR: Rows = configurableRows(OPERATOR_OPTIONS);
const CONTROLLER: Rows = configurableRows(CONTROLLER_OPTIONS);

/** Rows of the options of a table that can be configured. */
function configurableRows(table: AnyTable, prefix = ""): Rows {
  const rows: Record<string, AnyRow> = {};
  for (const [name, entry] of Object.entries(table)) {
    const row: AnyRow = isRow(entry) ? entry : { type: entry };
    if (row.configurable === false) continue;
    const path = prefix + name;
    const { options, words, type } = row;
    if (options !== undefined) {
      Object.assign(rows, configurableRows(options as AnyTable, `${path}.`));
      if ("off" in row || !("default" in row)) rows[path] = row;
    } else if (words || !UNCONFIGURABLE.has(typeOf(type))) rows[path] = row;
  }
  return rows;
}

/** Location of a value, for errors: its name, and the file or environment. */
interface Place {
  readonly name: string;
  readonly subject: string;
}

/**
 * Reads the value of an option from a file or a variable.
 *
 * @throws {TypeError | RangeError | SyntaxError} If the value is not valid.
 */
function readValue(value: unknown, row: AnyRow, place: Place): unknown {
  const isOff = value === false || value === "false";
  if (isOff && "off" in row) return false;
  if (row.options !== undefined) {
    // Options that the program has set can be removed by false.
    if (isOff) return undefined;
    return refuse(value, place, "must be false, or have options of its own");
  }
  if (row.words?.includes(value as string)) return value;
  const read = typeof value === "string" ? fromText(value, row, place) : value;
  checkOption(read, row.type, place);
  if (typeOf(row.type) === "duration") return milliseconds(read as Duration);
  row.check?.(read, place.subject, place.name);
  return read;
}

/** Converts the text of a variable or a file to the value of an option. */
function fromText(
  text: string,
  { type, words }: AnyRow,
  place: Place,
): unknown {
  switch (words === undefined ? typeOf(type) : "strings") {
    case "boolean":
      if (text === "true" || text === "false") return text === "true";
      return refuse(text, place, "must be true or false");
    case "number":
    case "positive":
    case "count":
    case "size":
    case "port":
      if (text.trim() !== "" && !Number.isNaN(Number(text))) {
        return Number(text);
      }
      return refuse(text, place, "must be a number");
    // Digits without a unit are milliseconds.
    case "duration":
      return /^\d+$/.test(text) ? Number(text) : text;
    case "strings":
      return text.split(",");
    default:
      return text;
  }
}

/** Reads nested options whose paths are in a table of options. */
function readValues(
  options: ConfiguredOptions,
  rows: Rows,
  subject: string,
): ConfiguredOptions {
  const result: Record<string, unknown> = {};
  for (const [path, value] of leaves(options, rows)) {
    const row = Object.hasOwn(rows, path) ? rows[path] : undefined;
    if (row === undefined) {
      const nearest = nearestName(path, [...Object.keys(rows), "controllers"]);
      throw new TypeError(
        `Cannot use the configuration ${subject}: there is no option "${path}"${
          nearest ? `, did you mean "${nearest}"?` : ""
        }: received ${JSON.stringify(value)}`,
      );
    }
    set(result, path, readValue(value, row, { name: path, subject }));
  }
  return result;
}

/** Values of nested options with their paths. */
function* leaves(
  options: ConfiguredOptions,
  rows: Rows,
  prefix = "",
): Iterable<[string, unknown]> {
  for (const [name, value] of Object.entries(options)) {
    const path = prefix + name;
    const nested = Object.keys(rows).some((known) =>
      known.startsWith(`${path}.`)
    );
    if (nested && isJsonObject(value)) yield* leaves(value, rows, `${path}.`);
    else yield [path, value];
  }
}

/** Options in the variables with a prefix, and the names of unknown ones. */
function readVariables(
  environment: Readonly<Record<string, string | undefined>>,
  prefix: string,
  rows: Rows,
): { options: ConfiguredOptions; unknown: readonly string[] } {
  const options: Record<string, unknown> = {};
  const unknown: string[] = [];
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith(prefix) || value === undefined) continue;
    if (isServiceLink(name, environment)) continue;
    const path = pathOf(name.slice(prefix.length), rows);
    if (path === undefined) unknown.push(name);
    else {
      const place = { name, subject: "the environment" };
      set(options, path, readValue(value, rows[path] as AnyRow, place));
    }
  }
  return { options, unknown };
}

/** Names of the variables that pods get for each Service. */
const SERVICE_LINK =
  /^(.+?)_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$/;

/**
 * Whether a variable is of a Service, such as one with the name `coracle-operator`,
 * and no option.
 */
function isServiceLink(
  name: string,
  environment: Readonly<Record<string, string | undefined>>,
): boolean {
  const [, service] = SERVICE_LINK.exec(name) ?? [];
  const isService = service !== undefined &&
    environment[`${service}_SERVICE_HOST`] !== undefined;
  // An option may have the name of its port.
  return isService && (name !== `${service}_PORT` ||
    /^(?:tcp|udp|sctp):/.test(environment[name] ?? ""));
}

/** Path of the option with a given variable name, without the prefix. */
function pathOf(variable: string, rows: Rows): string | undefined {
  return Object.keys(rows).find((path) => variableName(path) === variable);
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
  prefixes: readonly string[],
  rows: Rows,
): TypeError {
  const known = prefixes.flatMap((prefix) =>
    Object.keys(rows).map((path) => prefix + variableName(path))
  );
  const nearest = nearestName(variable, known);
  return new TypeError(
    `Cannot use the environment: no option has this variable${
      nearest ? `, did you mean ${nearest}?` : ""
    }: received ${variable}`,
  );
}

/** Merges options and their nested options; the second ones take precedence. */
function merge(
  first: ConfiguredOptions,
  second: ConfiguredOptions,
): ConfiguredOptions {
  const result: Record<string, unknown> = { ...first };
  for (const [name, value] of Object.entries(second)) {
    const before = result[name];
    result[name] = isJsonObject(before) && isJsonObject(value)
      ? merge(before, value)
      : value;
  }
  return result;
}

function set(
  options: Record<string, unknown>,
  path: string,
  value: unknown,
): void {
  const [name = "", ...nested] = path.split(".");
  if (nested.length === 0) options[name] = value;
  else {
    const inner = options[name] ??= {};
    set(inner as Record<string, unknown>, nested.join("."), value);
  }
}

function refuse(value: unknown, { name, subject }: Place, rule: string): never {
  throw new TypeError(
    `Cannot read the options of ${subject}: "${name}" ${rule}: received ${
      JSON.stringify(value)
    }`,
  );
}
