/**
 * The name of a lease for operators of which several run beside each other, each
 * for its part: the base, and eight digits that stand for what the part is.
 *
 * @param base What all have in common; where it is empty, so is the result.
 * @param additions What tells them apart, such as a label selector and a
 * namespace; order matters, and without any the base is left as it is.
 *
 * @example Two operators of one kind
 * ```ts
 * import { leaderId } from "@coracle/operator/workflows";
 *
 * const name = await leaderId("foo", ["bar"]);
 * if (name !== "foo-fcde2b2e") throw new Error("Unexpected name");
 * ```
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
