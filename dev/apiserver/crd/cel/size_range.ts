/**
 * Range of the size of a value: minimum and maximum number of characters,
 * bytes, items or entries.
 */
export interface SizeRange {
  readonly min: number;
  readonly max: number;
}

/**
 * Maximum cost and size, as in cel-go. Values beyond 2^53 are inexact, but far
 * beyond every limit.
 */
export const UNBOUNDED: number = 2 ** 64;

/** Cost of traversing one character. */
export const TRAVERSAL = 0.1;

/** Cost of one character of a pattern for each character it is matched against. */
export const PATTERN = 0.25;

/** Size range of a value of unknown size. */
export const ANY_SIZE: SizeRange = { min: 0, max: UNBOUNDED };

/** Size range of a scalar. */
export const ONE: SizeRange = { min: 1, max: 1 };

/** Product, rounded up and limited to {@linkcode UNBOUNDED}. */
export function times(a: number, b: number): number {
  return Math.min(Math.ceil(a * b), UNBOUNDED);
}

/** Size range of the concatenation of two values. */
export function sizeSum(a: SizeRange, b: SizeRange): SizeRange {
  return {
    min: Math.min(a.min + b.min, UNBOUNDED),
    max: Math.min(a.max + b.max, UNBOUNDED),
  };
}

/** Size range of the product of a number of values and their size. */
export function sizeProduct(a: SizeRange, b: SizeRange): SizeRange {
  return { min: times(a.min, b.min), max: times(a.max, b.max) };
}

/** Size range of a value that is one of two values. */
export function sizeUnion(a: SizeRange, b: SizeRange): SizeRange {
  return { min: Math.min(a.min, b.min), max: Math.max(a.max, b.max) };
}
