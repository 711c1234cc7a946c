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

/** Size range of a value of unknown size. */
export const ANY_SIZE: SizeRange = { min: 0, max: UNBOUNDED };

/** Size range of a scalar. */
export const ONE: SizeRange = { min: 1, max: 1 };

/** Size range of one size. */
export function exactly(size: number): SizeRange {
  return { min: size, max: size };
}

/** Product, rounded up and limited to {@linkcode UNBOUNDED}. */
export function times(a: number, b: number): number {
  return Math.min(Math.ceil(a * b), UNBOUNDED);
}

/** Sum, limited to {@linkcode UNBOUNDED}. */
export function plus(...parts: readonly number[]): number {
  return Math.min(parts.reduce((sum, part) => sum + part, 0), UNBOUNDED);
}

/** Size range of the concatenation of two values. */
export function sizeSum(a: SizeRange, b: SizeRange): SizeRange {
  return { min: plus(a.min, b.min), max: plus(a.max, b.max) };
}

/** Size range of the product of a number of values and their size. */
export function sizeProduct(a: SizeRange, b: SizeRange): SizeRange {
  return { min: times(a.min, b.min), max: times(a.max, b.max) };
}

/** Size range of a value that is one of two values. */
export function sizeUnion(a: SizeRange, b: SizeRange): SizeRange {
  return { min: Math.min(a.min, b.min), max: Math.max(a.max, b.max) };
}
