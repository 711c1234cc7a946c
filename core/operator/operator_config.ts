import { readFile } from "node:fs/promises";
import { nearestName } from "../api/options.ts";
import { checkKind, type Kind } from "../api/kind.ts";
import { checkOption, checkOptions, type OptionRules } from "../api/options.ts";
import type { ControllerOptions } from "../controller/controller_options.ts";
import { hostProcess } from "../config/host_process.ts";
import {
  duration,
  durationOrFalse,
  flag,
  list,
  namespaces,
  no,
  number,
  off,
  type Reader,
  text,
  textOrFalse,
  wholeNumber,
} from "./config_values.ts";
import type { OperatorOptions } from "./operator_options.ts";

/** A part of the options, as a configuration gives it. */
export type ConfiguredOptions = Readonly<Record<string, unknown>>;

/** Options from outside of the program, checked. */
export interface OperatorConfig {
  /** For the operator itself. */
  readonly operator: ConfiguredOptions;
  /** For controllers, by name. */
  readonly controllers: Readonly<Record<string, ConfiguredOptions>>;
  /** The environment, in which controllers look for more by their name. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Options of {@linkcode loadOperatorConfig}. */
export interface LoadOperatorConfigOptions {
  /**
   * A YAML or JSON file.
   *
   * @default {the one that CORACLE_CONFIG names, if any}
   */
  readonly file?: string | undefined;
  /**
   * The environment.
   *
   * @default {that of the process}
   */
  readonly environment?:
    | Readonly<Record<string, string | undefined>>
    | undefined;
}

const OPERATOR: Readonly<Record<string, Reader>> = {
  "namespaces": namespaces,
  "concurrency": wholeNumber,
  "shutdownGrace": duration,
  "startErrors": text,
  "syncTimeout": duration,
  "cache.budget": text,
  "cache.memoryLimit": textOrFalse,
  ...leases("leaderElection"),
  ...leases("sharding"),
  "probes": off,
  "probes.port": wholeNumber,
  "probes.host": text,
  "probes.debug": flag,
};

const CONTROLLER: Readonly<Record<string, Reader>> = {
  "namespaces": namespaces,
  "labelSelector": text,
  "fieldSelector": text,
  "shardSelector": text,
  "finalizer": text,
  "shard.index": wholeNumber,
  "shard.count": wholeNumber,
  "generationAware": flag,
  "requestAnnotations": list,
  "defaultFilters": flag,
  "pauseAnnotation": textOrFalse,
  "maxInterval": durationOrFalse,
  "concurrency": wholeNumber,
  "timeout": duration,
  "allEvents": flag,
  "fieldManager": text,
  "serverSideApply": flag,
  "install": flag,
  "cache.metadataOnly": flag,
  "cache.bounded": flag,
  "retry": no,
  "retry.initial": duration,
  "retry.multiplier": number,
  "retry.max": duration,
  "retry.maxAttempts": wholeNumber,
  "retry.jitter": number,
  "rateLimit": off,
  "rateLimit.limit": wholeNumber,
  "rateLimit.period": duration,
  "throughput": off,
  "throughput.limit": number,
  "throughput.period": duration,
  "throughput.burst": number,
};

/** The options of Leases, and that there shall be none. */
function leases(name: string): Readonly<Record<string, Reader>> {
  return {
    [name]: off,
    [`${name}.name`]: text,
    [`${name}.namespace`]: text,
    [`${name}.identity`]: text,
    [`${name}.leaseDuration`]: duration,
    [`${name}.renewDeadline`]: duration,
    [`${name}.retryPeriod`]: duration,
  };
}

const RULES: OptionRules<LoadOperatorConfigOptions> = {
  file: "name?",
  environment: "object?",
};

const OPERATOR_PREFIX = "CORACLE_OPERATOR_";
const CONTROLLER_PREFIX = "CORACLE_CONTROLLER_";

/**
 * Reads options from a file and the environment, so that an operator can be
 * configured where it is deployed. What it gives goes into
 * `new Operator({ config })` and counts more than what the program says; the
 * environment counts more than the file.
 *
 * In the file, options have their own names, those of controllers under
 * `controllers` and the controller's name. In the environment, names are in
 * capitals: `CORACLE_OPERATOR_SHUTDOWN_GRACE=30s`,
 * `CORACLE_CONTROLLER_WEBPAGE_RETRY_MAX_ATTEMPTS=3`.
 *
 * @param options Which file and environment.
 * @throws {TypeError | RangeError | SyntaxError} If a name is unknown or a value
 * makes no sense, with where it was found.
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
    byName[name] = check(record(given, name), CONTROLLER, `${file}, ${name}`);
  }
  const variables = variablesOf(environment, OPERATOR_PREFIX, OPERATOR);
  const unknown = variables.unknown[0];
  if (unknown !== undefined) {
    throw unknownVariable(unknown, OPERATOR_PREFIX, OPERATOR);
  }
  return {
    operator: merge(check(operator, OPERATOR, file ?? ""), variables.options),
    controllers: byName,
    environment,
  };
}

/** The options of an operator with what the configuration says. */
export function configuredOperator(options: OperatorOptions): OperatorOptions {
  const { config } = options;
  if (config === undefined) return options;
  return merge(options as ConfiguredOptions, config.operator);
}

/**
 * The options of a controller, checked as far as their name is needed, with what
 * the configuration says.
 *
 * @throws {TypeError} If the kind is none, or the options are no object.
 */
export function controllerOptions<O extends ControllerOptions<never>>(
  kind: Kind,
  options: O,
  config: OperatorConfig | undefined,
): O {
  const subject = "a controller";
  checkKind(kind, subject);
  checkOption(options, "object", { name: "options", subject });
  const name = options.name ?? kind.kind.toLowerCase();
  return configuredController(name, options, config);
}

/** The options of a controller with what the configuration says. */
export function configuredController<O extends ControllerOptions<never>>(
  name: string,
  options: O,
  config: OperatorConfig | undefined,
): O {
  if (config === undefined) return options;
  const prefix = `${CONTROLLER_PREFIX}${variableName(name)}_`;
  const { environment, controllers } = config;
  const variables = variablesOf(environment, prefix, CONTROLLER);
  const given = merge(controllers[name] ?? {}, variables.options);
  return merge(options as ConfiguredOptions, given) as unknown as O;
}

/**
 * Refuses to start without a controller, and what concerns controllers that
 * there are not.
 *
 * @throws {Error} If there is none.
 * @throws {TypeError} If a name in the file or the environment is none of these.
 */
export function checkControllerNames(
  names: readonly string[],
  config: OperatorConfig | undefined,
): void {
  if (names.length === 0) {
    throw new Error(
      "Cannot start an operator: it has no controller, so register one first: received none",
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
  const prefixes = names.map((name) =>
    `${CONTROLLER_PREFIX}${variableName(name)}_`
  );
  for (const variable of Object.keys(config.environment)) {
    if (!variable.startsWith(CONTROLLER_PREFIX)) continue;
    // The name of one controller may be the beginning of another's.
    const meant = prefixes.filter((prefix) => variable.startsWith(prefix));
    const isKnown = meant.some((prefix) =>
      readerOf(variable.slice(prefix.length), CONTROLLER) !== undefined
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

/** Checks nested options against the readers of their paths. */
function check(
  options: ConfiguredOptions,
  readers: Readonly<Record<string, Reader>>,
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

/** The values of nested options by their paths. */
function* leaves(
  options: ConfiguredOptions,
  readers: Readonly<Record<string, Reader>>,
  prefix = "",
): Iterable<[string, unknown]> {
  for (const [name, value] of Object.entries(options)) {
    const path = prefix + name;
    const nested = Object.keys(readers).some((known) =>
      known.startsWith(`${path}.`)
    );
    if (nested && typeof value === "object" && value !== null) {
      yield* leaves(value as ConfiguredOptions, readers, `${path}.`);
    } else yield [path, value];
  }
}

/** The options that variables of a prefix give, and those that give none. */
function variablesOf(
  environment: Readonly<Record<string, string | undefined>>,
  prefix: string,
  readers: Readonly<Record<string, Reader>>,
): { options: ConfiguredOptions; unknown: readonly string[] } {
  const options: Record<string, unknown> = {};
  const unknown: string[] = [];
  for (const [variable, value] of Object.entries(environment)) {
    if (!variable.startsWith(prefix) || value === undefined) continue;
    const found = readerOf(variable.slice(prefix.length), readers);
    if (found === undefined) unknown.push(variable);
    else set(options, found.path, found.read(value, variable));
  }
  return { options, unknown };
}

function readerOf(
  variable: string,
  readers: Readonly<Record<string, Reader>>,
): { readonly path: string; readonly read: Reader } | undefined {
  for (const [path, read] of Object.entries(readers)) {
    if (variableName(path) === variable) return { path, read };
  }
  return undefined;
}

/** A path in capitals: `retry.maxAttempts` is `RETRY_MAX_ATTEMPTS`. */
function variableName(path: string): string {
  return path.replaceAll(/([a-z])([A-Z])/g, "$1_$2").replaceAll(/[.-]/g, "_")
    .toUpperCase();
}

function unknownVariable(
  variable: string,
  prefix: string,
  readers: Readonly<Record<string, Reader>>,
): TypeError {
  const known = Object.keys(readers).map((path) => prefix + variableName(path));
  const nearest = nearestName(variable, known);
  return new TypeError(
    `Cannot use the environment: no option has this variable${
      nearest ? `, did you mean ${nearest}?` : ""
    }: received ${variable}`,
  );
}

/** The second counts more; options within options are merged. */
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
