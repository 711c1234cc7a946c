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
  return typeof part === "bigint" ? json.rawJSON(`${part}`) : part;
}

/** Whether Go reads a number as an integer, which has 64 bits. */
export function isInteger(value: unknown): value is number | bigint {
  return typeof value === "bigint" || Number.isSafeInteger(value);
}

/** Whether a value of JSON is a number. */
export function isNumber(value: unknown): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}
