/**
 * How many characters, bytes, items or entries a value has at least and at
 * most.
 */
export interface SizeRange {
  readonly min: number;
  readonly max: number;
}

/**
 * What no estimate exceeds: the largest count of cel-go. Estimates beyond 2^53
 * are not exact, and far beyond every limit.
 */
export const UNBOUNDED: number = 2 ** 64;

/** The cost of looking at one character of a text. */
export const TRAVERSAL = 0.1;

/** The cost of one character of a pattern, for each character it is held to. */
export const PATTERN = 0.25;

/** Nothing is known of the size. */
export const ANY_SIZE: SizeRange = { min: 0, max: UNBOUNDED };

/** The size of what has one part. */
export const ONE: SizeRange = { min: 1, max: 1 };

/** A product that does not exceed {@linkcode UNBOUNDED}, rounded up. */
export function times(a: number, b: number): number {
  return Math.min(Math.ceil(a * b), UNBOUNDED);
}

/** The size of two values put together. */
export function sizeSum(a: SizeRange, b: SizeRange): SizeRange {
  return {
    min: Math.min(a.min + b.min, UNBOUNDED),
    max: Math.min(a.max + b.max, UNBOUNDED),
  };
}

/** The size of values of one size, as many as the other tells. */
export function sizeProduct(a: SizeRange, b: SizeRange): SizeRange {
  return { min: times(a.min, b.min), max: times(a.max, b.max) };
}

/** The size of a value that is one of two. */
export function sizeUnion(a: SizeRange, b: SizeRange): SizeRange {
  return { min: Math.min(a.min, b.min), max: Math.max(a.max, b.max) };
}
