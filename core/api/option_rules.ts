import { isDuration } from "./duration.ts";
import { checkOptionNames } from "./option_names.ts";

/** What values of options can be. */
type ValueType =
  | "any"
  | "boolean"
  | "string"
  | "name"
  | "strings"
  | "array"
  | "function"
  | "functions"
  | "object"
  | "map"
  | "clock"
  | "logger"
  | "metrics"
  | "signal"
  | "selector"
  | "number"
  | "positive"
  | "count"
  | "size"
  | "port"
  | "duration";

/** How an error says what a value must be. */
const WORDS: Readonly<Record<ValueType, string>> = {
  any: "given",
  boolean: "true or false",
  string: "a string",
  name: "a string that is not empty",
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
  duration:
    'a duration: zero or more milliseconds, or text like "250ms", "10s", "5m", "1h30m"',
};

/**
 * What an option must be: a type, or one of some texts. A type that ends in `?`
 * may be left out, as may a choice with `undefined` among its texts.
 */
export type OptionRule =
  | ValueType
  | `${ValueType}?`
  | readonly (string | undefined)[];

/**
 * What each option of an interface must be: every one has its rule, and those
 * that may be left out one that lets them.
 */
export type OptionRules<Options> = {
  readonly [Name in keyof Options]-?: undefined extends Options[Name]
    ? `${ValueType}?` | readonly (string | undefined)[]
    : OptionRule;
};

/**
 * Refuses options that do not exist, that are missing, or that are of another
 * type than they must be. It is for what is made once: what happens for each
 * event is not checked.
 *
 * @param options What the user gave.
 * @param rules What each option must be.
 * @param subject What the options are for, such as `"an operator"`.
 * @throws {TypeError} If the options are no object, a name is unknown, or a value
 * is missing or of another type.
 * @throws {RangeError} If a number is out of range, or a text none of the choices
 * or no duration.
 */
export function checkOptions(
  options: object,
  rules: Readonly<Record<string, OptionRule>>,
  subject: string,
): void {
  const isObject = typeof options === "object" && options !== null;
  if (
    !isObject || Array.isArray(options) ||
    Object.keys(options).some((name) => !Object.hasOwn(rules, name))
  ) {
    checkOptionNames(options, Object.keys(rules), subject);
  }
  checkEach(options, rules, subject);
}

/**
 * Refuses what lacks a part or has one of another type; what it has beside them
 * is its own business. It is for what users implement.
 *
 * @param value What the user gave.
 * @param rules What its parts must be.
 * @param subject What it is, such as `"a pool of informers, client"`.
 * @throws {TypeError | RangeError} As {@linkcode checkOptions}.
 */
export function checkParts(
  value: unknown,
  rules: Readonly<Record<string, OptionRule>>,
  subject: string,
): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new TypeError(
      `Cannot use what was given for ${subject}: it must be an object with ${
        Object.keys(rules).join(", ")
      }: received ${typeText(value)}`,
    );
  }
  checkEach(value, rules, subject);
}

function checkEach(
  options: object,
  rules: Readonly<Record<string, OptionRule>>,
  subject: string,
): void {
  for (const name in rules) {
    const value = (options as Readonly<Record<string, unknown>>)[name];
    const rule = rules[name] as OptionRule;
    // Most options are left out; requests and writes of runs have some, too.
    if (value === undefined && mayMiss(rule)) continue;
    checkOption(value, rule, { name, subject });
  }
}

/**
 * Refuses one value, as {@linkcode checkOptions} does: for what is given beside
 * options, and for options that are of one type or another.
 */
export function checkOption(
  value: unknown,
  rule: OptionRule,
  { name, subject }: { readonly name: string; readonly subject: string },
): void {
  const refusal = `Cannot read the options of ${subject}: "${name}" must be`;
  if (typeof rule !== "string") {
    if (rule.includes(value as string | undefined)) return;
    throw new RangeError(
      `${refusal} one of ${rule.filter(Boolean).join(", ")}: received ${
        shown(value)
      }`,
    );
  }
  if (value === undefined && mayMiss(rule)) return;
  const type = rule.replace("?", "") as ValueType;
  if (!isOfType(value, type)) {
    throw new TypeError(
      `${refusal} ${WORDS[type]}: received ${typeText(value)}`,
    );
  }
  if (isInRange(value, type)) return;
  throw new RangeError(`${refusal} ${WORDS[type]}: received ${shown(value)}`);
}

function mayMiss(rule: OptionRule): boolean {
  return typeof rule === "string"
    ? rule.endsWith("?")
    : rule.includes(undefined);
}

function isOfType(value: unknown, type: ValueType): boolean {
  switch (type) {
    case "any":
      return value !== undefined && value !== null;
    case "boolean":
      return typeof value === "boolean";
    case "function":
      return typeof value === "function";
    case "string":
    case "name":
      return typeof value === "string";
    case "number":
    case "positive":
    case "count":
    case "size":
    case "port":
      return typeof value === "number";
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
    case "object":
      return hasMethods(value);
    case "map":
      return hasMethods(value, "get", "has");
    case "clock":
      return hasMethods(value, "now", "wallTime", "setTimer");
    case "logger":
      return hasMethods(value, "debug", "info", "warn", "error", "with");
    case "metrics":
      return hasMethods(value, "counter", "gauge", "histogram");
    case "signal":
      return hasMethods(value, "throwIfAborted", "addEventListener");
  }
}

/** Whether a value makes sense that is of the type. */
function isInRange(value: unknown, type: ValueType): boolean {
  switch (type) {
    case "name":
      return value !== "";
    case "duration":
      return isDuration(value);
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

function hasMethods(value: unknown, ...methods: readonly string[]): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) &&
    methods.every((name) =>
      typeof (value as Record<string, unknown>)[name] === "function"
    );
}

/** What a value is, for errors: the value itself may be a secret. */
export function typeText(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** A value that is no secret: a number, or what should be a known word. */
function shown(value: unknown): string {
  if (typeof value === "number") return String(value);
  return typeof value === "string"
    ? JSON.stringify(value.slice(0, 64))
    : typeText(value);
}
