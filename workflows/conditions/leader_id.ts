/**
 * Computes the name of a lease for one of several operators that run side by
 * side, each for a part of the objects: the base name and eight hexadecimal
 * digits for the part.
 *
 * @param base The common part of the names; an empty one gives an empty result.
 * @param additions Strings that distinguish the operators, such as a label
 * selector and a namespace, in a fixed order; without any the result is the
 * base.
 */
export async function leaderId(
  base: string,
  additions: readonly string[],
): Promise<string> {
  if (base === "" || additions.length === 0) return base;
  const bytes = new TextEncoder().encode(additions.join(""));
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const digits = [...hash.subarray(0, 4)]
    .map((byte) => byte.toString(16).padStart(2, "0"));
  return `${base}-${digits.join("")}`;
}
