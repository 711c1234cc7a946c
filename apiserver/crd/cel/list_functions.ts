import type { Environment } from "@marcbachmann/cel-js";
import { CelFailure, celTypeName } from "./cel_failure.ts";
import { celEqual } from "./equality.ts";

type List = Iterable<unknown>;

/** What `sets.contains` and its like are called on. */
class Sets {}

const DURATION = "google.protobuf.Duration";
const TIMESTAMP = "google.protobuf.Timestamp";

/** The types whose values have an order. */
const ORDERED: readonly string[] = [
  "int",
  "double",
  "bool",
  "string",
  "bytes",
  DURATION,
  TIMESTAMP,
];

/** The functions on lists and sets that Kubernetes adds to CEL's own. */
export function registerListFunctions(environment: Environment): void {
  for (const type of ORDERED) {
    environment
      .registerFunction(`list<${type}>.isSorted(): bool`, isSorted)
      .registerFunction(`list<${type}>.min(): ${type}`, least)
      .registerFunction(`list<${type}>.max(): ${type}`, greatest);
  }
  environment
    .registerFunction(
      "list<int>.sum(): int",
      (list: Iterable<bigint>) => [...list].reduce((sum, one) => sum + one, 0n),
    )
    .registerFunction(
      "list<double>.sum(): double",
      (list: Iterable<number>) => [...list].reduce((sum, one) => sum + one, 0),
    )
    .registerFunction(
      "list<A>.indexOf(A): int",
      (list: List, one: unknown) =>
        BigInt([...list].findIndex((item) => celEqual(item, one))),
    )
    .registerFunction(
      "list<A>.lastIndexOf(A): int",
      (list: List, one: unknown) =>
        BigInt([...list].findLastIndex((item) => celEqual(item, one))),
    )
    .registerType("SetsNamespace", { ctor: Sets })
    .registerConstant("sets", "SetsNamespace", new Sets())
    .registerFunction(
      "SetsNamespace.contains(list<A>, list<A>): bool",
      (_: Sets, list: List, others: List) => contains(list, others),
    )
    .registerFunction(
      "SetsNamespace.equivalent(list<A>, list<A>): bool",
      (_: Sets, list: List, others: List) =>
        contains(list, others) && contains(others, list),
    )
    .registerFunction(
      "SetsNamespace.intersects(list<A>, list<A>): bool",
      (_: Sets, list: List, others: List) =>
        [...others].some((one) => contains(list, [one])),
    );
}

function contains(list: List, others: List): boolean {
  const items = [...list];
  return [...others].every((other) =>
    items.some((item) => celEqual(item, other))
  );
}

/** Below zero if `a` comes first. */
function compare(a: unknown, b: unknown): number {
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

function isSorted(list: List): boolean {
  const items = [...list];
  return items.every((item, index) =>
    index === 0 || compare(items[index - 1], item) <= 0
  );
}

function least(list: List): unknown {
  return extreme(list, "min", (a, b) => compare(a, b) <= 0);
}

function greatest(list: List): unknown {
  return extreme(list, "max", (a, b) => compare(a, b) >= 0);
}

function extreme(
  list: List,
  name: string,
  wins: (a: unknown, b: unknown) => boolean,
): unknown {
  const items = [...list];
  if (items.length === 0) throw new CelFailure(`${name} called on empty list`);
  return items.reduce((best, item) => wins(best, item) ? best : item);
}
