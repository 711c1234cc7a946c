import type { OpenApiSchema } from "@coracle/operator/core";
import { jsonEquals } from "@coracle/operator/internal";
import type { ExpressionNode, FoldNode } from "../apiserver/cel/expression.ts";
import { parse } from "../apiserver/cel/parser.ts";

/** What is known of a value: it is this one, or one that an older schema allows. */
type Known =
  | { readonly value: unknown }
  | { readonly schema: OpenApiSchema; readonly older: OpenApiSchema };

/** Variables in an expression. */
type Names = ReadonlyMap<string, Known | undefined>;

/**
 * Whether a rule holds for all values of an older schema, because it asks only for
 * fields, or values of an enum, that are new. What is not certain does not hold.
 *
 * @param rule Rule in CEL, of a schema.
 */
export function holdsForOlder(
  rule: string,
  schema: OpenApiSchema,
  older: OpenApiSchema,
): boolean {
  const { root } = parse(rule);
  if (root === undefined) return false;
  return isValue(result(root, new Map([["self", { schema, older }]])), true);
}

/** What is known of the result of an expression; undefined if it may be an error. */
function result(node: ExpressionNode, names: Names): Known | undefined {
  const of = (other: ExpressionNode) => result(other, names);
  switch (node.kind) {
    case "literal":
      return { value: node.value };
    case "ident":
      return names.get(node.name);
    case "list":
      return node.items.length === 0 ? EMPTY : undefined;
    case "select":
      return selected(of(node.operand), node);
    case "fold":
      return folded(node, names);
    case "call":
      return node.name === "size"
        ? sizeOf(of(node.target ?? node.args[0] as ExpressionNode))
        : called(node.name, node.args, of);
    default:
      return undefined;
  }
}

const EMPTY: Known = { value: [] };

/** Fields of each object, which the schema of its kind does not list. */
const UNLISTED = ["apiVersion", "kind", "metadata"];

function selected(
  operand: Known | undefined,
  { field, test }: { readonly field: string; readonly test: boolean },
): Known | undefined {
  // A name with underscores may be an escaped one.
  const isPlain = !field.includes("__") && !UNLISTED.includes(field);
  if (operand === undefined || "value" in operand || !isPlain) return undefined;
  const { schema, older } = operand;
  if (older.properties === undefined) return undefined;
  const now = schema.properties?.[field];
  const before = older.properties[field];
  if (before === undefined) {
    const isOpen = older["x-kubernetes-preserve-unknown-fields"] === true ||
      older["x-kubernetes-embedded-resource"] === true ||
      Boolean(older.additionalProperties);
    const isAbsent = !isOpen && now?.default === undefined;
    return test && isAbsent ? { value: false } : undefined;
  }
  const isPresent = before.default !== undefined ||
    older.required?.includes(field) === true;
  // A default that is new, and null, are no values of the older schema.
  const isOlder = jsonEquals(now?.default, before.default) &&
    before.nullable !== true;
  if (now === undefined || !isPresent || !isOlder) return undefined;
  return test ? { value: true } : { schema: now, older: before };
}

/** Result of a macro that no item changes. */
function folded(node: FoldNode, names: Names): Known | undefined {
  const { range, variable, variable2, accumulator } = node;
  const list = result(range, names);
  if (list === undefined || "value" in list || variable2 !== undefined) {
    return undefined;
  }
  const { schema: { items: now }, older: { items: before } } = list;
  if (now === undefined || before === undefined) return undefined;
  const initial = result(node.initial, names);
  const inside = new Map(names)
    .set(variable, { schema: now, older: before })
    .set(accumulator, initial);
  const next = result(node.step, inside);
  const isKept = initial !== undefined && next !== undefined &&
    "value" in initial && isValue(next, initial.value);
  return isKept
    ? result(node.result, new Map(names).set(accumulator, initial))
    : undefined;
}

function sizeOf(list: Known | undefined): Known | undefined {
  return isValue(list, []) ? { value: 0n } : undefined;
}

function called(
  name: string,
  args: readonly ExpressionNode[],
  of: (node: ExpressionNode) => Known | undefined,
): Known | undefined {
  const [first, second, third] = args.map(of);
  switch (name) {
    case "!_":
      return isValue(first, true)
        ? FALSE
        : isValue(first, false)
        ? TRUE
        : undefined;
    case "_&&_": // An error does not matter beside a false value.
      if (isValue(first, false) || isValue(second, false)) return FALSE;
      return isValue(first, true) && isValue(second, true) ? TRUE : undefined;
    case "_||_":
      if (isValue(first, true) || isValue(second, true)) return TRUE;
      return isValue(first, false) && isValue(second, false)
        ? FALSE
        : undefined;
    case "_?_:_":
      if (isValue(first, true)) return second;
      return isValue(first, false) ? third : undefined;
    case "_==_":
      return differ(first, second) ? FALSE : undefined;
    case "_!=_":
      return differ(first, second) ? TRUE : undefined;
    case "_<_":
    case "_<=_": // The size of a list that a filter has left empty.
      return isValue(first, 0n) && isPositive(second) ? TRUE : undefined;
    default:
      return undefined;
  }
}

const TRUE: Known = { value: true };
const FALSE: Known = { value: false };

/** Whether one of two values is a text that the enum of the other does not have. */
function differ(a: Known | undefined, b: Known | undefined): boolean {
  if (a === undefined || b === undefined) return false;
  if ("value" in a) return !("value" in b) && differ(b, a);
  const values = a.older.enum;
  return "value" in b && typeof b.value === "string" && values !== undefined &&
    !values.includes(b.value);
}

function isPositive(known: Known | undefined): boolean {
  return known !== undefined && "value" in known &&
    typeof known.value === "bigint" && known.value > 0n;
}

/** Whether a value is known to be this one: a constant, or the empty list. */
function isValue(known: Known | undefined, value: unknown): boolean {
  if (known === undefined || !("value" in known)) return false;
  return Array.isArray(value)
    ? Array.isArray(known.value) && known.value.length === value.length
    : known.value === value;
}
