/**
 * Options, each declared once, in a table beside their interface, and checked
 * once, where the user passes them.
 *
 * A table has a row for every option: its type, its default, and whether a
 * configuration file or the environment can set it. Checking
 * ({@linkcode checkOptions}), filling in the defaults
 * ({@linkcode resolveOptions}) and reading a configuration
 * (`loadOperatorConfig`) follow from the table. A missing or misspelt row does
 * not compile.
 *
 * @module
 */
import { parseByteSize } from "./byte_size.ts";
import { isDuration, milliseconds } from "./duration.ts";

/** Types of options with their descriptions, for errors. */
const DESCRIPTIONS = {
  any: "given",
  boolean: "true or false",
  string: "a string",
  name: "a string that is not empty",
  manager: "printable characters, 1 to 128 bytes of them",
  strings: "an array of strings",
  array: "an array",
  function: "a function",
  functions: "an array of functions",
  object: "an object",
  map: "a Map",
  clock: "a clock, such as systemClock",
  logger: "a logger, such as jsonLogger() gives",
  metrics: "metrics, such as a MetricsRegistry",
  signal: "an AbortSignal",
  selector: "a string, an object or an array of requirements",
  number: "a number",
  positive: "a number above 0",
  count: "a whole number from 1",
  size: "a whole number from 0",
  port: "a whole number from 0 to 65535",
  bytes: 'a number of bytes, or text like "96MiB", "1Gi", "500M"',
  duration:
    'a duration: zero or more milliseconds, or text like "250ms", "10s", "5m", "1h30m", "7d"',
} as const;

/** Type of the value of an option. */
export type OptionType = keyof typeof DESCRIPTIONS;

/** Required methods by the type of an option. */
const METHODS: { readonly [Type in OptionType]?: readonly string[] } = {
  map: ["get", "has"],
  clock: ["now", "wallTime", "setTimer"],
  logger: ["debug", "info", "warn", "error", "with"],
  metrics: ["counter", "gauge", "observableGauge", "histogram"],
  signal: ["throwIfAborted", "addEventListener"],
};

/**
 * Rule for the value of an option: a type, or a choice of texts. A type that
 * ends in `?` makes the option optional, as does `undefined` among the texts.
 */
export type OptionRule =
  | OptionType
  | `${OptionType}?`
  | readonly (string | undefined)[];

type OptionalRule = `${OptionType}?` | readonly (string | undefined)[];

/** Row of an option table, for an option of any type. */
export interface AnyRow {
  readonly type: OptionRule;
  /** Default value, which makes the option optional. */
  readonly default?: unknown;
  /** Value that `false` stands for; absent if `false` is not allowed. */
  readonly off?: unknown;
  /** Texts that are allowed in place of a value of the type. */
  readonly words?: readonly string[];
  /** Table of the options within this option, or within each item of an array. */
  readonly options?: object;
  /**
   * Table of the methods of a custom implementation, which is accepted in place
   * of an object with options. A value with the first of these methods counts
   * as one.
   */
  readonly custom?: object;
  /**
   * Whether a configuration file and the environment can set the option. Values
   * that text cannot express, such as functions, never can.
   *
   * @default {true}
   */
  readonly configurable?: boolean;
  /** Checks the value further; throws if it is not valid. */
  check?(value: unknown, subject: string, name: string): unknown;
}

/**
 * Table row of one option, for options that a type name alone does not
 * describe.
 */
export interface OptionRow<V> extends AnyRow {
  readonly default?: Exclude<V, undefined>;
  readonly options?: TableOf<V>;
  readonly custom?: TableOf<V>;
  check?(
    value: Exclude<V, false | undefined>,
    subject: string,
    name: string,
  ): unknown;
}

type TableOf<V> = V extends readonly (infer Item)[] ? TableOf<Item>
  : V extends object ? OptionRules<V>
  : never;

/**
 * Table of the options of an interface, with a row for each. Options that may
 * be left out need a rule that allows it.
 */
export type OptionRules<Options> = {
  readonly [Name in keyof Options]-?: undefined extends Options[Name]
    ? OptionalRule | OptionRow<Options[Name]>
    : OptionRule | OptionRow<Options[Name]>;
};

/**
 * Table of options that {@linkcode resolveOptions} fills in: optional ones need
 * a default, except those that stay undefined.
 *
 * @typeParam Undefined Names of the options without a default.
 */
export type OptionTable<Options, Undefined extends keyof Options = never> = {
  readonly [Name in keyof Options]-?: Name extends Undefined
    ? OptionalRule | OptionRow<Options[Name]>
    : undefined extends Options[Name] ?
        & OptionRow<Options[Name]>
        & { readonly default: Exclude<Options[Name], undefined> }
    : OptionRule | OptionRow<Options[Name]>;
};

/**
 * Options with their defaults filled in: durations as milliseconds, sizes as
 * bytes, and `false` replaced by its meaning.
 *
 * @typeParam Undefined Names of the options without a default.
 */
export type Settings<Options, Undefined extends keyof Options = never> = {
  readonly [Name in keyof Options]-?:
    | Setting<Exclude<Options[Name], undefined>>
    | (Name extends Undefined ? undefined : never);
};

type Setting<V> = boolean extends V ? V
  // Durations, whose type contains texts such as "1s", and sizes.
  : number extends V ? "1s" extends V ? number : Exclude<V, false>
  : Exclude<V, false>;

/** Option table without its types, as the functions of the module read it. */
export type AnyTable = Readonly<Record<string, OptionRule | AnyRow>>;

/**
 * Checks options against their table. To be called once, where the user passes
 * the options, and not for each event.
 *
 * @param subject Owner of the options for errors, such as `"an operator"`.
 * @throws {TypeError} If the options are not an object, a name is unknown, or a
 * value is missing or of the wrong type.
 * @throws {RangeError} If a value is out of range.
 */
export function checkOptions(
  options: object,
  table: AnyTable,
  subject: string,
): void {
  if (!hasMethods(options) || options instanceof Promise) {
    throw new TypeError(
      `Cannot read the options of ${subject}: they must be an object: received ${
        typeText(options)
      }`,
    );
  }
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(table, name)) continue;
    const known = Object.keys(table);
    const nearest = nearestName(name, known);
    throw new TypeError(
      `Cannot read the options of ${subject}: there is no option "${name}"${
        nearest === undefined
          ? `, only ${known.join(", ")}`
          : `: did you mean "${nearest}"?`
      }: received ${Object.keys(options).join(", ")}`,
    );
  }
  checkEach(options, table, subject);
}

/**
 * Checks an object that users implement, such as a client: it must have the
 * given members, and may have others.
 *
 * @param subject Name of the object for errors, such as `"an informer, client"`.
 * @throws {TypeError | RangeError} As {@linkcode checkOptions}.
 */
export function checkParts(
  value: unknown,
  table: AnyTable,
  subject: string,
): void {
  if (!hasMethods(value)) {
    throw new TypeError(
      `Cannot use what was given for ${subject}: it must be an object with ${
        Object.keys(table).join(", ")
      }: received ${typeText(value)}`,
    );
  }
  checkEach(value, table, subject);
}

function checkEach(options: object, table: AnyTable, subject: string): void {
  for (const name in table) {
    const value = (options as Readonly<Record<string, unknown>>)[name];
    const row = table[name] as OptionRule | AnyRow;
    // Most options are left out; requests and writes of runs have some, too.
    if (value === undefined && isOptional(row)) continue;
    if (isRow(row)) checkRow(value, row, { name, subject });
    else checkOption(value, row, { name, subject });
  }
}

function checkRow(
  value: unknown,
  row: AnyRow,
  { name, subject }: { readonly name: string; readonly subject: string },
): void {
  if (value === false && "off" in row) return;
  if (!row.words?.includes(value as string)) {
    checkOption(value, row.type, { name, subject });
    const { options, custom } = row as Partial<
      Record<"options" | "custom", AnyTable>
    >;
    if (
      custom !== undefined &&
      (Object.keys(custom)[0] as string) in (value as object)
    ) {
      checkParts(value, custom, `${subject}, ${name}`);
    } else if (options !== undefined) {
      for (const item of Array.isArray(value) ? value : [value]) {
        checkOptions(item, options, `${subject}, ${name}`);
      }
    }
  }
  row.check?.(value, subject, name);
}

/**
 * Fills in the defaults of options that {@linkcode checkOptions} has accepted.
 */
export function resolveOptions<
  Options,
  Undefined extends keyof Options = never,
>(
  options: Options,
  table: OptionTable<Options, Undefined>,
): Settings<Options, Undefined> {
  return resolve(
    options as Readonly<Record<string, unknown>>,
    table as AnyTable,
  ) as Settings<Options, Undefined>;
}

function resolve(
  options: Readonly<Record<string, unknown>>,
  table: AnyTable,
): object {
  const settings: Record<string, unknown> = {};
  for (const [name, rule] of Object.entries(table)) {
    const row: AnyRow = isRow(rule) ? rule : { type: rule };
    const value = options[name] ?? row.default;
    settings[name] = value === false && "off" in row
      ? row.off
      : value === undefined
      ? undefined
      : resolvedValue(value, row);
  }
  return settings;
}

function resolvedValue(value: unknown, row: AnyRow): unknown {
  const type = typeOf(row.type);
  // Infinity is a default only: no duration of the user is infinite.
  if (value === Infinity) return value;
  if (type === "duration") return milliseconds(value as string | number);
  if (type === "bytes") return parseByteSize(value as string | number);
  const table = row.options as AnyTable | undefined;
  const isWhole = row.custom !== undefined || Array.isArray(value);
  return table === undefined || isWhole
    ? value
    : resolve(value as Readonly<Record<string, unknown>>, table);
}

/**
 * Checks one value, as {@linkcode checkOptions} does: an argument beside
 * options, or an option of several types.
 *
 * @param place Name of the option and owner of the options, for errors.
 * @throws {TypeError | RangeError} As {@linkcode checkOptions}.
 */
export function checkOption(
  value: unknown,
  rule: OptionRule,
  { name, subject }: { readonly name: string; readonly subject: string },
): void {
  const refusal = () =>
    `Cannot read the options of ${subject}: "${name}" must be`;
  const type = typeOf(rule);
  if (type === undefined) {
    const texts = rule as readonly (string | undefined)[];
    if (texts.includes(value as string | undefined)) return;
    throw new RangeError(
      `${refusal()} one of ${texts.filter(Boolean).join(", ")}: received ${
        shown(value)
      }`,
    );
  }
  if (value === undefined && isOptional(rule)) return;
  if (!isOfType(value, type)) {
    throw new TypeError(
      `${refusal()} ${DESCRIPTIONS[type]}: received ${typeText(value)}`,
    );
  }
  if (isInRange(value, type)) return;
  throw new RangeError(
    `${refusal()} ${DESCRIPTIONS[type]}: received ${shown(value)}`,
  );
}

/** Type that a rule requires; undefined for a choice of texts. */
export function typeOf(rule: OptionRule): OptionType | undefined {
  return typeof rule === "string"
    ? rule.replace("?", "") as OptionType
    : undefined;
}

/** Whether an entry of a table is a row rather than a rule. */
export function isRow(entry: OptionRule | AnyRow): entry is AnyRow {
  return typeof entry === "object" && !Array.isArray(entry);
}

function isOptional(entry: OptionRule | AnyRow): boolean {
  if (typeof entry === "string") return entry.endsWith("?");
  return isRow(entry)
    ? "default" in entry || isOptional(entry.type)
    : entry.includes(undefined);
}

function isOfType(value: unknown, type: OptionType): boolean {
  switch (type) {
    case "any":
      return value !== undefined && value !== null;
    case "boolean":
      return typeof value === "boolean";
    case "function":
      return typeof value === "function";
    case "string":
    case "name":
    case "manager":
      return typeof value === "string";
    case "number":
    case "positive":
    case "count":
    case "size":
    case "port":
      return typeof value === "number";
    case "bytes":
    case "duration":
      return typeof value === "number" || typeof value === "string";
    case "array":
      return Array.isArray(value);
    case "strings":
      return isArrayOf(value, "string");
    case "functions":
      return isArrayOf(value, "function");
    case "selector":
      return typeof value === "string" || Array.isArray(value) ||
        hasMethods(value);
    default:
      return hasMethods(value, ...METHODS[type] ?? []);
  }
}

/** Whether a value, already of the right type, is in the range of the type. */
function isInRange(value: unknown, type: OptionType): boolean {
  switch (type) {
    case "name":
      return value !== "";
    case "manager":
      return /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$/u.test(value as string) &&
        new TextEncoder().encode(value as string).length <= 128;
    case "duration":
      return isDuration(value);
    case "bytes":
      try {
        return parseByteSize(value as string | number) > 0;
      } catch {
        return false;
      }
    case "number":
      return !Number.isNaN(value);
    case "positive":
      return (value as number) > 0;
    case "count":
      return Number.isInteger(value) && (value as number) > 0;
    case "size":
      return Number.isInteger(value) && (value as number) >= 0;
    case "port":
      return Number.isInteger(value) && (value as number) >= 0 &&
        (value as number) < 65_536;
    default:
      return true;
  }
}

function isArrayOf(value: unknown, type: "string" | "function"): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === type);
}

/** Whether a value is an object, and not an array, with the methods. */
function hasMethods(
  value: unknown,
  ...methods: readonly string[]
): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value) &&
    methods.every((name) =>
      typeof (value as Record<string, unknown>)[name] === "function"
    );
}

/** Type of a value, for errors: the value itself may be a secret. */
export function typeText(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (value instanceof Error) return "an error";
  if (value instanceof Promise) return "a promise";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** Text of a value for errors: numbers and texts are shown, others by type. */
export function shown(value: unknown): string {
  if (typeof value === "number") return String(value);
  return typeof value === "string"
    ? JSON.stringify(value.slice(0, 64))
    : typeText(value);
}

/**
 * Known name that is most similar to a misspelt one, or begins with it;
 * undefined if none exists.
 */
export function nearestName(
  name: string,
  known: readonly string[],
): string | undefined {
  let nearest: string | undefined;
  let least = Math.max(1, Math.floor(name.length / 2)) + 1;
  for (const candidate of known) {
    const isBeginning = name.length > 1 &&
      candidate.toLowerCase().startsWith(name.toLowerCase());
    const distance = isBeginning ? 1 : editDistance(name, candidate);
    if (distance < least) [nearest, least] = [candidate, distance];
  }
  return nearest;
}

/** Levenshtein distance of texts, without regard to case. */
export function editDistance(some: string, others: string): number {
  const [a, b] = [some.toLowerCase(), others.toLowerCase()];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(
        Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1),
      );
    }
    row = next;
  }
  return row[b.length] as number;
}
