import { checkOptions, type OptionRules } from "./options.ts";

/** A valid requirement on one label. */
export interface LabelRequirement {
  /** Name of the label. */
  readonly key: string;
  /** Operator that compares the label. */
  readonly operator:
    | "In"
    | "NotIn"
    | "Exists"
    | "DoesNotExist"
    | "Gt"
    | "Lt";
  /** Values: at least one for `In` and `NotIn`, one integer for `Gt` and `Lt`. */
  readonly values: readonly string[];
}

export type LabelOperator = LabelRequirement["operator"];

const NAME_REGEXP = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const PREFIX_REGEXP =
  /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const LARGEST_INTEGER = 2n ** 63n - 1n;

/** Whether a text is a valid name of a label or annotation. */
export function isQualifiedName(name: string): boolean {
  const slash = name.indexOf("/");
  if (slash < 0) return NAME_REGEXP.test(name);
  const prefix = name.slice(0, slash);
  return prefix.length <= 253 && PREFIX_REGEXP.test(prefix) &&
    NAME_REGEXP.test(name.slice(slash + 1));
}

/** Whether a text is a valid label value. */
export function isLabelValue(value: string): boolean {
  return value === "" || NAME_REGEXP.test(value);
}

/** Integer that `Gt` and `Lt` compare; undefined if the value is not one. */
function labelInteger(value: string): bigint | undefined {
  if (!/^\d{1,63}$/.test(value)) return undefined;
  const number = BigInt(value);
  return number <= LARGEST_INTEGER ? number : undefined;
}

/**
 * Creates a requirement on a label.
 *
 * @throws {TypeError} If the label name, a value or the number of values is
 * invalid.
 */
export function labelRequirement(
  key: string,
  operator: string,
  values: readonly string[],
): LabelRequirement {
  const fail = (expected: string, received: unknown): never => {
    throw new TypeError(
      `Cannot select by label "${key}": ${expected}: received ${
        JSON.stringify(received)
      }`,
    );
  };
  if (typeof key !== "string" || !isQualifiedName(key)) {
    fail(
      "a label name is up to 63 letters, digits, -, _ and . with an optional DNS prefix and slash",
      key,
    );
  }
  if (!Array.isArray(values)) fail("values must be an array", values);
  for (const value of values) {
    if (typeof value !== "string" || !isLabelValue(value)) {
      fail(
        "a label value is text of up to 63 letters, digits, -, _ and .",
        value,
      );
    }
  }
  switch (operator) {
    case "In":
    case "NotIn":
      if (values.length === 0) fail(`"${operator}" needs a value`, values);
      break;
    case "Exists":
    case "DoesNotExist":
      if (values.length > 0) fail(`"${operator}" takes no value`, values);
      break;
    case "Gt":
    case "Lt":
      if (values.length !== 1 || labelInteger(values[0] ?? "") === undefined) {
        fail(`"${operator}" needs one integer`, values);
      }
      break;
    default:
      fail("the operator is unknown", operator);
  }
  return { key, operator: operator as LabelOperator, values };
}

/**
 * A label selector: an object must match all of its parts. Deployments have the
 * same form in `spec.selector`.
 */
export interface LabelSelector {
  /** Labels with their exact values. */
  readonly matchLabels?: Readonly<Record<string, string>> | undefined;
  /** Further requirements on single labels. */
  readonly matchExpressions?:
    | readonly {
      /** Name of the label. */
      readonly key: string;
      /**
       * Operator: `In`, `NotIn`, `Exists` or `DoesNotExist`. The type allows any
       * text, because objects from a server contain requirements as well.
       */
      readonly operator:
        | "In"
        | "NotIn"
        | "Exists"
        | "DoesNotExist"
        | (string & Record<never, never>);
      /** Values of `In` and `NotIn`; empty for the other operators. */
      readonly values?: readonly string[] | undefined;
    }[]
    | undefined;
}

/**
 * Parses the text form of a label selector, such as
 * `app=web,tier in (front,back),!legacy`, as Kubernetes does, including set-based
 * requirements, `==`, `!=`, and `>` and `<` for integers. The empty text selects
 * everything.
 *
 * @throws {SyntaxError} If the text is not a selector, or contains an invalid
 * label name or value.
 */
export function parseLabelSelector(text: string): LabelRequirement[] {
  const tokens = new LabelTokens(text);
  const requirements: LabelRequirement[] = [];
  while (!tokens.atEnd) {
    requirements.push(parseRequirement(tokens));
    if (tokens.atEnd) break;
    tokens.expect(",", 'a "," or the end');
    if (tokens.atEnd) tokens.fail('a label name after ","');
  }
  return requirements;
}

function parseRequirement(tokens: LabelTokens): LabelRequirement {
  const negated = tokens.take("!");
  const key = tokens.word('a label name or "!"');
  const make = (operator: LabelOperator, values: readonly string[] = []) =>
    tokens.checked(() => labelRequirement(key, operator, values));
  if (negated) return make("DoesNotExist");
  if (tokens.atEnd || tokens.next === ",") return make("Exists");
  const symbol = tokens.next;
  const operator = OPERATORS.get(symbol) ??
    tokens.fail('one of "=", "==", "!=", "in", "notin", ">", "<"');
  tokens.take(symbol);
  if (symbol.endsWith("in")) return make(operator, parseValues(tokens));
  const isEmpty = tokens.atEnd || tokens.next === ",";
  return make(operator, [isEmpty ? "" : tokens.word("a value")]);
}

/** Parses values such as `(a,b)`; a missing value is the empty text. */
function parseValues(tokens: LabelTokens): string[] {
  tokens.expect("(", 'a "("');
  const values = new Set<string>();
  if (tokens.take(")")) return [];
  while (true) {
    const empty = tokens.next === "," || tokens.next === ")";
    values.add(empty ? "" : tokens.word('a value, "," or ")"'));
    if (tokens.take(")")) return [...values];
    tokens.expect(",", 'a "," or ")"');
  }
}

/**
 * Converts any form of a label selector into its requirements.
 *
 * @throws {SyntaxError} If a text is not a selector.
 * @throws {TypeError} If a requirement is not valid, or an object has fields other
 * than `matchLabels` and `matchExpressions`: it would select everything.
 */
export function labelRequirements(
  selector: string | LabelSelector | readonly LabelRequirement[],
): readonly LabelRequirement[] {
  if (typeof selector === "string") return parseLabelSelector(selector);
  if (isRequirements(selector)) return selector.map(checked);
  checkOptions(selector, SELECTOR_RULES, "a label selector");
  const { matchLabels = {}, matchExpressions = [] } = selector;
  return [
    ...Object.entries(matchLabels).map(([key, value]) =>
      labelRequirement(key, "In", [value])
    ),
    ...matchExpressions.map(checked),
  ];
}

const SELECTOR_RULES: OptionRules<LabelSelector> = {
  matchLabels: "object?",
  matchExpressions: "array?",
};

function checked(
  expression: NonNullable<LabelSelector["matchExpressions"]>[number],
): LabelRequirement {
  const { key, operator, values = [] } = expression ?? {};
  return labelRequirement(key, operator, values);
}

function isRequirements(
  selector: LabelSelector | readonly LabelRequirement[],
): selector is readonly LabelRequirement[] {
  return Array.isArray(selector);
}

/**
 * Text form of a label selector, for a query. {@linkcode parseLabelSelector}
 * parses it into the same requirements.
 *
 * @throws {SyntaxError} If a text is not a selector.
 * @throws {TypeError} If a requirement is not valid.
 */
export function labelSelectorText(
  selector: string | LabelSelector | readonly LabelRequirement[],
): string {
  return labelRequirements(selector).map(requirementText).join(",");
}

function requirementText(requirement: LabelRequirement): string {
  const { key, operator, values } = requirement;
  const [only = ""] = values;
  switch (operator) {
    case "Exists":
      return key;
    case "DoesNotExist":
      return `!${key}`;
    case "Gt":
      return `${key}>${only}`;
    case "Lt":
      return `${key}<${only}`;
    case "In":
      return values.length === 1
        ? `${key}=${only}`
        : `${key} in (${values.join(",")})`;
    case "NotIn":
      return values.length === 1
        ? `${key}!=${only}`
        : `${key} notin (${values.join(",")})`;
  }
}

/**
 * Whether labels match a label selector. As in Kubernetes, an empty selector
 * matches everything, and an object without the label matches `NotIn`.
 *
 * @param selector The selector, such as that in the spec of an object; text and
 * requirements as in the option `labelSelector`.
 * @param labels The labels of the object.
 * @throws {SyntaxError} If a text is not a selector.
 * @throws {TypeError} If a label selector is not valid.
 */
export function matchesLabels(
  selector: string | LabelSelector | readonly LabelRequirement[],
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
  const requirements = typeof selector === "object" && isRequirements(selector)
    ? selector
    : labelRequirements(selector);
  return requirements.every((requirement) =>
    meets(
      requirement,
      labels !== undefined && Object.hasOwn(labels, requirement.key)
        ? labels[requirement.key]
        : undefined,
    )
  );
}

function meets(
  { operator, values }: LabelRequirement,
  value: string | undefined,
): boolean {
  if (operator === "Exists") return value !== undefined;
  if (operator === "DoesNotExist") return value === undefined;
  if (value === undefined) return operator === "NotIn";
  if (operator === "In") return values.includes(value);
  if (operator === "NotIn") return !values.includes(value);
  const number = labelInteger(value);
  const bound = labelInteger(values[0] ?? "");
  if (number === undefined || bound === undefined) return false;
  return operator === "Gt" ? number > bound : number < bound;
}

/** Operators of the text form, which follow the name of a label. */
const OPERATORS: ReadonlyMap<string, LabelOperator> = new Map([
  ["=", "In"],
  ["==", "In"],
  ["in", "In"],
  ["!=", "NotIn"],
  ["notin", "NotIn"],
  [">", "Gt"],
  ["<", "Lt"],
]);
const TOKEN_REGEXP = /[=!]?=|[!(),<>]|[^=!(),<> \t\r\n]+/g;
const SYMBOL_REGEXP = /^[=!(),<>]/;

/**
 * Tokens of the text form of a label selector: symbols, and names or values.
 * `in` and `notin` are not symbols, because they can also be label names and
 * values.
 */
class LabelTokens {
  readonly #text: string;
  readonly #tokens: readonly RegExpExecArray[];
  #position = 0;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = [...text.matchAll(TOKEN_REGEXP)];
  }

  /** Next token; empty at the end. */
  get next(): string {
    return this.#tokens[this.#position]?.[0] ?? "";
  }

  get atEnd(): boolean {
    return this.#position === this.#tokens.length;
  }

  /** Consumes a token if it is next. */
  take(token: string): boolean {
    const isNext = this.next === token;
    if (isNext) this.#position++;
    return isNext;
  }

  /** Consumes a symbol, which must be next. */
  expect(symbol: string, expected: string): void {
    if (!this.take(symbol)) this.fail(expected);
  }

  /** Consumes a label name or value. */
  word(expected: string): string {
    const word = this.next;
    if (this.atEnd || SYMBOL_REGEXP.test(word)) this.fail(expected);
    this.#position++;
    return word;
  }

  /** Throws an error with the token that was expected at this position. */
  fail(expected: string): never {
    const { index = this.#text.length } = this.#tokens[this.#position] ?? {};
    const rest = this.atEnd ? "the end" : `"${this.#text.slice(index)}"`;
    throw new SyntaxError(
      `Cannot read label selector "${this.#text}": expected ${expected} at ${
        index + 1
      }: received ${rest}`,
    );
  }

  /** Runs a function; its error is thrown again with the whole selector. */
  checked<T>(make: () => T): T {
    try {
      return make();
    } catch (error) {
      throw new SyntaxError(
        `Cannot read label selector "${this.#text}": ${
          error instanceof Error ? error.message : error
        }`,
      );
    }
  }
}
