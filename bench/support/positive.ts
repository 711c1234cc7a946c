/**
 * Value of a numeric command-line option; undefined if absent.
 *
 * @throws {RangeError} If it is not a positive number.
 */
export function positive(
  name: string,
  text: string | undefined,
): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (value > 0 && value < Infinity) return value;
  throw new RangeError(
    `Cannot run benchmarks: ${name} must be a positive number: received ${text}`,
  );
}
