import {
  ACCESS_CHECK,
  LIST_COST,
  MESSAGE_COST,
  PATTERN,
  TRAVERSAL,
} from "./actual_costs.ts";
import type { CelType } from "./cel_type.ts";
import {
  ANY_SIZE,
  exactly,
  ONE,
  plus,
  sizeProduct,
  type SizeRange,
  sizeSum,
  times,
  UNBOUNDED,
} from "./size_range.ts";

/** Argument of a call, or its receiver. */
export interface Operand {
  readonly type: CelType;
  /** Size, if it is known. */
  readonly size: SizeRange | undefined;
  /** Size of the items of a list; of unknown size if it is not known. */
  readonly itemSize: SizeRange;
  /** Value of a literal; undefined for other expressions. */
  readonly literal: unknown;
}

/** Greatest cost of a call, without the costs of its arguments. */
export interface CallCost {
  readonly cost: number;
  /** Size of the result, if known. */
  readonly size?: SizeRange | undefined;
}

/** Cost of a call by its operands, the receiver first. */
type CallRule = (operands: readonly Operand[], id: string) =>
  | CallCost
  | undefined;

const NOMINAL: CallCost = { cost: 1 };

function sizeOf(operand: Operand | undefined): SizeRange {
  return operand?.size ?? ANY_SIZE;
}

function traversal({ max }: SizeRange, factor = 1): number {
  return times(max, factor * TRAVERSAL);
}

/** Creates the rule of a function that traverses one of its operands. */
function traverses(position: number, factor = 1): CallRule {
  return (operands) => ({
    cost: traversal(sizeOf(operands[position]), factor),
  });
}

/** Cost of a function that traverses a text and returns one of the same size. */
const rewrites: CallRule = ([text]) => {
  const size = sizeOf(text);
  return { cost: traversal(size), size };
};

/** Cost of a function that compares the items of a list, or searches a text. */
const compares: CallRule = ([target]) => {
  const size = sizeOf(target);
  const item = target?.type.params[0];
  if (target === undefined || item === undefined) {
    return { cost: traversal(size) };
  }
  const texts = item.kind === "string" || item.kind === "bytes";
  return {
    cost: times(size.max, texts ? 1 + traversal(target.itemSize) : 1),
  };
};

/** Cost of a function that makes a list of the given size. */
function newList(size: SizeRange, factor = 1): CallCost {
  return { cost: plus(times(size.max, factor), 1 + LIST_COST), size };
}

function comparesAll(list: Operand | undefined, factor: number): CallCost {
  const size = sizeOf(list);
  return newList(sizeProduct(size, size), factor);
}

/** Creates the rule of a function that sorts by one of its operands. */
function sorts(position: number): CallRule {
  return (operands, id) =>
    comparesAll(
      operands[position],
      /list<(?:string|bytes)>/.test(id) ? 2 + TRAVERSAL : 2,
    );
}

/** Value of a literal number that is not negative; else the given one. */
function countOf(operand: Operand | undefined, other: number): number {
  const { literal } = operand ?? {};
  return typeof literal === "bigint" ? Math.max(0, Number(literal)) : other;
}

const slices: CallRule = ([list, start, end]) => {
  const size = countOf(end, sizeOf(list).max) - countOf(start, 0);
  // As upstream, the difference of unsigned numbers has no sign.
  return newList(exactly(size < 0 ? UNBOUNDED : size));
};

const replaces: CallRule = ([text, replaced, replacement]) => {
  const size = sizeOf(text);
  const old = sizeOf(replaced);
  const next = sizeOf(replacement);
  const longest = old.min === 0
    ? plus(times(plus(size.max, 1), next.max), size.max)
    : next.max <= old.min
    ? size.max
    : times(Math.ceil(size.max / old.min), next.max);
  const shortest = old.max === 0
    ? plus(times(plus(size.min, 1), next.min), size.min)
    : old.max <= next.min
    ? size.min
    : times(Math.ceil(size.min / old.max), next.min);
  return {
    cost: traversal(size, 2),
    size: { min: shortest, max: longest },
  };
};

const splits: CallRule = ([text, , limit]) => {
  const size = sizeOf(text);
  const count = limit?.literal;
  // As upstream, a negative limit is a large number without sign.
  const max = typeof count !== "bigint"
    ? size.max
    : count < 0n
    ? UNBOUNDED
    : Number(count);
  return { cost: traversal(size, 2), size: { min: 0, max } };
};

const joins: CallRule = ([list, separator]) => {
  const count = sizeOf(list);
  const hasItems = (list?.type.params.length ?? 0) > 0;
  const texts = list && hasItems
    ? sizeProduct(count, list.itemSize)
    : exactly(0);
  const between = {
    min: Math.max(0, count.min - 1),
    max: Math.max(0, count.max - 1),
  };
  const size = separator === undefined
    ? texts
    : sizeSum(texts, sizeProduct(sizeOf(separator), between));
  return { cost: traversal(size), size };
};

function matching(text: SizeRange, pattern: SizeRange): number {
  return times(traversal(sizeSum(text, ONE)), times(pattern.max, PATTERN));
}

const finds: CallRule = ([text, pattern]) => {
  const size = sizeOf(text);
  return {
    cost: matching(size, sizeOf(pattern)),
    size: { min: 0, max: size.max },
  };
};

const matches: CallRule = ([text, pattern]) => ({
  cost: matching(sizeOf(text), sizeOf(pattern)),
});

/** Size of an IP address in bytes. */
const ADDRESS: SizeRange = { min: 4, max: 16 };

const COMPARED_ADDRESS = traversal(sizeSum(ADDRESS, ADDRESS));

const containsAddress: CallRule = ([, address], id) => ({
  cost: plus(
    COMPARED_ADDRESS,
    id.includes("string") ? traversal(sizeOf(address)) : 0,
  ),
});

const containsBlock: CallRule = ([, block], id) => ({
  cost: plus(
    COMPARED_ADDRESS + traversal(ADDRESS) + 1,
    id.includes("string") ? traversal(sizeOf(block)) : 0,
  ),
});

function setRelation(factor: number): CallRule {
  return ([a, b]) => ({
    cost: plus(times(sizeProduct(sizeOf(a), sizeOf(b)).max, factor), 1),
  });
}

const selects: CallRule = ([, text]) => {
  const { max } = sizeOf(text);
  return {
    cost: plus(
      LIST_COST,
      times(max, TRAVERSAL),
      times(times(max, 0.5), LIST_COST + MESSAGE_COST),
    ),
  };
};

const quotes: CallRule = ([text]) => {
  const size = sizeOf(text);
  return {
    cost: traversal(size),
    // As upstream, twice the greatest number and two is unlimited.
    size: {
      min: size.min + 2,
      max: size.max >= UNBOUNDED ? 0 : plus(times(size.max, 2), 2),
    },
  };
};

const toBytes: CallRule = ([text], id) => {
  if (!id.startsWith("bytes(string)")) return undefined;
  const size = sizeOf(text);
  return {
    cost: traversal(size),
    size: { min: size.min, max: times(size.max, 4) },
  };
};

const toText: CallRule = ([bytes], id) => {
  if (!id.startsWith("string(bytes)")) return undefined;
  const size = sizeOf(bytes);
  return {
    cost: traversal(size),
    size: { min: Math.floor(size.min / 4), max: size.max },
  };
};

function comparison([a, b]: readonly Operand[]): CallCost {
  return {
    cost: traversal({ min: 0, max: Math.min(sizeOf(a).max, sizeOf(b).max) }),
  };
}

const ordered: CallRule = (operands, id) =>
  /\((?:string|bytes),/.test(id) ? comparison(operands) : undefined;

/** Types whose values are compared in constant time. */
const CONSTANT_TIME: ReadonlySet<string> = new Set([
  "kubernetes.Quantity",
  "kubernetes.Semver",
  "net.IP",
  "net.CIDR",
]);

/** Maximum length of a named format. */
const FORMAT_SIZE = 64;

/** Maximum length of the pattern of a named format. */
const FORMAT_PATTERN_SIZE = 128;

const equals: CallRule = (operands) => {
  const [a, b] = operands;
  const name = a?.type.name ?? "";
  if (name !== b?.type.name) return comparison(operands);
  if (CONSTANT_TIME.has(name)) return NOMINAL;
  if (name === "kubernetes.NamedFormat") {
    return { cost: times(FORMAT_SIZE, TRAVERSAL) };
  }
  if (name === "kubernetes.URL") return { cost: traversal(b?.size ?? ONE) };
  return comparison(operands);
};

const adds: CallRule = ([a, b], id) => {
  const texts = /\((?:string|bytes),/.test(id);
  if (!texts && !id.includes("(list<")) return undefined;
  const size = sizeSum(sizeOf(a), sizeOf(b));
  return { cost: texts ? traversal(size) : 1, size };
};

/** Costs of functions by name. */
const RULES: Readonly<Record<string, CallRule>> = {
  check: () => ({ cost: ACCESS_CHECK }),
  fieldSelector: selects,
  labelSelector: selects,
  isSorted: compares,
  sum: compares,
  max: compares,
  min: compares,
  indexOf: compares,
  lastIndexOf: compares,
  url: rewrites,
  "jsonpatch.escapeKey": rewrites,
  lowerAscii: rewrites,
  upperAscii: rewrites,
  substring: rewrites,
  trim: rewrites,
  replace: replaces,
  split: splits,
  join: joins,
  find: finds,
  findAll: finds,
  cidr: traverses(0),
  isIP: traverses(0),
  isCIDR: traverses(0),
  ip: (operands, id) =>
    id.startsWith("ip(this") ? NOMINAL : traverses(0)(operands, id),
  "ip.isCanonical": traverses(0, 2),
  containsIP: containsAddress,
  containsCIDR: containsBlock,
  quantity: traverses(0),
  isQuantity: traverses(0),
  semver: traverses(0),
  isSemver: traverses(0),
  validate: ([, text]) => ({
    cost: times(traversal(sizeOf(text)), FORMAT_PATTERN_SIZE * PATTERN),
  }),
  "_==_": equals,
  "_!=_": (operands) => comparison(operands),
  "_<_": ordered,
  "_<=_": ordered,
  "_>_": ordered,
  "_>=_": ordered,
  "_+_": adds,
  "@in": ([, list], id) =>
    id.includes("list<") ? { cost: sizeOf(list).max } : undefined,
  format: traverses(0),
  bytes: toBytes,
  string: toText,
  "strings.quote": quotes,
  startsWith: traverses(1),
  endsWith: traverses(1),
  matches,
  contains: ([text, part]) => ({
    cost: times(traversal(sizeOf(text)), traversal(sizeOf(part))),
  }),
  slice: slices,
  "lists.range": ([count]) => newList(exactly(countOf(count, UNBOUNDED))),
  reverse: ([list]) => newList(sizeOf(list)),
  flatten: ([list, depth]) =>
    newList(sizeOf(list), depth ? countOf(depth, UNBOUNDED) : 1),
  distinct: ([list]) => comparesAll(list, 2),
  sort: sorts(0),
  "@sortByAssociatedKeys": sorts(1),
  "sets.contains": setRelation(1),
  "sets.intersects": setRelation(1),
  "sets.equivalent": setRelation(2),
};

/**
 * Greatest cost of a call; 1 for functions without a rule.
 *
 * @param id Signature of the overload.
 */
export function estimatedCost(
  name: string,
  id: string,
  operands: readonly Operand[],
): CallCost {
  const rule = Object.hasOwn(RULES, name) ? RULES[name] : undefined;
  return rule?.(operands, id) ?? NOMINAL;
}
