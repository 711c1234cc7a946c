/**
 * The number that an option of the command line has, if it is there.
 *
 * @throws {RangeError} If it is no positive number.
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
