/** JSON with texts of its own, which TypeScript's library does not declare yet. */
const json: typeof JSON & {
  rawJSON(text: string): unknown;
  parse(
    text: string,
    revive: (name: string, value: unknown, at: { source: string }) => unknown,
  ): unknown;
} = JSON as never;

const LEAST = -(2n ** 63n);
const MOST = 2n ** 63n - 1n;

/** A run of digits that may be an integer beyond 2^53. */
const MANY_DIGITS = /\d{16}/;

/**
 * Reads JSON as Go reads data without a schema: an integer of 64 bits is exact.
 * It is a `bigint` if a double could not tell it from its neighbours; every other
 * number is a double, so one beyond 2^53 is no integer to Go.
 *
 * @throws {SyntaxError} If the text is not JSON.
 */
export function readJson(text: string): unknown {
  return MANY_DIGITS.test(text)
    ? json.parse(text, exactInteger)
    : JSON.parse(text);
}

/** A number with a fraction or exponent, outside of a text in most cases. */
const FLOAT =
  /(?:^|[:,[])\s*-?\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+)\s*(?:[,}\]]|$)/;

/** Whether a JSON text may have a number with a fraction or an exponent. */
export function mayHaveFloats(text: string): boolean {
  return FLOAT.test(text);
}

/**
 * A number that is written with a fraction or an exponent, as in `5.0` or `1e3`,
 * between a body and its decoder; its description is the text. Go reads a float64,
 * even if it is whole, and never an integer.
 */
export type WrittenFloat = symbol & { readonly description: string };

/** Whether a part of a body is a number that was written as a float. */
export function isFloat(part: unknown): part is WrittenFloat {
  return typeof part === "symbol";
}

/** Reads JSON like {@linkcode readJson}, but with floats as they are written. */
export function readWrittenJson(text: string): unknown {
  if (!mayHaveFloats(text)) return readJson(text);
  const value = json.parse(
    text,
    (name: string, part: unknown, at: { readonly source: string }) =>
      typeof part === "number" && /[.eE]/.test(at.source)
        ? Symbol(at.source)
        : exactInteger(name, part, at),
  );
  return isFloat(value) ? Number(value.description) : value;
}

/** Fields and items that were written as floats, by their object or list. */
const floats = new WeakMap<object, Set<string>>();

/** Whether a field or item of an object was written as a float. */
export function isWrittenFloat(owner: object, name: string | number): boolean {
  return floats.get(owner)?.has(String(name)) === true;
}

/**
 * Makes plain numbers of floats in a value, in place, and remembers which they
 * were.
 */
export function takeFloats(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const [name, part] of Object.entries(value)) {
    if (!isFloat(part)) takeFloats(part);
    else {
      Reflect.set(value, name, Number(part.description));
      floats.set(value, (floats.get(value) ?? new Set()).add(name));
    }
  }
}

function exactInteger(
  _: string,
  value: unknown,
  { source }: { readonly source: string },
): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  if (!/^-?\d+$/.test(source)) return value;
  const integer = BigInt(source);
  return integer >= LEAST && integer <= MOST ? integer : value;
}

/** Writes JSON, with integers of 64 bits by their digits; null for undefined. */
export function writeJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "null";
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return JSON.stringify(value, (_, part: unknown) => rawInteger(part));
  }
}

/** Part of a value for `JSON.stringify`, which refuses a `bigint`. */
export function rawInteger(part: unknown): unknown {
  return typeof part === "bigint"
    ? json.rawJSON(`${part}`)
    : isFloat(part)
    ? json.rawJSON(part.description)
    : part;
}

/** Whether Go reads a number as an integer, which has 64 bits. */
export function isInteger(value: unknown): value is number | bigint {
  return typeof value === "bigint" || Number.isSafeInteger(value);
}

/** Whether a value of JSON is a number. */
export function isNumber(value: unknown): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}
