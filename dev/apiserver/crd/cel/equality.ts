/** List of CEL, as an array or a set. */
export type CelList = Iterable<unknown>;

/**
 * Whether two CEL values are equal: ints and doubles by numeric value, maps and
 * objects by field, lists by item, sets in any order.
 */
export function celEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (isNumber(a) && isNumber(b)) return a == b;
  if (typeof a !== "object" || typeof b !== "object" || !a || !b) return false;
  if (isList(a) && isList(b)) return listsEqual(a, b);
  if (a instanceof Map && b instanceof Map) {
    return a.size === b.size &&
      [...a].every(([key, value]) => b.has(key) && celEqual(value, b.get(key)));
  }
  if (a.constructor !== b.constructor) return false;
  if (a instanceof Date) return a.getTime() === (b as Date).getTime();
  if (a instanceof Uint8Array) {
    return a.length === (b as Uint8Array).length &&
      a.every((byte, index) => byte === (b as Uint8Array)[index]);
  }
  const names = Object.keys(a);
  if (names.length === 0 && String(a) !== "[object Object]") {
    return String(a) === String(b);
  }
  return names.length === Object.keys(b).length &&
    names.every((name) =>
      Object.hasOwn(b, name) &&
      celEqual(a[name as keyof object], b[name as keyof object])
    );
}

function isNumber(value: unknown): value is bigint | number {
  return typeof value === "bigint" || typeof value === "number";
}

/** Whether the value is a list; lists of type `set` and `map` are JavaScript sets. */
export function isList(
  value: unknown,
): value is readonly unknown[] | ReadonlySet<unknown> {
  return Array.isArray(value) || value instanceof Set;
}

function listsEqual(a: Iterable<unknown>, b: Iterable<unknown>): boolean {
  const left = [...a];
  const right = [...b];
  if (left.length !== right.length) return false;
  return a instanceof Set || b instanceof Set
    ? left.every((item) => right.some((other) => celEqual(item, other)))
    : left.every((item, index) => celEqual(item, right[index]));
}
