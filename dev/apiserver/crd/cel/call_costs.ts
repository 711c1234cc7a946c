import type { CostKind, CostType } from "./declared_type.ts";
import {
  ANY_SIZE,
  ONE,
  PATTERN,
  sizeProduct,
  type SizeRange,
  sizeSum,
  sizeUnion,
  times,
  TRAVERSAL,
  UNBOUNDED,
} from "./size_range.ts";

/** Operand of a call or operator. */
export interface Operand {
  readonly type: CostType;
  /** Size, if the expression or a schema determines it. */
  readonly size: SizeRange | undefined;
  /** Size of the items, if a schema determines it. */
  readonly itemSize: SizeRange | undefined;
  /** Whether the size was computed from the expression, not taken from a schema. */
  readonly computed: boolean;
  /** Value of a literal; undefined otherwise. */
  readonly literal: unknown;
}

/** Cost of a call, without the costs of its operands. */
export interface CallCost {
  readonly cost: number;
  /** Size of the result, if known. */
  readonly size?: SizeRange | undefined;
}

type CallRule = (operands: readonly Operand[]) => CallCost;

const NOMINAL: CallCost = { cost: 1 };

/** Size of an operand; 1 for scalars. */
export function sizeOf({ size, type }: Operand): SizeRange {
  return size ?? (type.kind === "scalar" ? ONE : ANY_SIZE);
}

/** Size of an operand for the CEL functions of Kubernetes, which do not treat scalars separately. */
function ownSize(operand: Operand | undefined): SizeRange {
  return operand?.size ?? ANY_SIZE;
}

function traversal({ max }: SizeRange, factor = 1): number {
  return times(max, factor * TRAVERSAL);
}

/** Creates the cost rule of a function that traverses one of its operands. */
function traverses(position: number, factor = 1): CallRule {
  return (operands) => ({
    cost: traversal(ownSize(operands[position]), factor),
  });
}

/** Cost of a function that traverses a text and returns a text of the same size. */
function rewrites(operands: readonly Operand[]): CallCost {
  const size = ownSize(operands[0]);
  return { cost: traversal(size), size };
}

/** Cost of a function that compares the items of a list, or searches a text. */
function compares([target]: readonly Operand[]): CallCost {
  const size = ownSize(target);
  const elements = target?.type.elements;
  if (elements === undefined) return { cost: traversal(size) };
  const texts = elements.kind === "string" || elements.kind === "bytes";
  const each = texts ? 1 + traversal(target?.itemSize ?? ANY_SIZE) : 1;
  return { cost: times(size.max, each) };
}

/** Cost of a function that returns a new list of the given size. */
function newList(size: SizeRange, factor = 1): CallCost {
  return { cost: times(size.max, factor) + 11, size };
}

/** Cost of a function that compares all items of a list with each other. */
function comparesAll([target]: readonly Operand[]): CallCost {
  const size = ownSize(target);
  return newList(sizeProduct(size, size), 2);
}

function sorts(operands: readonly Operand[]): CallCost {
  const [target] = operands;
  const kind = target?.type.elements?.kind;
  if (kind !== "string" && kind !== "bytes") return comparesAll(operands);
  const size = ownSize(target);
  return newList(sizeProduct(size, size), 2 + TRAVERSAL);
}

function flattens([target, depth]: readonly Operand[]): CallCost {
  return newList(ownSize(target), depth ? countOf(depth) : 1);
}

/** Value of a literal number; unlimited if the number is computed. */
function countOf(operand: Operand | undefined): number {
  const { literal } = operand ?? {};
  return typeof literal === "bigint" ? Math.max(0, Number(literal)) : UNBOUNDED;
}

function ranges([count]: readonly Operand[]): CallCost {
  const size = countOf(count);
  return newList({ min: size, max: size });
}

function slices([target, start, end]: readonly Operand[]): CallCost {
  const from = typeof start?.literal === "bigint" ? Number(start.literal) : 0;
  const to = typeof end?.literal === "bigint"
    ? Number(end.literal)
    : ownSize(target).max;
  return newList({ min: to - from, max: to - from });
}

function replaces(
  [target, replaced, replacement]: readonly Operand[],
): CallCost {
  const size = ownSize(target);
  const old = ownSize(replaced);
  const next = ownSize(replacement);
  const longest = old.min === 0
    ? times(size.max + 1, next.max) + size.max
    : next.max <= old.min
    ? size.max
    : times(Math.ceil(size.max / old.min), next.max);
  const shortest = old.max === 0
    ? times(size.min + 1, next.min) + size.min
    : old.max <= next.min
    ? size.min
    : times(Math.ceil(size.min / old.max), next.min);
  return {
    cost: traversal(size, 2),
    size: { min: shortest, max: Math.min(longest, UNBOUNDED) },
  };
}

function splits([target, , limit]: readonly Operand[]): CallCost {
  const size = ownSize(target);
  const count = limit?.literal;
  // A negative limit means no limit.
  const max = typeof count !== "bigint"
    ? size.max
    : count < 0n
    ? UNBOUNDED
    : Number(count);
  return { cost: traversal(size, 2), size: { min: 0, max } };
}

function joins([target, separator]: readonly Operand[]): CallCost {
  const count = ownSize(target);
  const texts = target?.type.elements === undefined
    ? { min: 0, max: 0 }
    : sizeProduct(count, target.itemSize ?? ANY_SIZE);
  const between = {
    min: Math.max(0, count.min - 1),
    max: Math.max(0, count.max - 1),
  };
  const size = separator === undefined
    ? texts
    : sizeSum(texts, sizeProduct(ownSize(separator), between));
  return { cost: traversal(size), size };
}

function patternCost(text: SizeRange, pattern: SizeRange): number {
  return times(traversal(sizeSum(text, ONE)), times(pattern.max, PATTERN));
}

function finds([target, pattern]: readonly Operand[]): CallCost {
  const size = ownSize(target);
  return {
    cost: patternCost(size, ownSize(pattern)),
    size: { min: 0, max: size.max },
  };
}

/** Size of an IP address in bytes. */
const ADDRESS: SizeRange = { min: 4, max: 16 };

/** Cost of parsing an operand, if it is a text. */
function parsing(operand: Operand | undefined): number {
  return operand?.type.kind === "string" ? traversal(ownSize(operand)) : 0;
}

function containsAddress([, address]: readonly Operand[]): CallCost {
  return { cost: traversal(sizeSum(ADDRESS, ADDRESS)) + parsing(address) };
}

function containsBlock([, block]: readonly Operand[]): CallCost {
  return {
    cost: traversal(sizeSum(ADDRESS, ADDRESS)) + traversal(ADDRESS) + 1 +
      parsing(block),
  };
}

function setRelation(factor: number): CallRule {
  return ([a, b]) => ({
    cost: times(sizeProduct(ownSize(a), ownSize(b)).max, factor) + 1,
  });
}

function quotes([text]: readonly Operand[]): CallCost {
  const size = text ? sizeOf(text) : ANY_SIZE;
  return {
    cost: traversal(size),
    size: { min: size.min + 2, max: Math.min(size.max * 2 + 2, UNBOUNDED) },
  };
}

/** Whether an operand may have a kind of type at run time. */
function mayBe(operand: Operand | undefined, kind: CostKind): boolean {
  return operand?.type.kind === kind || operand?.type.kind === "dyn";
}

function toBytes([text]: readonly Operand[]): CallCost {
  if (!mayBe(text, "string") || text === undefined) return NOMINAL;
  const { min, max } = sizeOf(text);
  return {
    cost: Math.max(1, traversal({ min, max })),
    size: { min, max: Math.min(max * 4, UNBOUNDED) },
  };
}

function toText([bytes]: readonly Operand[]): CallCost {
  if (!mayBe(bytes, "bytes") || bytes === undefined) return NOMINAL;
  const { min, max } = sizeOf(bytes);
  return {
    cost: traversal({ min, max }),
    size: { min: Math.floor(min / 4), max },
  };
}

/** Cost rules of functions, called as `name(a, b)` or `namespace.name(a, b)`. */
const FUNCTIONS: Readonly<Record<string, CallRule>> = {
  url: rewrites,
  cidr: traverses(0),
  isIP: traverses(0),
  isCIDR: traverses(0),
  ip: traverses(0),
  "ip.isCanonical": traverses(0, 2),
  quantity: traverses(0),
  isQuantity: traverses(0),
  semver: traverses(0),
  isSemver: traverses(0),
  "lists.range": ranges,
  "strings.quote": quotes,
  "sets.contains": setRelation(1),
  "sets.intersects": setRelation(1),
  "sets.equivalent": setRelation(2),
  bytes: toBytes,
  string: toText,
};

/** Cost rules of methods, called as `target.name(a)`; the target is the first operand. */
const METHODS: Readonly<Record<string, CallRule>> = {
  isSorted: compares,
  sum: compares,
  max: compares,
  min: compares,
  indexOf: compares,
  lastIndexOf: compares,
  reverse: ([target]) => newList(ownSize(target)),
  slice: slices,
  distinct: comparesAll,
  sort: sorts,
  flatten: flattens,
  lowerAscii: rewrites,
  upperAscii: rewrites,
  substring: rewrites,
  trim: rewrites,
  replace: replaces,
  split: splits,
  join: joins,
  find: finds,
  findAll: finds,
  containsIP: containsAddress,
  containsCIDR: containsBlock,
  validate: ([, text]) => ({
    cost: times(traversal(ownSize(text)), 128 * PATTERN),
  }),
  format: ([target]) => ({ cost: target ? traversal(sizeOf(target)) : 1 }),
  startsWith: ([, start]) => ({ cost: start ? traversal(sizeOf(start)) : 1 }),
  endsWith: ([, end]) => ({ cost: end ? traversal(sizeOf(end)) : 1 }),
  matches: ([target, pattern]) =>
    target && pattern
      ? { cost: patternCost(sizeOf(target), sizeOf(pattern)) }
      : NOMINAL,
  contains: ([target, part]) =>
    target && part
      ? { cost: times(traversal(sizeOf(target)), traversal(sizeOf(part))) }
      : NOMINAL,
};

/** Cost of a function call; 1 for functions without a rule. */
export function functionCost(
  name: string,
  operands: readonly Operand[],
): CallCost {
  const rule = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined;
  return rule?.(operands) ?? NOMINAL;
}

/** Cost of a method call; 1 for methods without a rule. */
export function methodCost(
  name: string,
  operands: readonly Operand[],
): CallCost {
  const rule = Object.hasOwn(METHODS, name) ? METHODS[name] : undefined;
  return rule?.(operands) ?? NOMINAL;
}

/** Types whose values are compared in constant time. */
const CONSTANT_TIME_TYPES: ReadonlySet<string> = new Set([
  "kubernetes.Quantity",
  "kubernetes.Semver",
  "net.IP",
  "net.CIDR",
]);

function equality(a: Operand, b: Operand): number {
  return traversal({ min: 0, max: Math.min(sizeOf(a).max, sizeOf(b).max) });
}

function same(a: Operand, b: Operand): number {
  const { name } = a.type;
  if (name !== "" && name === b.type.name) {
    if (CONSTANT_TIME_TYPES.has(name)) return 1;
    if (name === "kubernetes.URL") {
      return traversal(b.computed && b.size ? b.size : ONE);
    }
    if (name === "kubernetes.NamedFormat") return times(64, TRAVERSAL);
  }
  return equality(a, b);
}

/** Cost of a binary operator. */
export function operatorCost(name: string, a: Operand, b: Operand): CallCost {
  const both = (kind: CostKind) => mayBe(a, kind) && mayBe(b, kind);
  const either = (kind: CostKind) =>
    a.type.kind === kind || b.type.kind === kind;
  const texts = both("string") || both("bytes");
  switch (name) {
    case "==":
      return { cost: same(a, b) };
    case "!=":
      return { cost: equality(a, b) };
    case "<":
    case "<=":
    case ">":
    case ">=":
      return {
        cost: !texts
          ? 1
          : either("string") || either("bytes")
          ? equality(a, b)
          : Math.max(1, equality(a, b)),
      };
    case "in":
      return {
        cost: b.type.kind === "list"
          ? sizeOf(b).max
          : b.type.kind === "dyn"
          ? Math.max(1, sizeOf(b).max)
          : 1,
      };
    case "+": {
      if (!texts && !both("list")) return NOMINAL;
      const size = sizeSum(sizeOf(a), sizeOf(b));
      const certain = either("string") || either("bytes");
      const cost = texts ? traversal(size) : 1;
      return { cost: certain ? cost : Math.max(1, cost), size };
    }
    default:
      return NOMINAL;
  }
}

/** Size of the result of a conditional expression. */
export function choiceSize(a: Operand, b: Operand): SizeRange {
  return sizeUnion(sizeOf(a), sizeOf(b));
}
