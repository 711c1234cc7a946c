/** JSON object. */
export interface JsonObject {
  /** Value of a field. */
  [name: string]: unknown;
}

/** Whether a value is a JSON object: neither null nor an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Value of an own field; undefined without one. Plain access would also find what
 * every object inherits, such as `constructor`.
 */
export function ownValue<Value>(
  object: Readonly<Record<string, Value>>,
  name: string,
): Value | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Sets an own field, even `__proto__`, which an assignment would not create. */
export function setOwn(object: object, name: string, value: unknown): void {
  if (name !== "__proto__") (object as JsonObject)[name] = value;
  else {
    const field = { value, writable: true, enumerable: true };
    Object.defineProperty(object, name, { ...field, configurable: true });
  }
}

/** Whether two JSON values are equal, regardless of the order of fields. */
export function jsonEquals(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length &&
      a.every((item, index) => jsonEquals(item, b[index]));
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length &&
    names.every((name) =>
      Object.hasOwn(b, name) && jsonEquals(a[name], b[name])
    );
}

/**
 * Finds an integer beyond 2^53 − 1 in a JSON value, which may be another than the
 * server has stored: JavaScript rounds it when it reads it. Beyond 64 bits, servers
 * round as well.
 *
 * @returns Path of the first, as in `spec.limits[0]`; undefined if none exists.
 */
export function roundedInteger(value: unknown): string | undefined {
  if (typeof value === "number") {
    const mayDiffer = Number.isInteger(value) &&
      !Number.isSafeInteger(value) && Math.abs(value) <= 2 ** 63;
    return mayDiffer ? "" : undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const isList = Array.isArray(value);
  for (const [name, item] of Object.entries(value)) {
    const below = roundedInteger(item);
    if (below === undefined) continue;
    const step = isList ? `[${name}]` : name;
    return `${step}${/^(\[|$)/.test(below) ? "" : "."}${below}`;
  }
  return undefined;
}

/**
 * Checks that a value that is computed from what was read has no integer that
 * reading has rounded.
 *
 * @param action Text of the error: what cannot be done.
 * @throws {RangeError} If it has one, which it names.
 */
export function checkIntegers(action: string, value: unknown): void {
  const path = roundedInteger(value);
  if (path === undefined) return;
  throw new RangeError(
    `Cannot ${action}: "${path}" is an integer beyond 2^53 − 1, which JavaScript rounds; patch or apply the other fields alone, or make it a text`,
  );
}

/** Value that differs between two JSON values; a side is absent if it has none. */
export interface JsonDifference {
  readonly path: readonly (string | number)[];
  readonly before?: unknown;
  readonly after?: unknown;
}

/**
 * Finds the deepest values that differ between two JSON values. Lists of different
 * lengths differ as a whole.
 */
export function* differences(
  before: unknown,
  after: unknown,
  path: JsonDifference["path"] = [],
): Generator<JsonDifference> {
  if (jsonEquals(before, after)) return;
  const areLists = Array.isArray(before) && Array.isArray(after) &&
    before.length === after.length;
  if (areLists) {
    for (const [index, item] of before.entries()) {
      yield* differences(item, after[index], [...path, index]);
    }
  } else if (isJsonObject(before) && isJsonObject(after)) {
    for (const name of Object.keys({ ...before, ...after })) {
      yield* differences(ownValue(before, name), ownValue(after, name), [
        ...path,
        name,
      ]);
    }
  } else {
    yield {
      path,
      ...(before !== undefined && { before }),
      ...(after !== undefined && { after }),
    };
  }
}
