import {
  labelInteger,
  type LabelOperator,
  type LabelRequirement,
  labelRequirement,
} from "./label_requirement.ts";
import { checkOptions, type OptionRules } from "./options.ts";
import { LabelTokens } from "./label_selector_lexer.ts";

/**
 * Which objects are meant, by their labels: every part must hold. It is the
 * form that Deployments and Services hold in their own `selector`.
 */
export interface LabelSelector {
  /** Labels that must have exactly these values. */
  readonly matchLabels?: Readonly<Record<string, string>> | undefined;
  /** Further conditions on single labels. */
  readonly matchExpressions?: readonly LabelExpression[] | undefined;
}

/** One condition of a {@linkcode LabelSelector}. */
export interface LabelExpression {
  /** The name of the label. */
  readonly key: string;
  /**
   * How it compares: `In`, `NotIn`, `Exists` or `DoesNotExist`. Any text, since
   * objects from a server hold such conditions too.
   */
  readonly operator: LabelOperator | (string & Record<never, never>);
  /** What `In` and `NotIn` compare with; empty for the others. */
  readonly values?: readonly string[] | undefined;
}

/**
 * Reads the text form of a label selector, such as
 * `app=web,tier in (front,back),!legacy`, as Kubernetes does: set-based
 * conditions, `==`, `!=`, and `>` and `<` on integers too. The empty text
 * selects everything.
 *
 * @throws {SyntaxError} If the text is not a selector, or if a label name or
 * value in it is not one.
 *
 * @example Select by hand
 * ```ts
 * import { matchesLabels, parseLabelSelector } from "@coracle/operator/core";
 *
 * const selector = parseLabelSelector("app=web,tier notin (test)");
 * if (!matchesLabels(selector, { app: "web" })) throw new Error("No match");
 * ```
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
  if (tokens.atEnd || tokens.sees(",")) return make("Exists");
  const operator = tokens.operator();
  if (operator === "in") return make("In", parseValues(tokens));
  if (operator === "notin") return make("NotIn", parseValues(tokens));
  const value = tokens.atEnd || tokens.sees(",") ? "" : tokens.word("a value");
  switch (operator) {
    case "!=":
      return make("NotIn", [value]);
    case ">":
      return make("Gt", [value]);
    case "<":
      return make("Lt", [value]);
    default:
      return make("In", [value]);
  }
}

/** `(a,b)`; a missing value between commas and brackets is the empty one. */
function parseValues(tokens: LabelTokens): string[] {
  tokens.expect("(", 'a "("');
  const values = new Set<string>();
  if (tokens.take(")")) return [];
  while (true) {
    const empty = tokens.sees(",") || tokens.sees(")");
    values.add(empty ? "" : tokens.word('a value, "," or ")"'));
    if (tokens.take(")")) return [...values];
    tokens.expect(",", 'a "," or ")"');
  }
}

/**
 * Turns any form of a label selector into its conditions.
 *
 * @throws {SyntaxError} If a text is not a selector.
 * @throws {TypeError} If a condition is not valid, or an object has anything but
 * `matchLabels` and `matchExpressions`: it would select everything.
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

function checked(condition: LabelExpression): LabelRequirement {
  // One that is no object has no name, which is what is refused.
  const { key, operator, values = [] } = condition ?? {};
  return labelRequirement(key, operator, values);
}

function isRequirements(
  selector: LabelSelector | readonly LabelRequirement[],
): selector is readonly LabelRequirement[] {
  return Array.isArray(selector);
}

/**
 * The text of a label selector, as it stands in a query:
 * {@linkcode parseLabelSelector} reads it back to the same conditions.
 *
 * @throws {SyntaxError} If a text is not a selector.
 * @throws {TypeError} If a condition is not valid.
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
 * Whether labels meet every condition. An object that lacks the label meets
 * `NotIn`, as in Kubernetes.
 */
export function matchesLabels(
  requirements: readonly LabelRequirement[],
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
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
