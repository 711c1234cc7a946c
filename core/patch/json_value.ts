/** JSON object. */
export interface JsonObject {
  /** Value of a field. */
  [name: string]: unknown;
}

/** Whether a value is a JSON object: neither null nor an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
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
      yield* differences(before[name], after[name], [...path, name]);
    }
  } else {
    yield {
      path,
      ...(before !== undefined && { before }),
      ...(after !== undefined && { after }),
    };
  }
}
