import type { Optional } from "@marcbachmann/cel-js";
import { type CelExtension, celLibrary } from "./cel_library.ts";
import { CelFailure, celTypeName } from "./cel_failure.ts";
import { celEqual, type CelList, isList } from "./equality.ts";

const DURATION = "google.protobuf.Duration";
const TIMESTAMP = "google.protobuf.Timestamp";

/** Types whose values are ordered. */
export const ORDERED: readonly string[] = [
  "int",
  "double",
  "bool",
  "string",
  "bytes",
  DURATION,
  TIMESTAMP,
];

/** Functions on lists and sets that Kubernetes adds to CEL. */
export const LISTS: CelExtension = {
  namespaces: { lists: "ListsNamespace", sets: "SetsNamespace" },
  functions: {
    ...Object.fromEntries(ORDERED.flatMap((type) => [
      [`list<${type}>.isSorted(): bool`, isSorted],
      [`list<${type}>.min(): ${type}`, least],
      [`list<${type}>.max(): ${type}`, greatest],
      [
        `list<${type}>.sort(): list<${type}>`,
        (list: CelList) => [...list].sort(compare),
      ],
    ])),
    "list<int>.sum(): int": (list: Iterable<bigint>) =>
      [...list].reduce((sum, item) => sum + item, 0n),
    "list<double>.sum(): double": (list: Iterable<number>) =>
      [...list].reduce((sum, item) => sum + item, 0),
    "list<A>.indexOf(A): int": (list: CelList, searched: unknown) =>
      BigInt([...list].findIndex((item) => celEqual(item, searched))),
    "list<A>.lastIndexOf(A): int": (list: CelList, searched: unknown) =>
      BigInt([...list].findLastIndex((item) => celEqual(item, searched))),
    "list<A>.reverse(): list<A>": (list: CelList) => [...list].reverse(),
    "optional<A> == optional<A>": (a: Optional, b: Optional) =>
      a.hasValue() === b.hasValue() &&
      (!a.hasValue() || celEqual(a.value(), b.value())),
    "optional<dyn> == null": () => false,
    "list<A>.first(): optional<A>": (list: CelList) =>
      present([...list].slice(0, 1)),
    "list<A>.last(): optional<A>": (list: CelList) =>
      present([...list].slice(-1)),
    "list<A>.distinct(): list<A>": distinct,
    "list<A>.slice(int, int): list<A>": slice,
    "list<list<A>>.flatten(): list<A>": (list: CelList) => flatten(list, 1n),
    "list<dyn>.flatten(int): list<dyn>": flatten,
    "ListsNamespace.range(int): list<int>": (_: unknown, count: bigint) =>
      Array.from({ length: Math.max(0, Number(count)) }, (_, i) => BigInt(i)),
    "SetsNamespace.contains(list<A>, list<A>): bool": (
      _: unknown,
      list: CelList,
      others: CelList,
    ) => contains(list, others),
    "SetsNamespace.equivalent(list<A>, list<A>): bool": (
      _: unknown,
      list: CelList,
      others: CelList,
    ) => contains(list, others) && contains(others, list),
    "SetsNamespace.intersects(list<A>, list<A>): bool": (
      _: unknown,
      list: CelList,
      others: CelList,
    ) => [...others].some((item) => contains(list, [item])),
  },
};

/** First item of a list as an optional value. */
function present(items: readonly unknown[]): unknown {
  const { Optional } = celLibrary();
  return items.length > 0 ? Optional.of(items[0]) : Optional.none();
}

function distinct(list: CelList): unknown[] {
  const kept: unknown[] = [];
  for (const item of list) {
    if (!kept.some((one) => celEqual(one, item))) kept.push(item);
  }
  return kept;
}

function slice(list: CelList, start: bigint, end: bigint): unknown[] {
  const items = [...list];
  const range = `slice(${start}, ${end})`;
  const fail = (why: string) => {
    throw new CelFailure(`cannot ${range}, ${why}`);
  };
  if (start < 0n || end < 0n) fail("negative indexes not supported");
  if (start > end) fail("start index must be less than or equal to end index");
  if (end > items.length) fail(`list is length ${items.length}`);
  return items.slice(Number(start), Number(end));
}

function flatten(list: CelList, depth: bigint): unknown[] {
  if (depth < 0n) throw new CelFailure("level must be non-negative");
  return [...list].flatMap((item) =>
    depth > 0n && isList(item) ? flatten(item, depth - 1n) : [item]
  );
}

function contains(list: CelList, others: CelList): boolean {
  const items = [...list];
  return [...others].every((other) =>
    items.some((item) => celEqual(item, other))
  );
}

/** Compares two values; negative if `a` is less than `b`. */
export function compare(a: unknown, b: unknown): number {
  const left = orderOf(a);
  const right = orderOf(b);
  return left < right ? -1 : left > right ? 1 : 0;
}

function orderOf(value: unknown): number | bigint | string {
  switch (typeof value) {
    case "bigint":
    case "number":
    case "string":
      return value;
    case "boolean":
      return Number(value);
  }
  if (value instanceof Uint8Array) {
    return String.fromCharCode(...value);
  }
  if (value instanceof Date) return value.getTime();
  const duration = value as {
    readonly seconds?: bigint;
    readonly nanos?: number;
  };
  if (duration?.seconds === undefined) {
    throw new CelFailure(`values of type ${celTypeName(value)} have no order`);
  }
  return duration.seconds * 1_000_000_000n + BigInt(duration.nanos ?? 0);
}

function isSorted(list: CelList): boolean {
  const items = [...list];
  return items.every((item, index) =>
    index === 0 || compare(items[index - 1], item) <= 0
  );
}

function least(list: CelList): unknown {
  return extreme(list, "min", (a, b) => compare(a, b) <= 0);
}

function greatest(list: CelList): unknown {
  return extreme(list, "max", (a, b) => compare(a, b) >= 0);
}

function extreme(
  list: CelList,
  name: string,
  wins: (a: unknown, b: unknown) => boolean,
): unknown {
  const items = [...list];
  if (items.length === 0) throw new CelFailure(`${name} called on empty list`);
  return items.reduce((best, item) => wins(best, item) ? best : item);
}
