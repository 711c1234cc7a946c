/**
 * A copy of a typed array with another length.
 *
 * @param array What is copied, as far as it fits.
 * @param length The new length.
 * @param filler What new elements are.
 */
export function resized<
  A extends Uint8Array | Uint32Array | Int32Array | Float64Array,
>(array: A, length: number, filler = 0): A {
  const Type = array.constructor as { new (length: number): A };
  const copy = new Type(length);
  const kept = Math.min(array.length, length);
  copy.set(array.subarray(0, kept));
  if (filler !== 0) copy.fill(filler, kept);
  return copy;
}
