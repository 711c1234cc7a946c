import type { OpenApiSchema } from "@coracle/operator/core";
import { jsonEquals, ownValue } from "@coracle/operator/internal";
import type { ExpressionNode, FoldNode } from "../apiserver/cel/expression.ts";
import { matchesFormat } from "../apiserver/crd/schema/formats.ts";
import { parse } from "../apiserver/cel/parser.ts";

/** Schema of a field, not a member that every object inherits, such as `constructor`. */
export function fieldOf(
  properties: OpenApiSchema["properties"],
  name: string,
): OpenApiSchema | undefined {
  return properties && ownValue(properties, name);
}

/** Keywords with schemas of a value. */
export const COMBINED = ["allOf", "anyOf", "oneOf", "not"] as const;

/**
 * Whether a rule holds for all values of an older schema: it asks only for fields, or
 * values of an enum, that are new, or the rules of that schema imply it, as one with
 * the same meaning in other words. What is not certain does not hold.
 *
 * @param rule Rule in CEL, of a schema.
 * @param former Rules of the older schema, which each of its values satisfies.
 */
export function holdsForOlder(
  rule: string,
  schema: OpenApiSchema,
  older: OpenApiSchema,
  former: readonly string[],
): boolean {
  const { root } = parse(rule);
  if (root === undefined) return false;
  const premises = former.flatMap((text) => parse(text).root ?? []);
  return follows(root, premises, schema, older);
}

/**
 * Whether a keyword such as `oneOf` holds for all values of an older schema, with
 * what {@linkcode holdsForOlder} knows. Only `required` in it is understood; other
 * keywords hold where the older schema has the same.
 */
export function combinedHoldsForOlder(
  keyword: typeof COMBINED[number],
  schema: OpenApiSchema,
  older: OpenApiSchema,
): boolean {
  const former = Object.fromEntries(
    COMBINED.map((name) => [name, older[name]])
      .filter(([, value]) => value !== undefined),
  );
  const now = conditionOf({ [keyword]: schema[keyword] });
  return follows(now, [conditionOf(former)], schema, older);
}

/** Maximum number of cases; with more, the answer is not certain. */
const MOST_CASES = 5_000;

function follows(
  conclusion: ExpressionNode,
  premises: readonly ExpressionNode[],
  schema: OpenApiSchema,
  older: OpenApiSchema,
): boolean {
  const names: Names = new Map([["self", { name: "self", schema, older }]]);
  // With another default the older rules were asked about another value.
  const known = hasSameDefaults(schema, older) ? premises : [];
  const all = {
    facts: new Map(),
    values: new Map(),
    cases: { left: MOST_CASES },
  };
  try {
    return inEachCase(all, (one) => {
      const reading = new Reading(one);
      const isOlder = known.every((node) =>
        reading.truth(reading.term(node, names)) === true
      );
      return !isOlder ||
        reading.truth(reading.term(conclusion, names)) === true;
    });
  } catch (error) {
    if (error instanceof TooManyCases) return false;
    throw error;
  }
}

function hasSameDefaults(now: OpenApiSchema, older: OpenApiSchema): boolean {
  const { properties = {}, items, additionalProperties: values } = now;
  const { properties: before = {}, additionalProperties: others } = older;
  return Object.entries(before).every(([name, one]) => {
    const other = fieldOf(properties, name);
    return other === undefined ||
      (jsonEquals(one.default, other.default) && hasSameDefaults(other, one));
  }) &&
    (!items || !older.items || hasSameDefaults(items, older.items)) &&
    (typeof values !== "object" || typeof others !== "object" ||
      hasSameDefaults(values, others));
}

/** Value in an expression; an error is no term. */
interface Term {
  /** Text that is equal for equal terms. */
  readonly name: string;
  /** The value if it is known, as in {@linkcode known}. */
  readonly value?: unknown;
  /** Items of a list that is written out. */
  readonly items?: readonly Term[];
  /** Schemas of the value where they are known. */
  readonly schema?: OpenApiSchema | undefined;
  readonly older?: OpenApiSchema | undefined;
}

/** Variables in an expression. */
type Names = ReadonlyMap<string, Term | undefined>;

/** Truth of a condition; undefined for an error. */
type Outcome = boolean | undefined;

/** One of the cases. */
interface Case {
  /** Conditions that were decided. */
  readonly facts: ReadonlyMap<string, Outcome>;
  /** Values of terms, by their names. */
  readonly values: ReadonlyMap<string, unknown>;
  /** Number of further cases that are allowed. */
  readonly cases: { left: number };
}

/** A condition whose truth a case does not say. */
class Undecided extends Error {
  override readonly name = "Undecided";
  readonly condition: string;
  readonly outcomes: readonly Outcome[];
  /** Term whose value is known where the condition is true. */
  readonly equal: Term | undefined;

  constructor(condition: string, outcomes: readonly Outcome[], equal?: Term) {
    super(condition);
    this.condition = condition;
    this.outcomes = outcomes;
    this.equal = equal;
  }
}

class TooManyCases extends Error {
  override readonly name = "TooManyCases";
}

/** Whether a test is true in a case, whatever else is so in it. */
function inEachCase(one: Case, test: (one: Case) => boolean): boolean {
  if (one.cases.left-- <= 0) throw new TooManyCases();
  try {
    return test(one);
  } catch (error) {
    if (!(error instanceof Undecided)) throw error;
    const { condition, outcomes, equal } = error;
    return outcomes.every((outcome) => {
      const values = new Map(one.values);
      if (equal !== undefined && outcome === true) {
        values.set(equal.name, equal.value);
      }
      const facts = new Map(one.facts).set(condition, outcome);
      return inEachCase({ ...one, facts, values }, test);
    });
  }
}

/** Condition that each item of a list satisfies. */
interface ItemRule {
  readonly list: string;
  readonly fold: FoldNode;
  readonly names: Names;
}

/** Reads expressions in one case. */
class Reading {
  readonly #case: Case;
  readonly #itemRules: ItemRule[] = [];
  /** Number of lists within whose items this reads. */
  readonly #depth: number;

  constructor(one: Case, depth = 0) {
    this.#case = one;
    this.#depth = depth;
  }

  /** Truth of a term; undefined for an error, or for what is no condition. */
  truth(term: Term | undefined): Outcome {
    if (term === undefined) return undefined;
    if (!("value" in term)) return this.#decided(term.name);
    return typeof term.value === "boolean" ? term.value : undefined;
  }

  #decided(
    condition: string,
    outcomes: readonly Outcome[] = [true, false, undefined],
    equal?: Term,
  ): Outcome {
    const { facts } = this.#case;
    if (facts.has(condition)) return facts.get(condition);
    throw new Undecided(condition, outcomes, equal);
  }

  /** Value of an expression; undefined for an error. */
  term(node: ExpressionNode, names: Names): Term | undefined {
    switch (node.kind) {
      case "literal":
        return constant(node.value);
      case "ident":
        return names.has(node.name) ? names.get(node.name) : this.#named({
          name: node.name,
        });
      case "select":
        return this.#selected(this.term(node.operand, names), node);
      case "fold":
        return this.#folded(node, names);
      case "call":
        return this.#called(node, names);
      case "list": {
        const items = node.items.map((item) => this.term(item, names));
        const name = `[${items.map((item) => item?.name)}]`;
        return isComplete(items) ? { name, items } : undefined;
      }
      default:
        return node.kind === "map" && node.entries.length === 0
          ? { name: "{}", items: [] }
          : this.#named({ name: textOf(node, names) });
    }
  }

  /** A term, or its value if the case says it. */
  #named(term: Term): Term {
    const { values } = this.#case;
    return values.has(term.name) ? constant(values.get(term.name)) : term;
  }

  #selected(
    operand: Term | undefined,
    { field, test }: { readonly field: string; readonly test: boolean },
  ): Term | undefined {
    if (operand === undefined) return undefined;
    const { schema, older } = operand;
    // A name with underscores may be an escaped one.
    const isListed = older?.properties !== undefined &&
      !field.includes("__") && !UNLISTED.includes(field);
    const now = isListed ? fieldOf(schema?.properties, field) : undefined;
    const before = isListed ? fieldOf(older.properties, field) : undefined;
    const name = `${operand.name}.${field}`;
    const isPresent = isListed && isAbsent(field, schema, older)
      ? false
      : isAlways(field, now, before, older) || this.#decided(
        `has(${name})`,
        [true, false],
      );
    if (test) return constant(isPresent);
    if (!isPresent) return undefined;
    // Null is no value of the older schema.
    const isTyped = before !== undefined && before.nullable !== true;
    return this.#named(
      isTyped ? { name, schema: now, older: before } : { name },
    );
  }

  /** Result of a macro such as `all()`. */
  #folded(node: FoldNode, names: Names): Term | undefined {
    const list = this.term(node.range, names);
    if (list === undefined) return undefined;
    const { variable, accumulator } = node;
    const initial = this.term(node.initial, names);
    const unchanged = () =>
      this.term(node.result, new Map(names).set(accumulator, initial));
    if (list.items?.length === 0) return unchanged();
    const name = textOf({ ...node, range: nameNode(list.name) }, names);
    if (node.variable2 !== undefined || initial === undefined) {
      return this.#named({ name });
    }
    const item: Term = {
      name: `${list.name}[${this.#depth}]`,
      schema: list.schema?.items,
      older: list.older?.items,
    };
    const ofItem = (one: Names, variable: string) =>
      new Map(one).set(variable, item);
    const isKept = inEachCase(this.#case, (one) => {
      const reading = new Reading(one, this.#depth + 1);
      const isOlder = this.#itemRules.every(({ list: range, fold, names }) => {
        if (range !== list.name) return true;
        const inside = ofItem(names, fold.variable)
          .set(fold.accumulator, constant(true));
        return reading.truth(reading.term(fold.step, inside)) === true;
      });
      const inside = ofItem(names, variable).set(accumulator, initial);
      return !isOlder || reading.term(node.step, inside)?.name === initial.name;
    });
    if (isKept) return unchanged();
    if (isAll(node) && this.#decided(name) === true) {
      this.#itemRules.push({ list: list.name, fold: node, names });
    }
    return this.#named({ name });
  }

  #called(
    node: Extract<ExpressionNode, { readonly kind: "call" }>,
    names: Names,
  ): Term | undefined {
    const { name, target, args } = node;
    const truthOf = (at: number) =>
      this.truth(this.term(args[at] as ExpressionNode, names));
    switch (name) {
      case "!_":
        return opposite(truthOf(0));
      case "_&&_": // An error does not matter beside a false value.
        return among(false, args.keys(), truthOf);
      case "_||_":
        return among(true, args.keys(), truthOf);
      case "_?_:_": {
        const condition = truthOf(0);
        return condition === undefined
          ? undefined
          : this.term(args[condition ? 1 : 2] as ExpressionNode, names);
      }
    }
    const terms = [...target === undefined ? [] : [target], ...args]
      .map((arg) => this.term(arg, names));
    if (!isComplete(terms)) return undefined;
    const [first, second] = terms as [Term, Term];
    switch (name) {
      case "_==_":
        return outcome(this.#equal(first, second));
      case "_!=_":
        return opposite(this.#equal(first, second));
      case "@in":
        if (second.items === undefined) break;
        return this.#isOneOf(first, second.items);
      case "_<_":
        return outcome(this.#isLess(first, second));
      case "_>_":
        return outcome(this.#isLess(second, first));
      case "_>=_":
        return opposite(this.#isLess(first, second));
      case "_<=_":
        return opposite(this.#isLess(second, first));
    }
    const value = known(name, terms);
    return value === undefined
      ? this.#named({ name: `${name}(${terms.map((term) => term.name)})` })
      : constant(value);
  }

  #isOneOf(term: Term, items: readonly Term[]): Term | undefined {
    return among(true, items, (item) => this.#equal(term, item));
  }

  #equal(a: Term, b: Term): Outcome {
    if ("value" in a && "value" in b && typeof a.value === typeof b.value) {
      return a.name === b.name;
    }
    if ("value" in a) return "value" in b ? undefined : this.#equal(b, a);
    if (!("value" in b)) {
      return this.#decided([a.name, b.name].sort().join(" == "));
    }
    const { older } = a;
    const { value } = b;
    if (typeof value === "string" && older && refuses(older, value)) {
      return false;
    }
    return this.#decided(`${a.name} == ${b.name}`, undefined, {
      name: a.name,
      value,
    });
  }

  #isLess(a: Term, b: Term): Outcome {
    return typeof a.value === "bigint" && typeof b.value === "bigint"
      ? a.value < b.value
      : this.#decided(`${a.name} < ${b.name}`);
  }
}

/** Fields of each object, which the schema of its kind does not list. */
const UNLISTED = ["apiVersion", "kind", "metadata"];

/** Whether no value of an older schema has a field. */
function isAbsent(
  field: string,
  schema: OpenApiSchema | undefined,
  older: OpenApiSchema,
): boolean {
  const isOpen = older["x-kubernetes-preserve-unknown-fields"] === true ||
    older["x-kubernetes-embedded-resource"] === true ||
    Boolean(older.additionalProperties);
  return fieldOf(older.properties, field) === undefined && !isOpen &&
    fieldOf(schema?.properties, field)?.default === undefined;
}

/** Whether each value of an older schema has a field. */
function isAlways(
  field: string,
  now: OpenApiSchema | undefined,
  before: OpenApiSchema | undefined,
  older: OpenApiSchema | undefined,
): boolean {
  if (now === undefined || before === undefined) return false;
  // A default that is new, and null, are no values of the older schema.
  return (before.default !== undefined ||
    older?.required?.includes(field) === true) &&
    jsonEquals(now.default, before.default) && before.nullable !== true;
}

/** Whether a schema is known to refuse a text. */
function refuses(schema: OpenApiSchema, text: string): boolean {
  const { enum: values, minLength, pattern, format = "" } = schema;
  if (values !== undefined && !values.includes(text)) return true;
  if (Array.from(text).length < Number(minLength ?? 0)) return true;
  try {
    if (!new RegExp(String(pattern ?? ""), "u").test(text)) return true;
  } catch {
    // It is a pattern of Go alone.
  }
  return schema.type === "string" && !matchesFormat(format, text);
}

/** Whether a macro asks the same of each item. */
function isAll({ initial, step, accumulator }: FoldNode): boolean {
  return initial.kind === "literal" && initial.value === true &&
    step.kind === "call" && step.name === "_&&_" &&
    step.args[0]?.kind === "ident" && step.args[0].name === accumulator;
}

/** Value of a function of known values; undefined where it is not known. */
function known(name: string, terms: readonly Term[]): unknown {
  const [first, second] = terms;
  if (name === "size" && first?.items?.length === 0) return 0n;
  const [a, b] = [first?.value, second?.value];
  if (name === "_+_" && typeof a === "bigint" && typeof b === "bigint") {
    return a + b;
  }
  if (typeof a !== "string") return undefined;
  if (name === "size") return BigInt(Array.from(a).length);
  if (typeof b !== "string") return undefined;
  switch (name) {
    case "_+_":
      return a + b;
    case "startsWith":
      return a.startsWith(b);
    case "endsWith":
      return a.endsWith(b);
    case "contains":
      return a.includes(b);
    default:
      return undefined;
  }
}

function constant(value: unknown): Term {
  return { name: literalText(value), value };
}

/** Result of `&&` or `||`: the value that decides, whatever errors are beside it. */
function among<Part>(
  decisive: boolean,
  parts: Iterable<Part>,
  truthOf: (part: Part) => Outcome,
): Term | undefined {
  let isKnown = true;
  for (const part of parts) {
    const truth = truthOf(part);
    if (truth === decisive) return constant(decisive);
    if (truth === undefined) isKnown = false;
  }
  return isKnown ? constant(!decisive) : undefined;
}

function outcome(truth: Outcome): Term | undefined {
  return truth === undefined ? undefined : constant(truth);
}

function opposite(truth: Outcome): Term | undefined {
  return truth === undefined ? undefined : constant(!truth);
}

function isComplete(terms: readonly (Term | undefined)[]): terms is Term[] {
  return !terms.includes(undefined);
}

function literalText(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  return typeof value === "number" ? `double ${value}` : String(value);
}

/** Text of an expression that is equal for equal ones, with the names of its terms. */
function textOf(node: ExpressionNode, names: Names): string {
  const text = (part: ExpressionNode) => textOf(part, names);
  switch (node.kind) {
    case "literal":
      return literalText(node.value);
    case "ident":
      return names.has(node.name)
        ? names.get(node.name)?.name ?? "error"
        : node.name;
    case "select":
      return node.test
        ? `has(${text(node.operand)}.${node.field})`
        : `${text(node.operand)}.${node.field}`;
    case "call":
      return `${node.name}(${
        (node.target === undefined ? node.args : [node.target, ...node.args])
          .map(text)
      })`;
    case "list":
      return `[${node.items.map(text)}]`;
    case "map":
      return `{${
        node.entries.map(({ key, value }) => `${text(key)}:${text(value)}`)
      }}`;
    case "struct":
      return `${node.name}{${
        node.fields.map(({ name, value }) => `${name}:${text(value)}`)
      }}`;
    case "fold": {
      const inside = new Map(names);
      for (const [at, one] of variablesOf(node).entries()) {
        inside.set(one, { name: `$${names.size}.${at}` });
      }
      const { range, initial, condition, step, result } = node;
      return `fold(${text(range)},${text(initial)},${
        [condition, step, result].map((part) => textOf(part, inside))
      })`;
    }
  }
}

function variablesOf(fold: FoldNode): readonly string[] {
  const { variable, variable2, accumulator } = fold;
  return [variable, ...variable2 === undefined ? [] : [variable2], accumulator];
}

function nameNode(name: string): ExpressionNode {
  return { kind: "ident", name, at: 0 };
}

function callNode(name: string, ...args: ExpressionNode[]): ExpressionNode {
  return { kind: "call", name, target: undefined, args, at: 0 };
}

function literalNode(value: unknown): ExpressionNode {
  return { kind: "literal", value, at: 0 };
}

/** The condition that a schema sets by its combined keywords and `required`. */
function conditionOf(
  schema: Readonly<Record<string, unknown>>,
): ExpressionNode {
  const all = (nodes: readonly ExpressionNode[]) =>
    nodes.reduce((a, b) => callNode("_&&_", a, b), literalNode(true));
  const each = (value: unknown) =>
    (value as readonly Record<string, unknown>[]).map(conditionOf);
  return all(
    Object.entries(schema).map(([keyword, value]) => {
      switch (keyword) {
        case "required":
          return all((value as readonly string[]).map((field) => ({
            kind: "select",
            operand: nameNode("self"),
            field,
            test: true,
            at: 0,
          })));
        case "allOf":
          return all(each(value));
        case "anyOf":
          return each(value).reduce(
            (a, b) => callNode("_||_", a, b),
            literalNode(false),
          );
        case "oneOf":
          return callNode(
            "_==_",
            each(value).map((one) =>
              callNode("_?_:_", one, literalNode(1n), literalNode(0n))
            ).reduce((a, b) => callNode("_+_", a, b)),
            literalNode(1n),
          );
        case "not":
          return callNode("!_", conditionOf(value as Record<string, unknown>));
        default:
          return nameNode(JSON.stringify({ [keyword]: value }));
      }
    }),
  );
}
