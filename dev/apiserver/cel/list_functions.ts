import { CelError, CelFailure } from "./cel_errors.ts";
import type { FunctionDefinitions } from "./function_declaration.ts";
import { SORT_BY_KEYS } from "./macros.ts";
import { standardFunctions } from "./standard_functions.ts";
import { compare, Duration, equal, typeNameOf, Uint } from "./values.ts";

type List = readonly unknown[];

/** Types whose values are ordered. */
const ORDERED: readonly string[] = [
  "int",
  "uint",
  "double",
  "bool",
  "duration",
  "timestamp",
  "string",
  "bytes",
];

/** Sums of no values. */
const ZEROS: Readonly<Record<string, unknown>> = {
  int: 0n,
  uint: new Uint(0n),
  double: 0,
  duration: new Duration(0n),
};

/** Functions on lists and sets that Kubernetes adds to CEL. */
export const LISTS: FunctionDefinitions = {
  ...Object.fromEntries(ORDERED.flatMap((type) => [
    [`isSorted(this list<${type}>): bool`, isSorted],
    [
      `min(this list<${type}>): ${type}`,
      (list: List) => extreme(list, "min", 1),
    ],
    [
      `max(this list<${type}>): ${type}`,
      (list: List) => extreme(list, "max", -1),
    ],
    [
      `sort(this list<${type}>): list<${type}>`,
      (list: List) => sorted(list, list),
    ],
    [`${SORT_BY_KEYS}(this list<T>, list<${type}>): list<T>`, sorted],
  ])),
  ...Object.fromEntries(
    Object.entries(ZEROS).map(([type, zero]) => [
      `sum(this list<${type}>): ${type}`,
      (list: List) => list.reduce(added, zero),
    ]),
  ),
  "indexOf(this list<A>, A): int": (list: List, searched: unknown) =>
    BigInt(list.findIndex((item) => equal(item, searched))),
  "lastIndexOf(this list<A>, A): int": (list: List, searched: unknown) =>
    BigInt(list.findLastIndex((item) => equal(item, searched))),
  "slice(this list<T>, int, int): list<T>": slice,
  "flatten(this list<list<T>>): list<T>": (list: List) => flatten(list, 1n),
  "flatten(this list<dyn>, int): list<dyn>": flatten,
  "lists.range(int): list<int>": range,
  "reverse(this list<T>): list<T>": (list: List) => list.toReversed(),
  "distinct(this list<T>): list<T>": distinct,
  "sets.contains(list<T>, list<T>): bool": contains,
  "sets.equivalent(list<T>, list<T>): bool": (a: List, b: List) =>
    contains(a, b) && contains(b, a),
  "sets.intersects(list<T>, list<T>): bool": (a: List, b: List) =>
    a.some((item) => contains(b, [item])),
};

/** Sum of two values by the operator of CEL. */
function added(sum: unknown, item: unknown): unknown {
  if (sum instanceof CelError) return sum;
  const type = typeNameOf(sum).replace("google.protobuf.Duration", "duration");
  const overload = standardFunctions().get("_+_")
    ?.find(({ id }) => id.startsWith(`_+_(${type}, ${type})`));
  return typeNameOf(sum) === typeNameOf(item) && overload
    ? overload.run(sum as never, item as never)
    : new CelError("no such overload");
}

function distinct(list: List): unknown[] {
  const kept: unknown[] = [];
  for (const item of list) {
    if (!kept.some((one) => equal(one, item))) kept.push(item);
  }
  return kept;
}

function range(count: bigint): bigint[] {
  if (count < 0n) {
    throw new CelFailure(
      `lists.range: size must be non-negative, got ${count}`,
    );
  }
  return Array.from({ length: Number(count) }, (_, i) => BigInt(i));
}

function slice(list: List, start: bigint, end: bigint): List {
  const fail = (why: string): never => {
    throw new CelFailure(`cannot slice(${start}, ${end}), ${why}`);
  };
  if (start < 0n || end < 0n) fail("negative indexes not supported");
  if (start > end) fail("start index must be less than or equal to end index");
  if (end > list.length) fail(`list is length ${list.length}`);
  return list.slice(Number(start), Number(end));
}

function flatten(list: List, depth: bigint): unknown[] {
  if (depth < 0n) throw new CelFailure("level must be non-negative");
  return list.flatMap((item) =>
    depth > 0n && Array.isArray(item) ? flatten(item, depth - 1n) : [item]
  );
}

function contains(list: List, others: List): boolean {
  return others.every((other) => list.some((item) => equal(item, other)));
}

function isSorted(list: List): boolean {
  return list.every((item, index) =>
    index === 0 || compare(list[index - 1], item) !== 1
  );
}

/** Items in the order of their keys. */
function sorted(list: List, keys: List): List {
  const type = typeNameOf(keys[0]);
  if (keys.some((key) => typeNameOf(key) !== type)) {
    throw new CelFailure("list elements must have the same type");
  }
  return list.map((item, index) => ({ item, key: keys[index] }))
    .sort((a, b) => {
      const order = compare(a.key, b.key);
      return order instanceof CelError ? 0 : order;
    })
    .map(({ item }) => item);
}

/** First item to which no other one is preferred. */
function extreme(list: List, name: string, preferred: 1 | -1): unknown {
  if (list.length === 0) throw new CelFailure(`${name} called on empty list`);
  return list.reduce((best, item) =>
    compare(best, item) === preferred ? item : best
  );
}
