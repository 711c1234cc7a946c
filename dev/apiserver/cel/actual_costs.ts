import { CidrBlock } from "../validation/ip_address.ts";
import type { Overload } from "./function_declaration.ts";
import { isMap, Optional, sizeOf, typeNameOf } from "./values.ts";

/** Cost of creating a list. */
export const LIST_COST = 10;

/** Cost of creating a map. */
export const MAP_COST = 30;

/** Cost of creating a message. */
export const MESSAGE_COST = 40;

/** Cost of traversing one character. */
export const TRAVERSAL = 0.1;

/** Cost of one character of a pattern for each character it is matched against. */
export const PATTERN = 0.25;

/** Cost of one check of a right. */
export const ACCESS_CHECK = 350_000;

/** Cost of a call, from its arguments and its result. */
type CostRule = (
  args: readonly unknown[],
  result: unknown,
  id: string,
) => number | undefined;

/** Types of Kubernetes whose values are compared in constant time. */
const CONSTANT_TIME: ReadonlySet<string> = new Set([
  "kubernetes.Quantity",
  "kubernetes.Semver",
  "kubernetes.URL",
  "kubernetes.NamedFormat",
  "net.IP",
  "net.CIDR",
]);

function size(value: unknown): number {
  return sizeOf(value) ??
    (value instanceof Optional && value.value !== undefined
      ? size(value.value)
      : 1);
}

function traversal(length: number, factor = 1): number {
  return Math.ceil(length * factor * TRAVERSAL);
}

/** Creates the rule of a function that traverses its first argument. */
function traverses(factor = 1): CostRule {
  return ([first]) => traversal(size(first), factor);
}

/** Cost of traversing a value as a tree. */
function tree(value: unknown): number {
  if (typeof value === "string") {
    return Math.floor(new TextEncoder().encode(value).length * TRAVERSAL);
  }
  if (value instanceof Uint8Array) return Math.floor(value.length * TRAVERSAL);
  if (Array.isArray(value)) {
    return value.reduce<number>((sum, item) => sum + tree(item), 0);
  }
  if (!isMap(value)) return 1;
  let sum = 0;
  for (const key of value.keys()) sum += tree(key) + tree(value.find(key));
  return sum;
}

function matching(text: unknown, patternSize: number): number {
  return traversal(1 + size(text)) * Math.ceil(patternSize * PATTERN);
}

/** Cost of a selector: a requirement has at least two characters. */
function selector(length: number): number {
  return LIST_COST + traversal(length) +
    Math.ceil(Math.ceil(length * 0.5) * (LIST_COST + MESSAGE_COST));
}

/** Cost of a call that makes a list. */
function newList(items: number, factor = 1): number {
  return Math.floor(items * factor) + 1 + LIST_COST;
}

/** Cost of comparing the items of a list with each other. */
function comparesAll(list: unknown): number {
  const [first] = Array.isArray(list) ? list : [];
  const texts = typeof first === "string" || first instanceof Uint8Array;
  return newList(size(list) ** 2, texts ? 2 + TRAVERSAL : 2);
}

function comparison([a, b]: readonly unknown[]): number {
  return traversal(Math.min(size(a), size(b)));
}

/** Costs of functions for which the texts compared are as long as they are. */
const ordered: CostRule = (args, _, id) =>
  /\((?:string|bytes),/.test(id) ? comparison(args) : undefined;

function setRelation(factor: number): CostRule {
  return ([a, b]) => 1 + Math.floor(size(a) * size(b) * factor);
}

/** Costs of Kubernetes' and CEL's functions by name. */
const RULES: Readonly<Record<string, CostRule>> = {
  check: () => ACCESS_CHECK,
  fieldSelector: ([, text]) => selector(size(text)),
  labelSelector: ([, text]) => selector(size(text)),
  isSorted: ([list]) => tree(list),
  sum: ([list]) => tree(list),
  max: ([list]) => tree(list),
  min: ([list]) => tree(list),
  indexOf: ([list]) => tree(list),
  lastIndexOf: ([list]) => tree(list),
  url: traverses(),
  lowerAscii: traverses(),
  upperAscii: traverses(),
  substring: traverses(),
  trim: traverses(),
  "jsonpatch.escapeKey": traverses(),
  replace: traverses(2),
  split: traverses(2),
  join: (_, result) => traversal(size(result), 2),
  find: ([text, pattern]) => matching(text, size(pattern)),
  findAll: ([text, pattern]) => matching(text, size(pattern)),
  cidr: traverses(),
  isIP: traverses(),
  isCIDR: traverses(),
  ip: (args, _, id) => id.startsWith("ip(this") ? 1 : traverses()(args, _, id),
  "ip.isCanonical": traverses(2),
  containsIP: ([block, other], _, id) =>
    traversal(2 * addressSize(block)) +
    (id.includes("string") ? traversal(size(other)) : 0),
  containsCIDR: ([block, other], _, id) =>
    traversal(2 * addressSize(block)) + traversal(addressSize(block)) + 1 +
    (id.includes("string") ? traversal(size(other)) : 0),
  quantity: traverses(),
  isQuantity: traverses(),
  semver: traverses(),
  isSemver: traverses(),
  validate: ([format, text]) =>
    matching(
      text,
      (format as { readonly patternSize?: number }).patternSize ?? 0,
    ),
  "_==_": (args) =>
    CONSTANT_TIME.has(typeNameOf(args[0])) ? 1 : comparison(args),
  "_!=_": comparison,
  "_<_": ordered,
  "_<=_": ordered,
  "_>_": ordered,
  "_>=_": ordered,
  "_+_": ([a, b], _, id) =>
    /\((?:string|bytes),/.test(id) ? traversal(size(a) + size(b)) : 1,
  "@in": ([, list], _, id) => id.includes("list<") ? size(list) : undefined,
  startsWith: ([, part]) => traversal(size(part)),
  endsWith: ([, part]) => traversal(size(part)),
  contains: ([text, part]) => traversal(size(text)) * traversal(size(part)),
  matches: ([text, pattern]) => matching(text, size(pattern)),
  bytes: (args, _, id) =>
    id.startsWith("bytes(string)") ? traverses()(args, _, id) : undefined,
  string: (args, _, id) =>
    id.startsWith("string(bytes)") ? traverses()(args, _, id) : undefined,
  "strings.quote": traverses(),
  format: traverses(),
  slice: (_, result) => newList(size(result)),
  "lists.range": (_, result) => newList(size(result)),
  reverse: (_, result) => newList(size(result)),
  flatten: ([list, depth]) =>
    newList(size(list), typeof depth === "bigint" ? Number(depth) : 1),
  distinct: ([list]) => comparesAll(list),
  sort: ([list]) => comparesAll(list),
  "@sortByAssociatedKeys": ([, keys]) => comparesAll(keys),
  "sets.contains": setRelation(1),
  "sets.intersects": setRelation(1),
  "sets.equivalent": setRelation(2),
};

/** Functions with several overloads, whose costs count only for a single one. */
const BY_OVERLOAD: ReadonlySet<string> = new Set([
  "flatten",
  "sort",
  "@sortByAssociatedKeys",
]);

/** Number of bytes of the prefix of a network. */
function addressSize(value: unknown): number {
  return value instanceof CidrBlock ? Math.ceil(value.length / 8) : 1;
}

/**
 * Cost of a call at run time, in the units of Kubernetes; 1 for functions without
 * a rule.
 *
 * @param overloads Overloads that the types of the arguments allow; rules know
 * only a single one.
 */
export function callCost(
  name: string,
  overloads: readonly Overload[],
  args: readonly unknown[],
  result: unknown,
): number {
  const id = overloads.length === 1 ? overloads[0]?.id ?? "" : "";
  // Upstream finds these costs by the overload, not by the name.
  if (id === "" && BY_OVERLOAD.has(name)) return 1;
  const rule = Object.hasOwn(RULES, name) ? RULES[name] : undefined;
  return rule?.(args, result, id) ?? 1;
}
